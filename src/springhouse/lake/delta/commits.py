"""How does a change become part of a table, whole or not at all?

A commit is data: what must still be true (`requirements`), and what to change (`Change`). It has
three steps:

    check    every requirement, in one place
    fold     the change becomes the actions of one log entry
    write    delta-rs writes the entry once, and the entry is synced to the disk

Every commit has a ground: the `TableVersion` from which its work was computed. If two processes
both believe that they own a table, only one of them commits the work. The other gets a
`CommitConflict`, and readers see nothing that it wrote. Never open the ground again between the
reading and the commit: Delta compares only with commits after the ground.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
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
from springhouse.lake.delta.requirements import (
    FilesExist,
    Requirement,
    TableHasVersion,
    TransactionNotSeen,
    VersionIs,
    check_all,
    follows_at_once,
    transactions_of,
)
from springhouse.lake.delta.tables import DataFile, TableVersion, open_table, url_path
from springhouse.lake.storage.durable import is_local, sync_files, sync_log
from springhouse.lake.storage.presence import sizes_unknown
from springhouse.lake.storage.storage import Storage


@dataclass(frozen=True)
class Change:
    """The change of one commit, which readers see whole or not at all.

    With `replace`, the added files replace all files of the table, and the table gets this schema.
    `transactions` name the work, so that it can't be committed twice.
    """

    note: Note
    add: Sequence[AddAction] = ()
    remove: Sequence[DataFile] = ()
    transactions: Mapping[str, int] = field(default_factory=dict)
    replace: StructType | None = None

    @property
    def data_changes(self) -> bool:
        """Whether the added and removed files change what readers see."""
        return self.note.kind != "compaction"

    def named_files(self) -> dict[str, int | None]:
        """The files that the commit names, with their sizes where they are known."""
        sizes: dict[str, int | None] = {unquote(add.path): add.size for add in self.add}
        noted = [
            *(self.note.changes or ()),
            *(path for files in self.note.state.values() for path in files),
        ]
        return sizes | sizes_unknown(path for path in noted if path not in sizes)


_RETRIES = 20
"""How often delta-rs retries an append after commits without conflict (of another flow)."""

_CONFIGURATION = {"delta.checkpointInterval": "20"}
"""Opening a table reads every commit after its last checkpoint, and a warehouse commits often and
opens often. After 74 commits that took 20 ms, after a checkpoint 6 ms. delta-rs's own interval is
100 commits.
"""


def commit(ground: TableVersion, change: Change, requires: Iterable[Requirement] = ()) -> None:
    """Write the change on top of the ground, or raise `CommitConflict` and change nothing."""
    requirements = [
        *requires,
        TableHasVersion(ground.storage, ground.version),
        *_required_by(ground.storage, change),
    ]
    if change.remove or change.replace is not None:
        requirements.append(VersionIs(ground.version))
    actions = _folded(change)
    schema = ground.delta.schema() if change.replace is None else delta_schema(change.replace)

    def write() -> None:
        try:
            ground.delta.create_write_transaction(
                actions,
                mode="append" if change.replace is None else "overwrite",
                schema=schema,
                commit_properties=_properties(_with_counts(change), requirements),
                post_commithook_properties=_KEEP_ENTRIES if is_local(ground.storage) else None,
            )
        except (CommitFailedError, DeltaProtocolError) as error:
            raise _refused(ground, error) from error

    _write_once(ground.storage, ground.version, requirements, write, change.named_files())


def _required_by(storage: Storage, change: Change) -> list[Requirement]:
    """The requirements that follow from the change itself."""
    transactions = (TransactionNotSeen(app, end) for app, end in change.transactions.items())
    return [FilesExist(storage, change.named_files()), *transactions]


def _folded(change: Change) -> list[AddAction | RemoveAction]:
    """The change as actions of the Delta log."""
    is_data = change.data_changes
    now = int(change.note.at * 1000)
    removes = [
        RemoveAction(url_path(file.path), is_data, now, file.size, dict(file.partition) or None)
        for file in change.remove
    ]
    adds = change.add if is_data else [_as_maintenance(add) for add in change.add]
    return [*adds, *removes]


def _write_once(
    storage: Storage,
    after: int,
    requirements: Iterable[Requirement],
    write: Callable[[], None],
    files: Iterable[str] = (),
) -> None:
    """Check the requirements of a commit, write it, and return when it is on the disk.

    The commit follows the version `after`. It names these `files`, which are synced first.
    """
    check_all(requirements)
    sync_files(storage, files)
    write()
    _sync_log(storage, after)


_KEEP_ENTRIES = PostCommitHookProperties(cleanup_expired_logs=False)
"""Otherwise delta-rs deletes old entries before their checkpoint is on the disk."""


def _sync_log(storage: Storage, after: int) -> None:
    """Return when the commit that follows a version is on the disk."""
    if sync_log(storage, after):
        written = open_table(storage)
        assert written is not None
        written.delta.cleanup_metadata()


def _refused(ground: TableVersion, error: DeltaError) -> LakeError:
    """A conflict if another commit followed the ground; otherwise an error that no retry helps."""
    newest = open_table(ground.storage)
    if newest is not None and newest.version == ground.version:
        return LakeError(f"the commit was refused: {error}", where=ground.storage.root)
    return CommitConflict("somebody else committed the same work first", where=ground.storage.root)


def with_features_for(
    ground: TableVersion, schema: StructType, note: Note, requires: Iterable[Requirement] = ()
) -> TableVersion:
    """The table with the Delta features that these columns need; delta-rs does not add them."""
    features = ground.delta.protocol().writer_features or ()
    if not _has_ntz(schema) or "timestampNtz" in features:
        return ground

    def write() -> None:
        ground.delta.alter.add_feature(
            [TableFeatures.TimestampWithoutTimezone],
            allow_protocol_versions_increase=True,
            commit_properties=_properties(note),
        )

    _write_once(ground.storage, ground.version, requires, write)
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


def create(
    storage: Storage, schema: StructType, change: Change, requires: Iterable[Requirement] = ()
) -> None:
    """Create the table, with the change as its first version; `CommitConflict` if it exists."""
    # Without `VersionIs`, delta-rs would append a second creation, with all its rows, to the first.
    requirements = [*requires, *_required_by(storage, change), VersionIs(_NO_VERSION)]

    def write() -> None:
        try:
            create_table_with_add_actions(
                storage.root,
                delta_schema(schema),
                list(change.add),
                configuration=_CONFIGURATION,
                storage_options=storage.delta_options,
                commit_properties=_properties(_with_counts(change), requirements),
            )
        except DeltaError as error:
            if open_table(storage) is None:
                problem = f"the table can't be created: {error}"
                raise LakeError(problem, where=storage.root) from error
            raise CommitConflict("somebody else created it first", where=storage.root) from error

    _write_once(storage, _NO_VERSION, requirements, write, change.named_files())


_NO_VERSION = -1
"""The version before the first one of a table."""


def ensure(
    storage: Storage, schema: StructType, note: Note, requires: Iterable[Requirement] = ()
) -> TableVersion:
    """The table, created empty if it does not exist. If two processes try, one creates it."""
    opened = open_table(storage)
    if opened is None:
        with suppress(CommitConflict):  # Another process created it: open that one.
            create(storage, schema, Change(note), requires)
        opened = open_table(storage)
    assert opened is not None
    return opened


def add_columns(
    ground: TableVersion,
    columns: Sequence[StructField],
    note: Note,
    requires: Iterable[Requirement] = (),
) -> TableVersion:
    """The table with these columns added; they are NULL in the existing rows."""
    fields = delta_schema(StructType([StructField(c.name, c.dataType) for c in columns])).fields

    def write() -> None:
        try:
            ground.delta.alter.add_columns(
                [DeltaField(f.name, f.type) for f in fields], commit_properties=_properties(note)
            )
        except DeltaError as error:
            raise _refused(ground, error) from error

    _write_once(ground.storage, ground.version, requires, write)
    opened = open_table(ground.storage)
    assert opened is not None
    return opened


def describe(
    ground: TableVersion,
    comment: str | None,
    properties: Mapping[str, str],
    columns: Mapping[str, str],
    note: Note,
    requires: Iterable[Requirement] = (),
) -> None:
    """Set the table's comment, its properties and the comments of its columns where they differ."""
    metadata = ground.delta.metadata()
    alter, properties_of_commit = ground.delta.alter, _properties(note)
    writes: list[Callable[..., None]] = []
    new_properties = {k: v for k, v in properties.items() if metadata.configuration.get(k) != v}
    if new_properties:
        writes.append(
            partial(alter.set_table_properties, new_properties, raise_if_not_exists=False)
        )
    if comment is not None and metadata.description != comment:
        writes.append(partial(alter.set_table_description, comment))
    for name, text in _new_comments(ground, columns).items():
        writes.append(partial(alter.set_column_metadata, name, {"comment": text}))
    if writes:
        check_all(requires)
    try:
        for write in writes:
            write(commit_properties=properties_of_commit)
    except DeltaError as error:
        raise _refused(ground, error) from error
    finally:
        _sync_log(ground.storage, ground.version)


def _new_comments(ground: TableVersion, columns: Mapping[str, str]) -> dict[str, str]:
    """The new comments of columns, by the names in the table's schema."""
    own = {field.name.lower(): field for field in ground.schema.fields}
    return {
        own[name.lower()].name: text
        for name, text in columns.items()
        if name.lower() in own and own[name.lower()].metadata.get("comment") != text
    }


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


def _properties(note: Note, requirements: Sequence[Requirement] = ()) -> CommitProperties:
    """The commit properties: the note, and the requirements that the write itself checks."""
    transactions = [Transaction(each.app, each.version) for each in transactions_of(requirements)]
    return CommitProperties(
        custom_metadata={KEY: note.as_json()},
        app_transactions=transactions,
        max_commit_retries=0 if follows_at_once(requirements) else _RETRIES,
    )


def _with_counts(change: Change) -> Note:
    """The note with the number of actions in the commit, so that a reader can detect lost ones."""
    counts = {"add": len(change.add), "remove": len(change.remove), "txn": len(change.transactions)}
    return replace(change.note, holds={kind: count for kind, count in counts.items() if count})


def _as_maintenance(add: AddAction) -> AddAction:
    return AddAction(
        add.path, add.size, add.partition_values, add.modification_time, False, add.stats
    )
