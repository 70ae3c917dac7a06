"""How do the records of one source get into several tables in one pass, each exactly once?

One of the tables leads: the pass reads the range that waits for this table once. Spark computes the
columns of every table beside the rows, with a flag for the rows that a table takes
(`flows.one_pass`). One flow splits the rows by table (`flows.arrivals`). Then each table has a
commit of its own, as after a separate refresh: on the table version that was opened before the
read, with the ends of its own ranges as transactions. If the process dies between two commits, only
some tables are committed. The other tables stay as they are, read the same records separately, and
then share passes again.

No result depends on this pass. An error in the common part is not reported: the tables are then
refreshed one by one, and each reports its own error.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from springhouse.errors import SpringhouseError
from springhouse.flows.flow_settings import Settings
from springhouse.flows.one_pass import NeedsOwnPass, OnePass, QueryOutput, condition
from springhouse.lake.delta.alignment import same_columns
from springhouse.lake.delta.requirements import CommitPermit
from springhouse.lake.delta.tables import TableVersion, quoted
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.flows.arrival_graph import TableShare
from springhouse.lake.flows.arrivals import (
    ArrivalOutcome,
    arrive_shared,
    arrive_shared_in_tasks,
)
from springhouse.lake.flows.flow_configuration import flow_settings
from springhouse.lake.ingest.feeds import Feed
from springhouse.lake.ingest.flow_commit import batch_of_ranges, commit_append
from springhouse.lake.ingest.ingest_rows import IngestRows
from springhouse.lake.ingest.sharing import RowPipeline, row_pipeline, same_records
from springhouse.lake.ingest.target_columns import TargetColumns, fit_columns
from springhouse.lake.lake import Lake
from springhouse.lake.landing.landing import Done, Landed, landed_rows
from springhouse.lake.landing.quarantine import settle_quarantine
from springhouse.lake.sources.source import Range
from springhouse.lake.spark.quality import HIDDEN_COLUMNS
from springhouse.lake.spark.queries import errors_at
from springhouse.logged_errors import passing
from springhouse.planner.placement import fits_here
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import AppendFlow, OnViolation, Project, Table
from springhouse.units import Instant, Seconds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LOG = logging.getLogger("springhouse.ingest")

_KEPT, _JSON = HIDDEN_COLUMNS


@dataclass(frozen=True)
class Member:
    """A table with waiting records; its commits require the `permit`."""

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
    """A member of a pass: the table version that it will commit to, and the ranges it reads."""

    member: Member
    ground: TableVersion | None
    ranges: Mapping[str, Range]
    pipeline: RowPipeline


@dataclass(frozen=True)
class _PassResult:
    """The rows of one table after the pass, not yet committed; or the error that prevents this."""

    ready: _Ready
    columns: TargetColumns
    landed: Landed | SpringhouseError


def append_together(
    lake: Lake,
    project: Project,
    members: Sequence[Member],
    until: Mapping[str, int] | None = None,
) -> Iterator[tuple[str, Done | Exception]]:
    """Append the records that wait for all members; for each table, the result or the error.

    A table that can't share the pass is left out, and stays as it was.
    """
    began = lake.now()
    shared = _sharing(lake, project, members, until)
    if len(shared) < 2:
        return
    try:
        with shared[0].member.feed.keeping_memory():
            taken, results = _pass(lake, project, shared)
    except Exception as error:  # noqa: BLE001  each table alone will meet it, and say whose it is
        LOG.debug("no shared pass, each table is refreshed by itself: %s", error)
        return
    share = Seconds((lake.now() - began) / max(len(results), 1))
    together = [result.ready.member.name for result in results]
    for result in results:
        member = result.ready.member
        outcome: Done | Exception
        try:
            with errors_at(member.flow.place):
                own = lake.under(member.permit)
                outcome = _commit(own, project, result, taken, share, together)
        except Exception as error:  # noqa: BLE001  it is this table's alone
            outcome = error
        yield member.name, outcome


def _sharing(
    lake: Lake, project: Project, members: Sequence[Member], until: Mapping[str, int] | None
) -> list[_Ready]:
    """The first member with waiting records, and the members with the same waiting records."""
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
    """A member with its ranges: all waiting records, or the part that also waits for the leader."""
    lake = lake.under(member.permit)
    settle_quarantine(lake, member.name)
    ground = lake.find(member.name)
    member.feed.latest()
    member.feed.admit(lake.required)  # Until then, records may still change their offsets.
    ranges = member.feed.behind(ground, until)
    if lead is not None:
        shared = same_records(lead.member.feed, lead.ranges, member.feed, ranges)
        if shared is None:
            return None
        ranges = shared
    return _Ready(member, ground, ranges, row_pipeline(project, member.table)) if ranges else None


def _pass(
    lake: Lake, project: Project, shared: Sequence[_Ready]
) -> tuple[IngestRows, list[_PassResult]]:
    """Read once, compute the rows of all tables, and write the files of all tables."""
    lead = shared[0]
    size = lead.member.feed.size(lead.ranges)
    if not fits_here(size) and not lake.spark.shares_our_code:
        raise NeedsOwnPass("Spark's tasks can't run our code here")
    taken = IngestRows(lake, lead.member.feed, lead.ranges)
    (source,) = taken.good().values()
    rows, outputs = _selected(source, shared)
    rows, fitted = _fit_all(lake, project, shared, rows, outputs)
    if len(fitted) < 2:
        raise NeedsOwnPass("no other table can share this pass")
    rows, shares = _with_verdicts(rows, [(each.ready.member, each.output) for each in fitted])
    landed = _land(lake, rows, shares, size, flow_settings(project, lead.member.table))
    for each in fitted:
        if each.ready is not lead:
            each.ready.member.feed.learn_from(lead.member.feed)
    return taken, [
        _PassResult(each.ready, each.columns, landed[each.ready.member.name]) for each in fitted
    ]


def _selected(
    source: "DataFrame", shared: Sequence[_Ready]
) -> "tuple[DataFrame, list[tuple[_Ready, QueryOutput]]]":
    """The rows with the columns of every query beside them, and each query's own columns."""
    one = OnePass(source.columns)
    outputs: list[tuple[_Ready, QueryOutput]] = []
    for each in shared:
        output = one.begin()
        try:
            for _, selection in each.pipeline.steps:
                output = one.select(output, selection)
        except NeedsOwnPass:
            continue
        outputs.append((each, output))
    return _computed(source, one), outputs


def _computed(rows: "DataFrame", one: OnePass) -> "DataFrame":
    for level in one.levels:
        rows = rows.withColumns({name: sf.expr(text) for name, text in level.items()})
    return rows


@dataclass(frozen=True)
class _Fitted:
    """A member of the pass whose columns in the pass have the types of its table."""

    ready: _Ready
    columns: TargetColumns
    output: QueryOutput


def _fit_all(
    lake: Lake,
    project: Project,
    shared: Sequence[_Ready],
    rows: "DataFrame",
    outputs: "Sequence[tuple[_Ready, QueryOutput]]",
) -> "tuple[DataFrame, list[_Fitted]]":
    """The rows with columns of the right types for all tables; tables that don't fit drop out."""
    members: list[_Fitted] = []
    for ready, output in outputs:
        member = ready.member
        own = rows.select(*(sf.col(quoted(column)).alias(name) for name, column in output.columns))
        try:
            columns, _ = fit_columns(lake, project, member.table, member.flow, ready.ground, own)
        except SpringhouseError:
            continue
        if not same_columns(own.schema, columns.schema):
            rows, output = _cast(rows, member.name, output, columns.schema)
        members.append(_Fitted(ready, columns, output))
    return rows, members


def _cast(
    rows: "DataFrame", table: str, output: QueryOutput, schema: StructType
) -> "tuple[DataFrame, QueryOutput]":
    """The rows with further columns, so that one table finds all its columns with their types."""
    known = {name.lower(): column for name, column in output.columns}
    columns, added = [], {}
    for number, wanted in enumerate(schema.fields):
        column = known.get(wanted.name.lower())
        if column is None or rows.schema[column].dataType != wanted.dataType:
            value = sf.lit(None) if column is None else sf.col(quoted(column))
            column = f"__springhouse_fitted_{table}_{number}"
            added[column] = value.cast(wanted.dataType)
        columns.append((wanted.name, column))
    return rows.withColumns(added) if added else rows, QueryOutput(tuple(columns), output.flag)


def _with_verdicts(
    rows: "DataFrame", outputs: Sequence[tuple[Member, QueryOutput]]
) -> "tuple[DataFrame, list[TableShare]]":
    """The rows with the verdicts of all tables, and the columns that each table picks."""
    one = OnePass(rows.columns, "__springhouse_verdict_")
    records: dict[str, Column] = {}
    shares: list[TableShare] = []
    for member, output in outputs:
        expectations = member.table.expectations
        columns = list(output.columns)
        for number, expectation in enumerate(expectations):
            columns.append(
                (f"{_KEPT}{number}", one.compute(output, condition(expectation.condition)))
            )
        if any(each.on_violation is OnViolation.QUARANTINE for each in expectations):
            column = f"__springhouse_record_{member.name}"
            records[column] = _record_column(output)
            columns.append((_JSON, column))
        timestamp = member.table.timestamp
        shares.append(TableShare(member.name, tuple(columns), output.flag, expectations, timestamp))
    rows = _computed(rows, one)
    return _needed(rows.withColumns(records) if records else rows, shares), shares


def _record_column(output: QueryOutput) -> "Column":
    """A row as JSON, the form of the quarantine; NULL for rows of other tables."""
    named = (sf.col(quoted(column)).alias(name) for name, column in output.columns)
    record = sf.to_json(sf.struct(*named))
    return sf.when(sf.col(output.flag), record) if output.flag else record


def _needed(rows: "DataFrame", shares: Sequence[TableShare]) -> "DataFrame":
    """The rows and columns that at least one table picks."""
    flags = dict.fromkeys(share.flag for share in shares if share.flag is not None)
    if all(share.flag is not None for share in shares):
        rows = rows.where(" OR ".join(f"`{flag}`" for flag in flags))
    needed = dict.fromkeys(column for share in shares for _, column in share.columns)
    return rows.select(*(sf.col(quoted(column)) for column in (needed | flags)))


def _land(
    lake: Lake, rows: "DataFrame", shares: Sequence[TableShare], size: int, settings: Settings
) -> dict[str, Landed | SpringhouseError]:
    """The rows of each table in files that are not yet committed."""
    places = {share.table: lake.place(share.table) for share in shares}
    landed: dict[str, Landed | SpringhouseError] = {}
    if not fits_here(size):
        session = lake.spark.session()
        files, arrivals = arrive_shared_in_tasks(session, rows, shares, places, settings)
        for name, arrived in arrivals.items():
            if isinstance(arrived, ArrivalOutcome):
                landed[name] = landed_rows(name, arrived, files[name])
            else:
                landed[name] = arrived
        return landed
    kept, arrivals = arrive_shared(rows.toArrow(), shares, settings)
    for name, arrived in arrivals.items():
        if isinstance(arrived, ArrivalOutcome):
            add = [write_arrow(places[name], kept[name])] if kept[name].num_rows else []
            landed[name] = landed_rows(name, arrived, add, kept[name])
        else:
            landed[name] = arrived
    return landed


def _commit(
    lake: Lake,
    project: Project,
    result: _PassResult,
    taken: IngestRows,
    share: Seconds,
    together: Sequence[str],
) -> Done:
    """One table's commit. `share` is its part of the seconds that the whole pass took."""
    if isinstance(result.landed, SpringhouseError):
        raise result.landed
    member, ranges = result.ready.member, result.ready.ranges
    quarantined = [*taken.bad, *result.landed.quarantined]
    batch = batch_of_ranges(lake, project, member.feed, ranges, taken.count, len(quarantined))
    others = tuple(name for name in together if name != member.name)
    return commit_append(
        lake,
        member.table,
        member.flow,
        result.columns,
        result.landed,
        quarantined,
        replace(batch, together=others),
        member.plan,
        Instant(lake.now() - share),
    )
