"""How is a view computed from its inputs?

Its query runs over one version of each input, and one commit replaces the old rows with the result.
The commit also writes the strong delta, the rows that differ, for the readers of this view. If no
row differs, the commit rewrites no file, and only says which versions the rows now reflect.

With a plan, the compiled form of the query runs instead. It gives the same rows with hidden columns
beside them, and hidden tables under them, sorted by key. Incremental refreshes build on these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from springhouse.lake.delta import changes
from springhouse.lake.delta.alignment import with_declared_columns
from springhouse.lake.delta.commits import Change, commit, create, with_features_for
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.stores import Store, describe_file, write_sorted
from springhouse.lake.delta.tables import TableVersion, frame_of, quoted, read_arrow, read_parquet
from springhouse.lake.delta.writing import (
    paths_of,
    rows_of,
    write_arrow,
    write_with_spark,
)
from springhouse.lake.flows.flow_configuration import flow_settings
from springhouse.lake.lake import QUARANTINE, InputsSame, Lake, required_of_view
from springhouse.lake.landing.inputs import RefreshInputs
from springhouse.lake.landing.landing import Done, Landed, land
from springhouse.lake.landing.quarantine import quarantine_view_rows
from springhouse.lake.views.compiled_plans import STATE, CompiledPlan
from springhouse.lake.views.incremental import Work
from springhouse.lake.views.prepared import Prepared
from springhouse.planner.delta_logs import reflected_by
from springhouse.planner.placement import compares_here, fits_here, reads_result_back, sorts_here
from springhouse.planner.provenance import Provenance
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import View
from springhouse.project.lineage.fingerprint import fingerprint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REFRESH = "springhouse/refresh"
"""The transaction id of refreshes: of two that start from the same version, only one commits."""


def recompute(
    ready: Prepared, planned: RefreshPlan, plan: CompiledPlan | None, *, unreadable: bool = False
) -> Done:
    """Compute the view from its inputs and replace the stored rows; with a `plan`, build state.

    The stored rows may be `unreadable`.
    """
    decision = planned.decision
    assert decision is not None, "how to refresh it was not decided"
    lake, view, ground, inputs = ready.lake, ready.view, ready.ground, ready.inputs
    project, began = ready.project, ready.began
    built = _built(lake, view, inputs, plan)
    size = inputs.size + (ground.size if ground else 0)
    landed = land(
        lake,
        view.name,
        built.rows,
        size=size,
        expectations=view.expectations,
        write=False,
        settings=flow_settings(project, view),
    )
    landed = _at_hand(lake, view.name, landed, built.columns)
    if unreadable and ground is not None:
        delta = _start_over(ground, landed)
    else:
        delta = _delta(lake, ground, built.visible, landed)
    note = Note(
        kind="replace",
        at=lake.now(),
        before=stored_provenance(lake, view.name),
        after=reflected_by(lake, project, view, inputs.read),
        variant="full",
        reason=planned.reason,
        since=planned.since,
        why=decision.why,
        expected=decision.expected,
        missed=decision.missed,
        others=planned.other_seconds,
        rows=landed.count,
        rows_added=delta.inserted,
        rows_removed=delta.deleted,
        definition=fingerprint(project, view),
        changes=delta.paths,
        read=inputs.read,
        ids=dict(inputs.ids),
        marks=dict(inputs.marks),
        state=built.state,
        stateful=plan is not None,
        failed=decision.failed,
        violations=landed.violations,
    )
    done = Done(
        view.name,
        "replace",
        landed.count,
        delta.inserted,
        delta.deleted,
        len(landed.quarantined),
        reason=planned.reason,
        read=inputs.read,
        way=note.variant,
    )
    if ground is not None and _says_nothing_new(lake, view.name, note):
        return replace(done, seconds=lake.now() - began, committed=False)
    InputsSame(lake, note).check()  # Before the quarantine is emptied.
    if landed.quarantined or lake.log(view.name + QUARANTINE).newest():
        _set_aside_anew(lake, view, landed)
    files = _files(lake, view.name, landed, delta, ground, built)
    _put(lake, view.name, ground, built.visible, files, replace(note, seconds=lake.now() - began))
    return replace(done, seconds=lake.now() - began)


@dataclass(frozen=True)
class _Built:
    """The rows of a view, not yet computed, with the visible columns and the state."""

    rows: "DataFrame"
    visible: StructType
    keys: tuple[str, ...] = ()
    state: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stateful: bool = False

    @property
    def columns(self) -> list[str]:
        return self.rows.columns


def _built(lake: Lake, view: View, inputs: RefreshInputs, plan: CompiledPlan | None) -> _Built:
    rows = with_declared_columns(inputs.frame(view.query), view.schema, str(view.place))
    if plan is None:
        return _Built(rows, rows.schema)
    opened = inputs.opened(view.query)
    assert opened is not None
    after = {name: opened[key] for name, key in plan.inputs.items()}
    work = Work(lake, {}, {}, after, {}, plan.shapes)
    state: dict[str, tuple[str, ...]] = {}
    for step in plan.compiled.build[:-1]:
        folder = f"{STATE}/{step.table}"
        store = Store(lake.place(view.name), folder, (), plan.arrow(step.table))
        frame = _shaped(work.frame(step.build), plan.shapes[step.table])
        adds = _filled(store, frame, step.layout.keys, small=_is_small(inputs))
        files = tuple(describe_file(store.storage, add.path) for add in adds)
        work.stores[step.table] = replace(store, files=files)
        state[step.table] = tuple(file.path for file in files)
    last = plan.compiled.build[-1]
    frame = _shaped(work.frame(last.build), plan.shapes[""])
    return _Built(frame, rows.schema, last.layout.keys, state, stateful=True)


def _shaped(rows: "DataFrame", shape: StructType) -> "DataFrame":
    columns = (sf.col(quoted(f.name)).cast(f.dataType).alias(f.name) for f in shape.fields)
    return rows.select(*columns)


def _is_small(inputs: RefreshInputs) -> bool:
    return fits_here(inputs.size)


def _filled(
    store: Store, rows: "DataFrame", keys: tuple[str, ...], *, small: bool
) -> list[AddAction]:
    """The rows as files of a hidden table."""
    if small:
        table = rows.toArrow().select(store.schema.names).cast(store.schema)
        return write_sorted(store, keys, table)
    written = write_with_spark(store.storage, rows, store.folder)
    if not sorts_here(rows_of(written)):
        return written
    files = tuple(describe_file(store.storage, add.path) for add in written)
    return write_sorted(store, keys, replace(store, files=files).read())


def _at_hand(lake: Lake, view: str, landed: Landed, columns: list[str]) -> Landed:
    """A small result that Spark wrote, read back, so that a comparison needs no further query."""
    if landed.rows is not None or not reads_result_back(landed.count):
        return landed
    if not landed.count:
        return landed
    return replace(landed, rows=read_arrow(lake.place(view), paths_of(landed.add), columns))


@dataclass(frozen=True)
class _RowDelta:
    """The rows that differ: their change files, or None if the new rows are the whole change."""

    paths: tuple[str, ...] | None
    inserted: int
    deleted: int


def _delta(
    lake: Lake, ground: TableVersion | None, schema: StructType, landed: Landed
) -> _RowDelta:
    """The strong delta from the stored rows to the computed ones, written to change files."""
    if ground is None or not ground.files:
        return _RowDelta(None if landed.count else (), landed.count, 0)
    if _names_and_types(ground.schema) != _names_and_types(schema):
        return _start_over(ground, landed)
    if landed.rows is not None and compares_here(ground.rows):
        return _small_delta(lake, ground, landed.rows.select(schema.fieldNames()))
    session = lake.spark.session()
    scans = lake.remote_scans
    new = read_parquet(session, ground.storage, paths_of(landed.add), ground.schema, scans)
    return _large_delta(ground, ground.read(session, scans=scans), new)


def _start_over(ground: TableVersion, landed: Landed) -> _RowDelta:
    """A full replacement: old rows with other columns, or unreadable ones, can't be compared."""
    return _RowDelta(None, landed.count, ground.rows)


def _small_delta(lake: Lake, ground: TableVersion, new: pa.Table) -> _RowDelta:
    found = changes.difference(ground.to_arrow(), new)
    if found is None:
        session = lake.spark.session()
        old = ground.read(session, scans=lake.remote_scans)
        fresh = frame_of(session, new, ground.schema)
        found = changes.spark_difference(old, fresh).toArrow()
    inserted, deleted = changes.weights(found)
    if not found.num_rows:
        return _RowDelta((), 0, 0)
    return _RowDelta(
        paths_of([write_arrow(ground.storage, found, changes.FOLDER)]), inserted, deleted
    )


def _large_delta(ground: TableVersion, old: "DataFrame", new: "DataFrame") -> _RowDelta:
    written = write_with_spark(ground.storage, changes.spark_difference(old, new), changes.FOLDER)
    paths = paths_of(written)
    if not paths:
        return _RowDelta((), 0, 0)
    return _RowDelta(paths, *changes.spark_weights(old.sparkSession, ground.storage, paths))


def _files(
    lake: Lake,
    view: str,
    landed: Landed,
    delta: _RowDelta,
    ground: TableVersion | None,
    built: _Built,
) -> list[AddAction] | None:
    """The files of the new rows; None if the stored files hold the same rows."""
    same = ground is not None and delta.paths == () and ground.rows == landed.count
    if same and not built.stateful:
        return None
    storage = lake.place(view)
    if not built.stateful:
        if landed.rows is None or landed.add:
            return list(landed.add)
        return [write_arrow(storage, landed.rows)] if landed.count else []
    if landed.rows is not None:
        return write_sorted(Store(storage, "", (), landed.rows.schema), built.keys, landed.rows)
    if not built.keys or not sorts_here(landed.count):
        return list(landed.add)
    table = read_arrow(storage, paths_of(landed.add), built.columns)
    return write_sorted(Store(storage, "", (), table.schema), built.keys, table)


def _put(
    lake: Lake,
    view: str,
    ground: TableVersion | None,
    schema: StructType,
    files: list[AddAction] | None,
    note: Note,
) -> None:
    """Commit the files in place of the stored ones; None leaves the stored files as they are."""
    requires = required_of_view(lake, note)
    if ground is None:
        change = Change(note, files or (), transactions={REFRESH: 0})
        create(lake.place(view), schema, change, requires)
        return
    new_types = Note(kind="schema", at=lake.now(), reason="new types")
    ground = with_features_for(ground, schema, new_types, requires)
    change = Change(note, files or (), transactions={REFRESH: ground.version + 1})
    commit(ground, change if files is None else replace(change, replace=schema), requires)


def _set_aside_anew(lake: Lake, view: View, landed: Landed) -> None:
    """Replace the quarantine of a view with the records that this refresh set aside."""
    quarantine = lake.find(view.name + QUARANTINE)
    if quarantine is not None and quarantine.files:
        gone = Note(kind="replace", at=lake.now(), channel=True, variant="emptied")
        commit(quarantine, Change(gone, (), quarantine.files), lake.required)
    if landed.quarantined:
        quarantine_view_rows(lake, view.name, view.name, landed.quarantined, lake.now())


def stored_provenance(lake: Lake, name: str) -> Provenance:
    """The provenance of a view's rows; empty before its first refresh."""
    newest = lake.log(name).newest()
    return newest.provenance if newest else Provenance()


def _says_nothing_new(lake: Lake, name: str, note: Note) -> bool:
    """Whether the last commit already says the same as this note."""
    newest = lake.log(name).newest()
    last = newest.note if newest else None
    return (
        last is not None
        and note.changes == ()
        and last.after == note.after
        and last.ids == note.ids
        and last.marks == note.marks
        and last.definition == note.definition
        and last.stateful == note.stateful
        and last.failed == note.failed
    )


def _names_and_types(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]
