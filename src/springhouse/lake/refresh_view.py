"""How is a view brought up to date?

By running its query over one version of each input and putting the result in the place of what was
there, in one commit: readers see the old rows or the new rows, never none and never both. The rows
that differ are written as the strong delta for whoever reads this view. If none differ, no file is
rewritten; the commit only says what the rows now reflect.

This is the batch variant. Others (incremental, asynchronous) will stand beside it, each with this
signature, and the planner will say which one runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark.sql.types import StructType

from springhouse.errors import LakeError, SchemaError
from springhouse.lake import changes
from springhouse.lake.alignment import declared
from springhouse.lake.commits import Change, able_to_hold, commit, create
from springhouse.lake.inputs import Inputs
from springhouse.lake.lake import QUARANTINE, Lake, provenance_of
from springhouse.lake.landing import Done, Landed, land, now, set_aside
from springhouse.lake.note import Note
from springhouse.lake.queries import blamed_on
from springhouse.lake.tables import TableVersion
from springhouse.lake.writing import paths_of, write_arrow, write_with_spark
from springhouse.planner.provenance import Provenance
from springhouse.project.declaration import Project, RefreshMode, View
from springhouse.project.fingerprint import fingerprint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REFRESH = "springhouse/refresh"
"""The transaction of a view's refreshes: two that start from the same version can't both commit."""


def refresh_view(
    lake: Lake, project: Project, view: View, versions: Mapping[str, int], reason: str
) -> Done:
    """Recompute the view from its inputs as of `versions`, and replace what is stored."""
    if view.refresh is RefreshMode.INCREMENTAL:
        raise LakeError(
            f'the view "{view.name}" asks for incremental refreshes, and there are only full ones',
            where=str(view.place),
            hint="Set 'springhouse.refresh' = 'auto', or leave it out.",
        )
    began = now()
    ground = lake.find(view.name)
    inputs = Inputs(lake, project, versions)
    with blamed_on(view.place):
        rows = declared(inputs.frame(view.query), view.schema, str(view.place))
        _prove_storable(rows.schema, view)
        size = inputs.size + (ground.size if ground else 0)
        landed = land(lake, view.name, rows, size=size, expectations=view.expectations, write=False)
        reflected = provenance_of(lake, inputs.read)
        delta = _delta(lake, ground, rows.schema, landed)
        note = Note(
            kind="replace",
            at=now(),
            before=_stored_provenance(lake, view.name),
            after=reflected,
            variant="full",
            reason=reason,
            rows=landed.count,
            rows_added=delta.inserted,
            rows_removed=delta.deleted,
            definition=fingerprint(project, view),
            changes=delta.paths,
            read=inputs.read,
            violations=landed.violations,
        )
        done = Done(
            view.name,
            "replace",
            landed.count,
            delta.inserted,
            delta.deleted,
            len(landed.aside),
            reason=reason,
            read=inputs.read,
        )
        if ground is not None and _says_nothing_new(lake, view.name, note):
            return replace(done, seconds=now() - began, committed=False)
        if landed.aside or lake.log(view.name + QUARANTINE).newest():
            _set_aside_anew(lake, view, landed)
        files = _files(lake, view.name, landed, delta, ground)
        _put(lake, view.name, ground, rows.schema, files, replace(note, seconds=now() - began))
        return replace(done, seconds=now() - began)


@dataclass(frozen=True)
class _Delta:
    """The rows that differ: where they are written (None: the new rows are all there is to it)."""

    paths: tuple[str, ...] | None
    inserted: int
    deleted: int


def _delta(lake: Lake, ground: TableVersion | None, schema: StructType, landed: Landed) -> _Delta:
    """The strong delta from what is stored to what was computed, written down."""
    if ground is None or not ground.files:
        return _Delta(None if landed.count else (), landed.count, 0)
    if _names_and_types(ground.schema) != _names_and_types(schema):
        # Rows of other columns have no difference; what reads this view has to start over.
        return _Delta(None, landed.count, ground.rows)
    if landed.rows is not None:
        return _small_delta(lake, ground, landed.rows)
    session = lake.spark.session()
    new = session.read.schema(ground.schema).parquet(
        *(f"{ground.storage.root}/{path}" for path in paths_of(landed.add))
    )
    return _large_delta(ground, ground.read(session), new)


def _small_delta(lake: Lake, ground: TableVersion, new: pa.Table) -> _Delta:
    found = changes.difference(ground.to_arrow(), new)
    if found is None:
        session = lake.spark.session()
        old, fresh = ground.read(session), session.createDataFrame(new, ground.schema)
        found = changes.spark_difference(old, fresh).toArrow()
    inserted, deleted = changes.weights(found)
    if not found.num_rows:
        return _Delta((), 0, 0)
    return _Delta(paths_of([write_arrow(ground.storage, found, changes.FOLDER)]), inserted, deleted)


def _large_delta(ground: TableVersion, old: "DataFrame", new: "DataFrame") -> _Delta:
    written = write_with_spark(ground.storage, changes.spark_difference(old, new), changes.FOLDER)
    paths = paths_of(written)
    if not paths:
        return _Delta((), 0, 0)
    return _Delta(paths, *changes.spark_weights(old.sparkSession, ground.storage, paths))


def _files(
    lake: Lake, view: str, landed: Landed, delta: _Delta, ground: TableVersion | None
) -> list[AddAction] | None:
    """The files of the new rows; None if the ones that are there hold the same rows."""
    if ground is not None and delta.paths == () and ground.rows == landed.count:
        return None
    if landed.rows is None:
        return list(landed.add)
    return [write_arrow(lake.place(view), landed.rows)] if landed.count else []


def _put(
    lake: Lake,
    view: str,
    ground: TableVersion | None,
    schema: StructType,
    files: list[AddAction] | None,
    note: Note,
) -> None:
    """Commit the files in the place of what is there; None leaves the files as they are."""
    if ground is None:
        create(lake.place(view), schema, Change(note, files or (), transactions={REFRESH: 0}))
        return
    ground = able_to_hold(ground, schema, Note(kind="schema", at=now(), reason="new types"))
    change = Change(note, files or (), transactions={REFRESH: ground.version + 1})
    commit(ground, change if files is None else replace(change, replace=schema))


def _set_aside_anew(lake: Lake, view: View, landed: Landed) -> None:
    """The quarantine of a view holds what its last refresh set aside, and nothing older."""
    quarantine = lake.find(view.name + QUARANTINE)
    if quarantine is not None and quarantine.files:
        gone = Note(kind="replace", at=now(), channel=True, variant="emptied")
        commit(quarantine, Change(gone, (), quarantine.files))
    if landed.aside:
        set_aside(lake, view.name, view.name, landed.aside, {}, now())


def _stored_provenance(lake: Lake, name: str) -> Provenance:
    newest = lake.log(name).newest()
    return newest.provenance if newest else Provenance()


def _says_nothing_new(lake: Lake, name: str, note: Note) -> bool:
    """Whether the last commit already says all that this one would."""
    newest = lake.log(name).newest()
    last = newest.note if newest else None
    return (
        last is not None
        and note.changes == ()
        and last.after == note.after
        and last.definition == note.definition
    )


def _prove_storable(schema: StructType, view: View) -> None:
    names = [name.lower() for name in schema.fieldNames()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(
            f'the view "{view.name}" has two columns named "{twice[0]}"',
            where=str(view.place),
            hint=f"Give one another name: … AS {twice[0]}_2",
        )


def _names_and_types(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]
