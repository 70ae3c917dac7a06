"""How do the records of one source get into several tables in one pass, each exactly once?

One of the tables leads: the range that waits for it is taken in once, and Spark computes what every
table wants as columns and flags beside its rows (`flows.one_pass`). One flow gives each table its
rows (`flows.arriving`), and then each has a commit of its own, as if it had been alone: on the
ground that was opened before anything was read, with the ends of its own ranges as transactions. So
a process that dies between two commits has committed some tables and not the others; those stand
where they stood, take the same records in by themselves, and meet the rest again.

Nobody depends on it. What goes wrong in the common part is not told: the tables are then refreshed
one by one, and each meets its own problem.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from springhouse.errors import SpringhouseError
from springhouse.flows.flow_settings import Settings
from springhouse.flows.one_pass import Alone, OnePass, QueryOutput, condition
from springhouse.lake.delta.alignment import same_columns
from springhouse.lake.delta.requirements import CommitPermit
from springhouse.lake.delta.tables import TableVersion, quoted
from springhouse.lake.delta.writing import rows_of, write_arrow
from springhouse.lake.flows.arriving import (
    Arrived,
    TableShare,
    arrive_together,
    arrive_together_in_tasks,
)
from springhouse.lake.flows.flow_configuration import flow_settings
from springhouse.lake.ingest.feeds import Feed
from springhouse.lake.ingest.refresh_table import Fit, IngestRows, batch_of, finish, fitted
from springhouse.lake.ingest.sharing import RowPipeline, chain, same_records
from springhouse.lake.lake import Lake
from springhouse.lake.landing.landing import Done, Landed
from springhouse.lake.landing.quarantine import settle
from springhouse.lake.sources.source import Range
from springhouse.lake.spark.quality import HIDDEN_COLUMNS
from springhouse.lake.spark.queries import blamed_on
from springhouse.logs import passing
from springhouse.planner.placement import fits_here
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import AppendFlow, OnViolation, Project, Table
from springhouse.units import Instant, Seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOG = logging.getLogger("springhouse.ingest")

_KEPT, _JSON = HIDDEN_COLUMNS


@dataclass(frozen=True)
class Member:
    """A table that wants what waits for it; its commits require the `permit`."""

    table: Table
    feed: Feed
    plan: RefreshPlan
    permit: CommitPermit = field(default_factory=CommitPermit)

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def flow(self) -> AppendFlow:
        assert isinstance(self.feed.flow, AppendFlow)
        return self.feed.flow


@dataclass(frozen=True)
class _Ready:
    """A member of a pass: what its work stands on, and what it takes in."""

    member: Member
    ground: TableVersion | None
    ranges: Mapping[str, Range]
    chain: RowPipeline


@dataclass(frozen=True)
class _Given:
    """What a table was given by the pass, to be committed on its ground."""

    ready: _Ready
    fit: Fit
    landed: Landed | SpringhouseError


def append_together(
    lake: Lake,
    project: Project,
    members: Sequence[Member],
    until: Mapping[str, int] | None = None,
) -> Iterator[tuple[str, Done | Exception]]:
    """Append what waits for all of them, as far as it is the same; what became of each.

    Nothing is said of a table that could not be served with the others: it is as it was.
    """
    began = lake.now()
    shared = _sharing(lake, project, members, until)
    if len(shared) < 2:
        return
    try:
        with shared[0].member.feed.keeping_memory():
            taken, given = _pass(lake, project, shared)
    except Exception as error:  # noqa: BLE001  each table alone will meet it, and say whose it is
        LOG.debug("no shared pass, each table is refreshed by itself: %s", error)
        return
    share = Seconds((lake.now() - began) / max(len(given), 1))
    together = [each.ready.member.name for each in given]
    for each in given:
        member = each.ready.member
        outcome: Done | Exception
        try:
            with blamed_on(member.flow.place):
                own = lake.under(member.permit)
                outcome = _commit(own, project, each, taken, share, together)
        except Exception as error:  # noqa: BLE001  it is this table's alone
            outcome = error
        yield member.name, outcome


def _sharing(
    lake: Lake, project: Project, members: Sequence[Member], until: Mapping[str, int] | None
) -> list[_Ready]:
    """The first member for which something waits, and those for which the same does."""
    shared: list[_Ready] = []
    for member in members:
        with passing(LOG, "the refresh of this table alone reports it", Exception):
            ready = _ready(lake, project, member, until, shared[0] if shared else None)
            shared += [ready] if ready is not None else []
    return shared


def _ready(
    lake: Lake,
    project: Project,
    member: Member,
    until: Mapping[str, int] | None,
    lead: _Ready | None,
) -> _Ready | None:
    """What a member takes in: what waits for it, or of this what waits for the one that leads."""
    lake = lake.under(member.permit)
    settle(lake, member.name)
    ground = lake.find(member.name)
    member.feed.latest()
    # Before records are compared, which offsets may still change places.
    member.feed.admit(lake.required)
    ranges = member.feed.behind(ground, until)
    if lead is not None:
        found = same_records(lead.member.feed, lead.ranges, member.feed, ranges)
        if found is None:
            return None
        ranges = found
    return _Ready(member, ground, ranges, chain(project, member.table)) if ranges else None


def _pass(
    lake: Lake, project: Project, shared: Sequence[_Ready]
) -> tuple[IngestRows, list[_Given]]:
    """Read once, compute for all, and write the files of all."""
    lead = shared[0]
    size = lead.member.feed.size(lead.ranges)
    if not fits_here(size) and not lake.spark.shares_our_code:
        raise Alone("nobody's code but Spark's runs in these tasks")
    taken = IngestRows(lake, lead.member.feed, lead.ranges)
    (source,) = taken.good().values()
    rows, lanes = _selected(source, shared)
    grounds: dict[str, Fit] = {}
    for each in shared:
        if each.member.name in lanes:
            found = _fitting(lake, project, each, rows, lanes[each.member.name])
            if found is not None:
                grounds[each.member.name], rows, lanes[each.member.name] = found
    served = [each for each in shared if each.member.name in grounds]
    if len(served) < 2:
        raise Alone("nobody shares this pass")
    rows, arrivals = _judged(rows, [(each.member, lanes[each.member.name]) for each in served])
    landed = _land(lake, rows, arrivals, size, flow_settings(project, lead.member.table))
    for each in served:
        if each is not lead:
            each.member.feed.learn_from(lead.member.feed)
    return taken, [
        _Given(each, grounds[each.member.name], landed[each.member.name]) for each in served
    ]


def _selected(
    source: "DataFrame", shared: Sequence[_Ready]
) -> "tuple[DataFrame, dict[str, QueryOutput]]":
    """The rows with what every query computes beside them, and where each has its own."""
    one = OnePass(source.columns)
    lanes: dict[str, QueryOutput] = {}
    for each in shared:
        lane = one.begin()
        try:
            for _, selection in each.chain.steps:
                lane = one.select(lane, selection)
        except Alone:
            continue
        lanes[each.member.name] = lane
    return _computed(source, one), lanes


def _computed(rows: "DataFrame", one: OnePass) -> "DataFrame":
    for level in one.levels:
        rows = rows.withColumns({name: sf.expr(text) for name, text in level.items()})
    return rows


def _fitting(
    lake: Lake, project: Project, ready: _Ready, rows: "DataFrame", lane: QueryOutput
) -> "tuple[Fit, DataFrame, QueryOutput] | None":
    """The columns that the table will have, and its lane with the same."""
    member = ready.member
    own = rows.select(*(sf.col(quoted(column)).alias(name) for name, column in lane.columns))
    try:
        fit, _ = fitted(lake, project, member.table, member.flow, ready.ground, own)
    except SpringhouseError:
        return None
    if same_columns(own.schema, fit.schema):
        return fit, rows, lane
    have = {name.lower(): column for name, column in lane.columns}
    columns, more = [], {}
    for number, wanted in enumerate(fit.schema.fields):
        column = have.get(wanted.name.lower())
        if column is None or rows.schema[column].dataType != wanted.dataType:
            given = sf.lit(None) if column is None else sf.col(quoted(column))
            column = f"__springhouse_fitted_{member.name}_{number}"
            more[column] = given.cast(wanted.dataType)
        columns.append((wanted.name, column))
    return fit, rows.withColumns(more) if more else rows, QueryOutput(tuple(columns), lane.flag)


def _judged(
    rows: "DataFrame", lanes: Sequence[tuple[Member, QueryOutput]]
) -> "tuple[DataFrame, list[TableShare]]":
    """The rows with the verdicts of all tables, and what each table picks out of them."""
    one = OnePass(rows.columns, "__springhouse_verdict_")
    records, arrivals = {}, []
    for member, lane in lanes:
        expectations = member.table.expectations
        columns = list(lane.columns)
        for number, each in enumerate(expectations):
            verdict = one.compute(lane, condition(each.condition))
            columns.append((f"{_KEPT}{number}", verdict))
        if any(each.on_violation is OnViolation.QUARANTINE for each in expectations):
            named = (sf.col(quoted(column)).alias(name) for name, column in lane.columns)
            record = sf.to_json(sf.struct(*named))
            column = f"__springhouse_record_{member.name}"
            records[column] = sf.when(sf.col(lane.flag), record) if lane.flag else record
            columns.append((_JSON, column))
        arrivals.append(
            TableShare(member.name, tuple(columns), lane.flag, expectations, member.table.timestamp)
        )
    rows = _computed(rows, one)
    rows = rows.withColumns(records) if records else rows
    flags = [each.flag for each in arrivals]
    wanted = dict.fromkeys(flag for flag in flags if flag is not None)
    if None not in flags:
        rows = rows.where(" OR ".join(f"`{flag}`" for flag in wanted))
    needed = dict.fromkeys(column for each in arrivals for _, column in each.columns)
    return rows.select(*(sf.col(quoted(column)) for column in (needed | wanted))), arrivals


def _land(
    lake: Lake, rows: "DataFrame", arrivals: Sequence[TableShare], size: int, settings: Settings
) -> dict[str, Landed | SpringhouseError]:
    """The rows of each table in files that nobody has committed yet."""
    places = {each.table: lake.place(each.table) for each in arrivals}
    landed: dict[str, Landed | SpringhouseError] = {}
    if not fits_here(size):
        session = lake.spark.session()
        files, judgements = arrive_together_in_tasks(session, rows, arrivals, places, settings)
        for name, found in judgements.items():
            landed[name] = (
                _landed(name, found, Landed(files[name], rows_of(files[name])))
                if isinstance(found, Arrived)
                else found
            )
        return landed
    kept, judgements = arrive_together(rows.toArrow(), arrivals, settings)
    for name, found in judgements.items():
        if isinstance(found, Arrived):
            add = [write_arrow(places[name], kept[name])] if kept[name].num_rows else []
            landed[name] = _landed(name, found, Landed(add, kept[name].num_rows, kept[name]))
        else:
            landed[name] = found
    return landed


def _landed(table: str, arrived: Arrived, written: Landed) -> Landed:
    return replace(
        written,
        aside=[(reason, record, table) for reason, record in arrived.set_aside],
        violations=arrived.violations,
        newest=arrived.newest,
        activities=arrived.activities,
    )


def _commit(
    lake: Lake,
    project: Project,
    given: _Given,
    taken: IngestRows,
    share: Seconds,
    together: Sequence[str],
) -> Done:
    """One table's commit. Of the pass it bears its share: all of them are what it took."""
    if isinstance(given.landed, SpringhouseError):
        raise given.landed
    member, ranges = given.ready.member, given.ready.ranges
    aside = [*taken.bad, *given.landed.aside]
    batch = batch_of(lake, project, member.feed, ranges, taken.count, len(aside))
    others = tuple(name for name in together if name != member.name)
    began = Instant(lake.now() - share)
    return finish(
        lake,
        member.table,
        member.flow,
        given.fit,
        given.landed,
        aside,
        replace(batch, together=others),
        member.plan,
        began,
    )
