"""How does a change become part of a table, whole or not at all?

A commit is data: what must still be true, and what to change. What must still be true is the
ground it stands on, the `TableVersion` from which the work was computed:

    no commit after the ground   carries a transaction of ours  (the same offsets, the same refresh)
    no commit after the ground   removed a file that we remove
    every file that we name      is in the storage, with its size

delta-rs checks the first against every commit made after the ground was opened, and writes one log
entry. The second it does not see if the other commit was a compaction (tried: old and new rows are
there afterwards), so whoever removes files commits right after the ground, or not at all. Two
processes that both believe they own a table thus commit its work once: the second one gets a
`CommitConflict` and has written nothing that anybody can see. Never reload the ground between the
reading and the commit: that would forget what was read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from deltalake import CommitProperties, PostCommitHookProperties, Schema, TableFeatures, Transaction
from deltalake import Field as DeltaField
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StructField,
    StructType,
    TimestampNTZType,
)

from springhouse.errors import CommitConflict, LakeError, SchemaError
from springhouse.lake.delta.note import KEY, Note
from springhouse.lake.delta.tables import DataFile, TableVersion, open_table, url_path
from springhouse.lake.storage.durable import is_local, sync_files, sync_log
from springhouse.lake.storage.presence import (
    prove_present,
    prove_scanned,
    scans_remembered,
    sizes_unknown,
)
from springhouse.lake.storage.storage import Storage


@dataclass(frozen=True)
class Change:
    """What a commit changes, in one step that readers see whole or not at all.

    `replace` puts the added files in the place of all that there is, with a new schema if need be.
    `transactions` name the work, so that it can't be committed twice.
    """

    note: Note
    add: Sequence[AddAction] = ()
    remove: Sequence[DataFile] = ()
    transactions: Mapping[str, int] = field(default_factory=dict)
    replace: StructType | None = None


_RETRIES = 20
"""How often delta-rs puts an append after commits that do not conflict with it (another flow's)."""

_CONFIGURATION = {"delta.checkpointInterval": "20"}
"""Who opens a table reads every commit after its last checkpoint, and a warehouse commits often and
opens often. After 74 commits that took 20 ms, after a checkpoint 6 ms. delta-rs would wait for 100.
"""

_PROOF: ContextVar[Callable[[], None]] = ContextVar("proof", default=lambda: None)


@contextmanager
def committing(prove: Callable[[], None]) -> Iterator[None]:
    """Ask `prove` before each commit of this thread: what it raises, the commit raises."""
    token = _PROOF.set(prove)
    try:
        with scans_remembered():
            yield
    finally:
        _PROOF.reset(token)


def commit(ground: TableVersion, change: Change) -> None:
    """Write the change on top of the ground, or raise `CommitConflict` and change nothing."""
    _PROOF.get()()
    _prove_there(ground)
    _prove_files(ground.storage, change)
    now = int(change.note.at * 1000)
    data_change = change.note.kind != "compaction"
    removes = [
        RemoveAction(url_path(file.path), data_change, now, file.size, dict(file.partition) or None)
        for file in change.remove
    ]
    adds = [_as_maintenance(add) for add in change.add] if not data_change else list(change.add)
    schema = ground.delta.schema() if change.replace is None else delta_schema(change.replace)
    retries = 0 if removes or change.replace is not None else _RETRIES
    try:
        ground.delta.create_write_transaction(
            [*adds, *removes],
            mode="append" if change.replace is None else "overwrite",
            schema=schema,
            commit_properties=_properties(_counted(change), change.transactions, retries),
            post_commithook_properties=_KEEP_ENTRIES if is_local(ground.storage) else None,
        )
    except (CommitFailedError, DeltaProtocolError) as error:
        raise _refused(ground, error) from error
    _settle(ground.storage, ground.version)


_KEEP_ENTRIES = PostCommitHookProperties(cleanup_expired_logs=False)
"""delta-rs would delete old entries before the checkpoint that replaces them is on the disk."""


def _settle(storage: Storage, after: int) -> None:
    """Return when the commit that was made on top of a version is on the disk."""
    if sync_log(storage, after):
        written = open_table(storage)
        assert written is not None
        written.delta.cleanup_metadata()


def _prove_there(ground: TableVersion) -> None:
    """Raise `CommitConflict` if the table was deleted since: delta-rs would commit into nothing."""
    (entry,) = ground.storage.inside("_delta_log").entries([f"{ground.version:020}.json"])
    if entry is None:
        raise CommitConflict("the table was deleted meanwhile", where=ground.storage.root)


def _prove_files(storage: Storage, change: Change) -> None:
    """Raise `FileLost` if a file that the commit names is not there, whole and on the disk.

    A vacuum may have taken it: by another tool, or while this process was stopped.
    """
    sizes: dict[str, int | None] = {unquote(add.path): add.size for add in change.add}
    named = [
        *(change.note.changes or ()),
        *(p for files in change.note.state.values() for p in files),
    ]
    prove_present(storage, sizes | sizes_unknown(path for path in named if path not in sizes))
    sync_files(storage, [*sizes, *(path for path in named if path not in sizes)])
    prove_scanned()


def _refused(ground: TableVersion, error: DeltaError) -> LakeError:
    """A conflict if somebody committed after the ground; else trying again would not help."""
    newest = open_table(ground.storage)
    if newest is not None and newest.version == ground.version:
        return LakeError(f"the commit was refused: {error}", where=ground.storage.root)
    return CommitConflict("somebody else committed the same work first", where=ground.storage.root)


def able_to_hold(ground: TableVersion, schema: StructType, note: Note) -> TableVersion:
    """The table with the features that these columns need; delta-rs does not see to that itself."""
    features = ground.delta.protocol().writer_features or ()
    if not _has_ntz(schema) or "timestampNtz" in features:
        return ground
    _PROOF.get()()
    ground.delta.alter.add_feature(
        [TableFeatures.TimestampWithoutTimezone],
        allow_protocol_versions_increase=True,
        commit_properties=_properties(note, {}),
    )
    _settle(ground.storage, ground.version)
    able = open_table(ground.storage)
    assert able is not None
    if able.version != ground.version + 1:
        raise CommitConflict("somebody else committed first", where=ground.storage.root)
    return able


def _has_ntz(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_ntz(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_ntz(kind.elementType)
    if isinstance(kind, MapType):
        return _has_ntz(kind.keyType) or _has_ntz(kind.valueType)
    return isinstance(kind, TimestampNTZType)


def prove_unread(ground: TableVersion, ranges: Mapping[str, tuple[int, int]]) -> None:
    """Raise `CommitConflict` if the ground holds records of these ranges (from, to) already.

    delta-rs looks at the commits after the ground. A ground that was opened after the ranges were
    chosen, because the table had to be made or to grow, may have them below it.
    """
    if any(ground.offset(app) > start for app, (start, _) in ranges.items()):
        raise CommitConflict(
            "somebody else committed the same work first", where=ground.storage.root
        )


def create(storage: Storage, schema: StructType, change: Change) -> None:
    """Make the table, with the change as its first version; `CommitConflict` if it is there."""
    _PROOF.get()()
    _prove_files(storage, change)
    try:
        create_table_with_add_actions(
            storage.root,
            delta_schema(schema),
            list(change.add),
            configuration=_CONFIGURATION,
            storage_options=storage.delta_options,
            # Tried once: delta-rs would put a second beginning, with all its rows, after the first.
            commit_properties=_properties(_counted(change), change.transactions, 0),
        )
    except DeltaError as error:
        if open_table(storage) is None:
            raise LakeError(f"the table can't be created: {error}", where=storage.root) from error
        raise CommitConflict("somebody else created it first", where=storage.root) from error
    _settle(storage, -1)


def ensure(storage: Storage, schema: StructType, note: Note) -> TableVersion:
    """The table, made empty if it is not there yet; whoever comes second gets the first one's."""
    opened = open_table(storage)
    if opened is None:
        with suppress(CommitConflict):
            create(storage, schema, Change(note))
        opened = open_table(storage)
    assert opened is not None
    return opened


def add_columns(ground: TableVersion, columns: Sequence[StructField], note: Note) -> TableVersion:
    """The table with these columns added; they are NULL in the rows that are already there."""
    _PROOF.get()()
    fields = delta_schema(StructType([StructField(c.name, c.dataType) for c in columns])).fields
    try:
        ground.delta.alter.add_columns(
            [DeltaField(f.name, f.type) for f in fields], commit_properties=_properties(note, {})
        )
    except DeltaError as error:
        raise _refused(ground, error) from error
    _settle(ground.storage, ground.version)
    opened = open_table(ground.storage)
    assert opened is not None
    return opened


def describe(
    ground: TableVersion,
    comment: str | None,
    properties: Mapping[str, str],
    columns: Mapping[str, str],
    note: Note,
) -> None:
    """Give the table this comment, these properties and comments of columns, where they differ."""
    has = ground.delta.metadata()
    alter, said = ground.delta.alter, _properties(note, {})
    lacking = {k: v for k, v in properties.items() if has.configuration.get(k) != v}
    own = {f.name.lower(): f for f in ground.schema.fields}
    comments = {
        own[name.lower()].name: text
        for name, text in columns.items()
        if name.lower() in own and own[name.lower()].metadata.get("comment") != text
    }
    if lacking or comments or (comment is not None and has.description != comment):
        _PROOF.get()()
    try:
        if lacking:
            alter.set_table_properties(lacking, raise_if_not_exists=False, commit_properties=said)
        if comment is not None and has.description != comment:
            alter.set_table_description(comment, commit_properties=said)
        for name, text in comments.items():
            alter.set_column_metadata(name, {"comment": text}, commit_properties=said)
    except DeltaError as error:
        raise _refused(ground, error) from error
    finally:
        _settle(ground.storage, ground.version)


def delta_schema(schema: StructType) -> Schema:
    """The schema as Delta stores it: every column may be NULL, and has a type."""
    for column in schema.fields:
        if isinstance(column.dataType, NullType):
            raise SchemaError(
                f'the column "{column.name}" has no type, only NULLs',
                hint=f"Give it one: CAST(NULL AS STRING) AS {column.name}",
            )
    nullable = StructType([StructField(f.name, f.dataType, True) for f in schema.fields])
    try:
        return Schema.from_json(nullable.json())
    except (DeltaError, ValueError) as error:
        raise SchemaError(f"Delta can't store these columns: {error}") from error


def _properties(note: Note, transactions: Mapping[str, int], retries: int = 20) -> CommitProperties:
    return CommitProperties(
        custom_metadata={KEY: note.as_json()},
        app_transactions=[Transaction(app, version) for app, version in transactions.items()],
        max_commit_retries=retries,
    )


def _counted(change: Change) -> Note:
    """The note with how many actions the commit has, so that a reader misses none."""
    counts = {"add": len(change.add), "remove": len(change.remove), "txn": len(change.transactions)}
    return replace(change.note, holds={kind: count for kind, count in counts.items() if count})


def _as_maintenance(add: AddAction) -> AddAction:
    return AddAction(
        add.path, add.size, add.partition_values, add.modification_time, False, add.stats
    )
