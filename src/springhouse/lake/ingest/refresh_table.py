"""How do new records get into a base table, each exactly once?

One commit holds the rows of a range of offsets *and* the ends of the range, as transactions on the
ground from which the starts were read. So either both are there or neither, and whoever tries the
same range again is rejected. Records that do not fit, and rows that break an expectation, are in a
file that the commit names; the table's quarantine adds it just after (see `quarantine`).

A table is made, and its columns grow, when the rows are written and only their commit is left to
do: a refresh that fails leaves no trace in the schema.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from springhouse.errors import SpringhouseError
from springhouse.lake.delta.alignment import (
    aligned,
    new_columns,
    parsed_schema,
    prove_types,
    same_columns,
    widened,
)
from springhouse.lake.delta.commits import (
    Change,
    able_to_hold,
    add_columns,
    commit,
    ensure,
)
from springhouse.lake.delta.note import FlowNote, Note
from springhouse.lake.delta.requirements import OffsetsUnread
from springhouse.lake.delta.tables import TableVersion, frame_of
from springhouse.lake.delta.writing import write_with_spark
from springhouse.lake.flows.flow_configuration import flow_settings
from springhouse.lake.ingest.checkpoints import StreamingFlow
from springhouse.lake.ingest.feeds import Feed
from springhouse.lake.lake import Lake
from springhouse.lake.landing.inputs import RefreshInputs
from springhouse.lake.landing.landing import Done, Landed, land, land_arrow
from springhouse.lake.landing.quarantine import Aside, settle, write_aside
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD, Range
from springhouse.lake.spark.queries import blamed_on
from springhouse.planner.logs import provenance_of
from springhouse.planner.placement import fits_here
from springhouse.planner.provenance import Provenance, joined
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import (
    AppendFlow,
    Flow,
    Project,
    Reference,
    SqlQuery,
    Table,
)
from springhouse.project.lineage.channels import is_channel
from springhouse.units import Instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MARKS = (BAD, RECORD, ORIGIN)


def append(
    lake: Lake,
    project: Project,
    table: Table,
    feed: Feed,
    plan: RefreshPlan,
    until: Mapping[str, int] | None = None,
) -> Done | None:
    """Append the rows of everything new that the flow's streams have; None if there is nothing."""
    flow = feed.flow
    assert isinstance(flow, AppendFlow)
    began = lake.now()
    ground = lake.find(table.name)
    settle(lake, table.name)
    ranges = feed.behind(ground, until)
    if not ranges:
        return None if ground else _made_empty(lake, project, table, feed, plan)
    feed.admit(lake.required)
    with blamed_on(flow.place), feed.keeping_memory():
        taken = IngestRows(lake, feed, ranges)
        passed_on = _passed_on(table, flow, ground, taken)
        if ground is not None and passed_on is not None:
            fit = Fit(ground, ground.schema)
            landed = land_arrow(
                lake,
                table.name,
                passed_on,
                timestamp=table.timestamp,
                settings=flow_settings(project, table),
            )
        else:
            inputs = RefreshInputs(lake, project, {}, taken.good())
            rows = inputs.frame(flow.query)
            if ground is not None and not flow.by_name:
                rows = rows.toDF(*ground.schema.fieldNames())
            fit, rows = fitted(lake, project, table, flow, ground, rows)
            landed = land(
                lake,
                table.name,
                rows,
                size=feed.size(ranges) + inputs.size,
                expectations=table.expectations,
                timestamp=table.timestamp,
                settings=flow_settings(project, table),
            )
        aside = [*taken.bad, *landed.aside]
        batch = batch_of(lake, project, feed, ranges, taken.count, len(aside))
        return finish(lake, table, flow, fit, landed, aside, batch, plan, began)


def _passed_on(
    table: Table, flow: AppendFlow, ground: TableVersion | None, taken: "IngestRows"
) -> pa.Table | None:
    """The rows as they came, where `SELECT * FROM STREAM …` changes nothing about them.

    Most flows are this, and are spared a second trip through Spark.
    """
    query = flow.query
    if ground is None or table.expectations or not isinstance(query, SqlQuery):
        return None
    around = query.spliced(lambda reference: "").split()
    if [word.lower() for word in around] != ["select", "*", "from"]:
        return None
    rows, schema = taken.held.get(query.references[0], (None, None))
    return rows if schema is not None and same_columns(schema, ground.schema) else None


def _made_empty(
    lake: Lake, project: Project, table: Table, feed: Feed, plan: RefreshPlan
) -> Done | None:
    """The table without rows, if its columns can be told before any record is there."""
    assert isinstance(feed.flow, AppendFlow)
    try:
        taken = IngestRows(lake, feed, {})
        rows = RefreshInputs(lake, project, {}, taken.good()).frame(feed.flow.query)
        if table.schema is None and not rows.columns:
            return None
        fit, _ = fitted(lake, project, table, feed.flow, None, rows)
        fit.ready(lake, table.name)
    except SpringhouseError:
        return None  # The first records will tell, or say what is wrong.
    return Done(table.name, "schema", reason=plan.reason)


def append_batch(
    lake: Lake,
    project: Project,
    table: Table,
    stream: StreamingFlow,
    rows: "DataFrame",
    size: int,
    number: int,
    reflected: Mapping[str, int] | None,
    plan: RefreshPlan,
) -> Done:
    """Append a micro-batch of Structured Streaming; its number versions its transaction.

    `reflected` is None for a batch after which more comes from the same versions.
    """
    began, flow = lake.now(), stream.flow
    settle(lake, table.name)
    fit, rows = fitted(lake, project, table, flow, lake.find(table.name), rows)
    landed = land(
        lake,
        table.name,
        rows,
        size=size,
        expectations=table.expectations,
        timestamp=table.timestamp,
        settings=flow_settings(project, table),
    )
    transaction = stream.transaction
    offsets = {transaction: (number, number + 1)}
    noted = FlowNote(
        offsets, rows_in=landed.count, quarantined=len(landed.aside), streams=stream.noted()
    )
    channel = is_channel(project, table.name)
    partial = reflected is None and not channel
    if reflected is None:
        provenance = _reflected(lake, table.name).get(flow.name, Provenance())
    else:
        provenance = provenance_of(lake, reflected)
    batch = IngestBatch({transaction: number + 1}, noted, channel, provenance, partial)
    return finish(lake, table, flow, fit, landed, landed.aside, batch, plan, began)


@dataclass(frozen=True)
class IngestBatch:
    """What one commit of a flow takes in.

    `ends` are its transactions, `reflected` the versions of other tables that the rows came from;
    `channel` says that something outside the warehouse flows in, so that the table is a channel;
    `partial` that more of the same versions follows; `together` are the tables in the same pass.
    """

    ends: Mapping[str, int]
    noted: FlowNote
    channel: bool
    reflected: Provenance
    partial: bool = False
    together: tuple[str, ...] = ()


def batch_of(
    lake: Lake,
    project: Project,
    feed: Feed,
    ranges: Mapping[str, Range],
    rows_in: int,
    aside: int,
) -> IngestBatch:
    """What the commit of these ranges takes in."""
    offsets = {name: (given.start, given.end) for name, given in ranges.items()}
    noted = FlowNote(offsets, feed.memory(), rows_in, aside, streams=feed.noted(ranges))
    ends = {name: given.end for name, given in ranges.items()}
    channel = is_channel(project, feed.flow.target)
    return IngestBatch(ends, noted, channel, provenance_of(lake, feed.inputs(ranges)))


class IngestRows:
    """The rows of some ranges, the good ones by where the query names them, apart from the bad.

    Small ranges are read once, to this process, and go on from here. Of large ones the bad rows are
    found by a look of their own: `DataFrame.observe` would count them on the way to the good ones,
    but it was tried. Classic Spark waits for ever when the optimizer takes the observed rows out of
    the plan (a join with an empty table), the client of Spark Connect loses what was observed below
    `spark.sql`, and Sail has no such thing.
    """

    def __init__(self, lake: Lake, feed: Feed, ranges: Mapping[str, Range]) -> None:
        self.held: dict[Reference, tuple[pa.Table, StructType]] = {}
        self._lazy: dict[Reference, DataFrame] = {}
        self.bad: list[Aside] = []
        self.count = 0
        self._feed, self._ranges = feed, ranges
        small = fits_here(feed.size(ranges))
        self._session = lake.spark.session()
        for reference, raw in feed.read(self._session, ranges, lake.remote_scans).items():
            if BAD not in raw.columns:
                self._lazy[reference] = raw
            elif small:
                self._take(reference, raw)
            else:
                self._lazy[reference] = raw.where(sf.col(BAD).isNull()).drop(*_MARKS)
                self._set_aside(reference)
                self.count += raw.count()

    def good(self) -> "dict[Reference, DataFrame]":
        """The good rows, by where the query names them."""
        held = {
            reference: frame_of(self._session, rows, schema)
            for reference, (rows, schema) in self.held.items()
        }
        return self._lazy | held

    def _take(self, reference: Reference, raw: "DataFrame") -> None:
        schema = StructType([f for f in raw.schema.fields if f.name not in _MARKS])
        rows = raw.toArrow()
        fits = pc.is_null(rows[BAD])
        good = rows.drop_columns(list(_MARKS)).filter(fits)
        self.count += rows.num_rows
        if good.num_rows < rows.num_rows:
            self._set_aside(reference)
        self.held[reference] = good, schema

    def _set_aside(self, reference: Reference) -> None:
        """Read the bad rows once more, to learn why they are bad: few ranges have any."""
        again = self._feed.read_why(self._session, reference, self._ranges)
        marks = again.where(sf.col(BAD).isNotNull()).select(*_MARKS).toArrow()
        self.bad += [(row[BAD], row[RECORD], row[ORIGIN]) for row in marks.to_pylist()]


@dataclass(frozen=True)
class Fit:
    """A table and the columns that it has to have when rows are committed to it."""

    ground: TableVersion | None
    schema: StructType
    channel: bool = False

    def ready(self, lake: Lake, table: str) -> TableVersion:
        """The table with these columns: made, grown or widened, if it has to be."""
        if self.ground is None:
            note = _schema_note(lake, self.channel, "created")
            # Another process may have made it by now, with other columns.
            found = ensure(lake.place(table), self.schema, note, lake.required)
            return Fit(found, self.schema, self.channel).ready(lake, table)
        ground, have = self.ground, {name.lower() for name in self.ground.schema.fieldNames()}
        extra = [field for field in self.schema.fields if field.name.lower() not in have]
        wider = widened(ground.schema, self.schema)
        if extra or not same_columns(wider, ground.schema):
            note = _schema_note(lake, self.channel, "new types")
            ground = able_to_hold(ground, self.schema, note, lake.required)
        if not same_columns(wider, ground.schema):
            ground = _rewritten(lake, ground, wider, self.channel)
        if extra:
            names = ", ".join(field.name for field in extra)
            note = _schema_note(lake, self.channel, f"new columns: {names}")
            ground = add_columns(ground, extra, note, lake.required)
        return ground


def fitted(
    lake: Lake,
    project: Project,
    table: Table,
    flow: Flow,
    ground: TableVersion | None,
    rows: "DataFrame",
) -> "tuple[Fit, DataFrame]":
    """The columns that the table will have, and the rows with the same columns."""
    session = lake.spark.session()
    channel = is_channel(project, table.name)
    promised = None
    if table.schema is not None:
        promised = parsed_schema(session, table.schema, str(table.place))
    wanted = promised or StructType([])
    # What a flow brings beyond the declaration is kept, too.
    wanted = StructType([*wanted.fields, *new_columns(rows, wanted)])
    schema = wanted
    if ground is not None:
        schema = widened(ground.schema, wanted)
        have = {name.lower() for name in schema.fieldNames()}
        extra = [field for field in wanted.fields if field.name.lower() not in have]
        schema = StructType([*schema.fields, *extra])
    prove_types(schema, str(flow.place))
    return Fit(ground, schema, channel), aligned(rows, schema, str(flow.place))


def _rewritten(lake: Lake, ground: TableVersion, schema: StructType, channel: bool) -> TableVersion:
    """The table with wider types, its files written anew: any Delta reader can read them."""
    began = lake.now()
    wider = [
        f"{new.name} {old.dataType.simpleString()} to {new.dataType.simpleString()}".upper()
        for old, new in zip(ground.schema.fields, schema.fields, strict=True)
        if old.dataType != new.dataType
    ]
    stored = ground.read(lake.spark.session(), scans=lake.remote_scans)
    rows = aligned(stored, schema, ground.storage.root)
    add = write_with_spark(ground.storage, rows) if ground.files else []
    note = Note(
        kind="compaction",
        at=lake.now(),
        channel=channel,
        variant="widening",
        reason=f"wider types: {', '.join(wider)}",
        rows=ground.rows,
        seconds=lake.now() - began,
    )
    commit(ground, Change(note, add, replace=schema), lake.required)
    found = lake.find(ground.storage.root.rpartition("/")[2])
    assert found is not None
    return found


def _schema_note(lake: Lake, channel: bool, reason: str) -> Note:
    return Note(kind="schema", at=lake.now(), channel=channel, reason=reason)


def finish(
    lake: Lake,
    table: Table,
    flow: Flow,
    fit: Fit,
    landed: Landed,
    aside: Sequence[Aside],
    batch: IngestBatch,
    plan: RefreshPlan,
    began: Instant,
) -> Done:
    """Commit the rows with the ends of their ranges, and then add to the quarantine."""
    batch = with_aside(lake, table, flow, batch, aside)
    ground = fit.ready(lake, table.name)
    note = described(
        lake,
        table,
        flow,
        batch,
        landed,
        Note(
            kind="append",
            at=lake.now(),
            variant="append",
            reason=plan.reason,
            since=plan.since,
            rows=ground.rows + landed.count,
            rows_added=landed.count,
            seconds=lake.now() - began,
            changes=None if landed.add else (),
        ),
    )
    requires = [OffsetsUnread(ground, batch.noted.offsets), *lake.required]
    commit(ground, Change(note, landed.add, transactions=batch.ends), requires)
    if aside:
        settle(lake, table.name)
    return Done(
        table.name,
        "append",
        note.rows,
        landed.count,
        rows_set_aside=len(aside),
        seconds=lake.now() - began,
        reason=plan.reason,
    )


def with_aside(
    lake: Lake, table: Table, flow: Flow, batch: IngestBatch, aside: Sequence[Aside]
) -> IngestBatch:
    """The batch with the file of what it sets aside, for the quarantine to add after its commit."""
    path = write_aside(lake, table.name, flow.name, aside, lake.now())
    return replace(batch, noted=replace(batch.noted, aside=path))


def described(
    lake: Lake, table: Table, flow: Flow, batch: IngestBatch, landed: Landed, note: Note
) -> Note:
    """The note with what every commit of a flow says: where it stands, and what it reflects."""
    newest = lake.log(table.name).newest()
    before = newest.note.after if newest and newest.note else Provenance()
    reflected = _reflected(lake, table.name)
    others = [provenance for name, provenance in reflected.items() if name != flow.name]
    noted = replace(batch.noted, reflects=batch.reflected.as_json())
    return replace(
        note,
        channel=batch.channel,
        partial=batch.partial,
        together=batch.together,
        freshness=_freshness(lake, table, landed, note.at),
        before=before,
        after=joined([batch.reflected, *others]),
        flows={flow.name: noted},
        violations=landed.violations,
        activities=landed.activities,
    )


def _reflected(lake: Lake, table: str) -> dict[str, Provenance]:
    """What each flow into the table had passed on when it committed last."""
    last: dict[str, Provenance] = {}
    for made in reversed(lake.log(table).commits()):
        for name, noted in made.note.flows.items() if made.note else ():
            last.setdefault(name, Provenance.from_json(noted.reflects))
    return last


def _freshness(lake: Lake, table: Table, landed: Landed, at: Instant) -> Instant | None:
    """The safe trailing edge (001 section 2.2): before it no record will come any more."""
    if table.timestamp is None:
        return at
    newest = lake.log(table.name).newest()
    before = newest.note.freshness if newest and newest.note else None
    if landed.newest is None:
        return before
    # A record may be dated ahead; that nothing older comes any more, it can't say.
    edge = Instant(min(landed.newest - table.lateness_seconds, at))
    return edge if before is None else max(before, edge)
