"""How do rows that arrive become kept rows, rows set aside and counts, in one pass?

A flow with one activity, a router: what stays goes to the table, what breaks an expectation and is
declared so goes to quarantine, and at the end come the counts: how many rows broke what, and the
newest timestamp. What each activity did is written into the commit. Small arrivals go through it in
this process, large ones inside Spark's tasks, whose writers tell the driver their files.

Spark computes the verdicts beside the rows (`quality.with_verdicts`): conditions are in its SQL.

Several tables over one source have one such flow between them: every row pack goes to a router of
each table, behind an activity that picks its rows and columns out of what Spark computed for all.
"""

import logging
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction

from springhouse.errors import SchemaError, SpringhouseError
from springhouse.flows.activities.per_pack import PackActivity
from springhouse.flows.endpoints import Collected
from springhouse.flows.flow_graph import Edge, FlowGraph, FlowNode, NodeKind, Output, recordset
from springhouse.flows.flow_settings import Settings
from springhouse.flows.monitor import ActivityStatistics
from springhouse.flows.run import run_flow
from springhouse.lake.delta.tables import arrow_schema, read_arrow
from springhouse.lake.flows.run_flow import run_stages
from springhouse.lake.spark.quality import HIDDEN_COLUMNS, failure, judged
from springhouse.lake.storage.storage import Storage
from springhouse.logs import passing
from springhouse.project.declarations.declaration import Expectation, OnViolation
from springhouse.units import Instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG = logging.getLogger("springhouse.flows")

_ASIDE = pa.schema({"reason": pa.string(), "record": pa.string()})
_COUNTS = pa.schema({"name": pa.string(), "value": pa.float64()})
_NEWEST = "the newest timestamp"
_SELECT, _EXPECTATIONS = "select", "expectations"
# No table is called like these: names have no spaces.
_ARRIVED, _SET_ASIDE, _COUNTED = "what arrived", "the quarantine", "the counts"


@dataclass(frozen=True)
class ArrivalOutcome:
    """What became of the other rows: set aside as (reason, record), or only counted."""

    set_aside: Sequence[tuple[str, str]]
    violations: Mapping[str, int]
    newest: Instant | None
    activities: Mapping[str, Mapping[str, Any]]


def arrive(
    rows: pa.Table,
    expectations: Sequence[Expectation],
    table: str,
    timestamp: str | None,
    settings: Settings,
) -> tuple[pa.Table, ArrivalOutcome]:
    """Rows with their verdicts, through the flow, in this process; those that stay come first.

    An error if a row broke what must not be broken.
    """
    graph = arrival_flow(rows.schema, expectations, table, timestamp if rows.num_rows else None)
    sinks = {name: Collected(graph.nodes[name].inputs[0]) for name in graph.targets}
    took = run_flow(graph, {_ARRIVED: rows}, sinks, settings)
    aside = sinks[_SET_ASIDE].table().to_pylist()
    counts = sinks[_COUNTED].table().to_pylist()
    return sinks[table].table(), _outcome(aside, counts, took.activities, expectations, table)


def arrive_in_tasks(
    spark: "SparkSession",
    rows: "DataFrame",
    expectations: Sequence[Expectation],
    table: str,
    timestamp: str | None,
    place: Storage,
    settings: Settings,
) -> tuple[Sequence[AddAction], ArrivalOutcome]:
    """The same inside Spark's tasks, for rows that are too many; files of what stays come first."""
    graph = arrival_flow(arrow_schema(rows.schema), expectations, table, timestamp)
    beside = place.inside(f"_arriving-{uuid.uuid4().hex}")
    places = {name: place if name == table else beside.inside(name) for name in graph.targets}
    try:
        written = run_stages(spark, graph, {_ARRIVED: rows}, places, settings)
        aside, counts = (
            read_arrow(
                places[name],
                [add.path for add in written.files[name]],
                graph.nodes[name].inputs[0].names,
            ).to_pylist()
            for name in (_SET_ASIDE, _COUNTED)
        )
    finally:
        with passing(LOG, "vacuum removes what is left", OSError):
            beside.remove()
    judgement = _outcome(aside, counts, written.activities, expectations, table)
    return written.files[table], judgement


@dataclass(frozen=True)
class TableShare:
    """What one of several tables picks out of the rows that arrive for all of them.

    `columns` are its own names with those of the pass, verdicts and all; `flag` is the column that
    says which rows are its, None if all are.
    """

    table: str
    columns: tuple[tuple[str, str], ...]
    flag: str | None
    expectations: Sequence[Expectation]
    timestamp: str | None


def arrive_shared(
    rows: pa.Table, arrivals: Sequence[TableShare], settings: Settings
) -> tuple[Mapping[str, pa.Table], Mapping[str, ArrivalOutcome | SpringhouseError]]:
    """Rows for several tables through one flow, in this process: what stays of them, by table.

    Where a row broke what must not be broken, that is the answer for its table alone.
    """
    graph = shared_arrival_flow(rows.schema, arrivals)
    sinks = {name: Collected(graph.nodes[name].inputs[0]) for name in graph.targets}
    took = run_flow(graph, {_ARRIVED: rows}, sinks, settings)
    given = {name: sink.table() for name, sink in sinks.items()}
    judgements = {
        each.table: _outcome_of(
            each,
            given[_name_of(_SET_ASIDE, each)].to_pylist(),
            given[_name_of(_COUNTED, each)].to_pylist(),
            took.activities,
        )
        for each in arrivals
    }
    return {each.table: given[each.table] for each in arrivals}, judgements


def arrive_shared_in_tasks(
    spark: "SparkSession",
    rows: "DataFrame",
    arrivals: Sequence[TableShare],
    places: Mapping[str, Storage],
    settings: Settings,
) -> tuple[Mapping[str, Sequence[AddAction]], Mapping[str, ArrivalOutcome | SpringhouseError]]:
    """The same inside Spark's tasks, which write the files of all tables in one pass."""
    graph = shared_arrival_flow(arrow_schema(rows.schema), arrivals)
    beside = places[arrivals[0].table].inside(f"_arriving-{uuid.uuid4().hex}")
    whole = {name: places.get(name) or beside.inside(name) for name in graph.targets}
    try:
        written = run_stages(spark, graph, {_ARRIVED: rows}, whole, settings)

        def told(name: str) -> list[Mapping[str, Any]]:
            paths = [add.path for add in written.files[name]]
            found = read_arrow(whole[name], paths, graph.nodes[name].inputs[0].names)
            return [dict(row) for row in found.to_pylist()]

        judgements = {
            each.table: _outcome_of(
                each,
                told(_name_of(_SET_ASIDE, each)),
                told(_name_of(_COUNTED, each)),
                written.activities,
            )
            for each in arrivals
        }
    finally:
        with passing(LOG, "vacuum removes what is left", OSError):
            beside.remove()
    return {each.table: written.files[each.table] for each in arrivals}, judgements


def _outcome_of(
    arrival: TableShare,
    aside: Sequence[Mapping[str, Any]],
    counts: Sequence[Mapping[str, Any]],
    activities: Mapping[str, ActivityStatistics],
) -> ArrivalOutcome | SpringhouseError:
    # Told as if it had been alone: in the pass, its activities carry its name.
    own = {
        _SELECT: activities.get(_name_of(_SELECT, arrival)),
        _EXPECTATIONS: activities.get(_name_of(_EXPECTATIONS, arrival)),
        f"write {arrival.table}": activities.get(f"write {arrival.table}"),
        f"write {_SET_ASIDE}": activities.get(f"write {_name_of(_SET_ASIDE, arrival)}"),
    }
    read = {name: did for name, did in activities.items() if not _belongs_to_one_table(name)}
    did = read | {name: found for name, found in own.items() if found is not None}
    try:
        return _outcome(aside, counts, did, arrival.expectations, arrival.table)
    except SpringhouseError as broken:
        return broken


def _belongs_to_one_table(activity: str) -> bool:
    return activity.startswith((_name_of(_SELECT), _name_of(_EXPECTATIONS), "write "))


def _name_of(what: str, arrival: TableShare | None = None) -> str:
    return f"{what} of {arrival.table if arrival is not None else ''}"


def _outcome(
    aside: Sequence[Mapping[str, Any]],
    counts: Sequence[Mapping[str, Any]],
    activities: Mapping[str, ActivityStatistics],
    expectations: Sequence[Expectation],
    table: str,
) -> ArrivalOutcome:
    newest = max((row["value"] for row in counts if row["name"] == _NEWEST), default=None)
    broken: Counter[str] = Counter()
    for row in counts:
        if row["name"] != _NEWEST:
            broken[row["name"]] += int(row["value"])
    for expectation in expectations:
        if expectation.on_violation is OnViolation.FAIL_UPDATE and broken[expectation.name]:
            raise failure(expectation, table, broken[expectation.name])
    return ArrivalOutcome(
        [(row["reason"], row["record"]) for row in aside],
        {e.name: broken[e.name] for e in expectations if broken[e.name]},
        None if newest is None else Instant(newest),
        _activities_as_json(activities, len(counts)),
    )


def _activities_as_json(
    activities: Mapping[str, ActivityStatistics], counts: int
) -> dict[str, dict[str, Any]]:
    """What each activity did, without the counts, which are no rows of anybody's."""
    told = {name: did.as_json() for name, did in activities.items() if did.packs_in + did.packs_out}
    told.pop(f"write {_COUNTED}", None)
    if _EXPECTATIONS in told:
        told[_EXPECTATIONS]["rows_out"] -= counts
    return told


def arrival_flow(
    schema: pa.Schema, expectations: Sequence[Expectation], table: str, timestamp: str | None
) -> FlowGraph:
    """The flow: rows with their verdicts, the router, and what leaves it."""
    plain = pa.schema([f for f in schema if not f.name.startswith(HIDDEN_COLUMNS)])
    dated = _timestamp_column(plain, timestamp)
    softened = [_without_failure(e) for e in expectations]

    def make(size: int) -> ArrivalRouter:
        return ArrivalRouter(plain, softened, table, dated)

    outputs = (plain, _ASIDE, _COUNTS)
    nodes = [
        recordset(_ARRIVED, schema),
        FlowNode(
            _EXPECTATIONS, NodeKind.ACTIVITY, (schema,), outputs, make, router=True, verb="expect"
        ),
        recordset(table, plain),
        recordset(_SET_ASIDE, _ASIDE),
        recordset(_COUNTED, _COUNTS),
    ]
    edges = [Edge(_ARRIVED, 0, _EXPECTATIONS, 0)]
    edges += [Edge(_EXPECTATIONS, port, nodes[2 + port].name, 0) for port in range(3)]
    return FlowGraph({node.name: node for node in nodes}, tuple(edges))


def shared_arrival_flow(schema: pa.Schema, arrivals: Sequence[TableShare]) -> FlowGraph:
    """The flow for several tables: a router for each, over the same rows."""
    nodes = [recordset(_ARRIVED, schema)]
    edges: list[Edge] = []
    for each in arrivals:
        picked = pa.schema([schema.field(column).with_name(name) for name, column in each.columns])
        plain = pa.schema([f for f in picked if not f.name.startswith(HIDDEN_COLUMNS)])
        pick, router = _name_of(_SELECT, each), _name_of(_EXPECTATIONS, each)
        outputs = (plain, _ASIDE, _COUNTS)
        picking, judging = partial(_selection, each, picked), partial(_router, each, plain)
        nodes += [
            FlowNode(pick, NodeKind.ACTIVITY, (schema,), (picked,), picking, verb="select"),
            FlowNode(
                router, NodeKind.ACTIVITY, (picked,), outputs, judging, router=True, verb="expect"
            ),
        ]
        edges += [Edge(_ARRIVED, 0, pick, 0), Edge(pick, 0, router, 0)]
        targets = (each.table, _name_of(_SET_ASIDE, each), _name_of(_COUNTED, each))
        for port, (name, leaves) in enumerate(zip(targets, outputs, strict=True)):
            nodes.append(recordset(name, leaves))
            edges.append(Edge(router, port, name, 0))
    return FlowGraph({node.name: node for node in nodes}, tuple(edges))


def _selection(arrival: TableShare, picked: pa.Schema, size: int) -> PackActivity:
    """An activity that picks the rows and columns of one table."""
    flag, columns = arrival.flag, [column for _, column in arrival.columns]

    def pick(pack: pa.RecordBatch) -> pa.RecordBatch:
        mine = pa.RecordBatch.from_arrays([pack.column(c) for c in columns], schema=picked)
        return mine if flag is None else mine.filter(pack.column(flag))

    return PackActivity(pick)


def _router(arrival: TableShare, plain: pa.Schema, size: int) -> "ArrivalRouter":
    softened = [_without_failure(e) for e in arrival.expectations]
    return ArrivalRouter(
        plain, softened, arrival.table, _timestamp_column(plain, arrival.timestamp)
    )


class ArrivalRouter:
    """The router: 0 are the rows that stay, 1 those set aside, 2 the counts, at the end."""

    def __init__(
        self,
        plain: pa.Schema,
        expectations: Sequence[Expectation],
        table: str,
        timestamp: str | None,
    ) -> None:
        self._plain, self._expectations, self._table = plain, expectations, table
        self._timestamp = timestamp
        self._counts: dict[str, float] = {}

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        verdict = judged(pa.Table.from_batches([pack]), self._expectations, self._table)
        for name, count in verdict.violations.items():
            self._counts[name] = self._counts.get(name, 0.0) + count
        kept = verdict.kept.select(self._plain.names).combine_chunks()
        if self._timestamp is not None:
            self._date(kept)
        outputs = [(0, batch) for batch in kept.to_batches() if batch.num_rows]
        if verdict.set_aside:
            columns = [pa.array(c, pa.string()) for c in zip(*verdict.set_aside, strict=True)]
            outputs.append((1, pa.RecordBatch.from_arrays(columns, schema=_ASIDE)))
        return outputs

    def end(self, port: int) -> Iterable[Output]:
        return self._counted()

    def _counted(self) -> Iterator[Output]:
        if self._counts:
            columns = [pa.array(self._counts.keys()), pa.array(self._counts.values(), pa.float64())]
            yield 2, pa.RecordBatch.from_arrays(columns, schema=_COUNTS)

    def _date(self, kept: pa.Table) -> None:
        newest = instant_of(pc.max(kept[self._timestamp]).as_py()) if kept.num_rows else None
        if newest is not None:
            self._counts[_NEWEST] = max(newest, self._counts.get(_NEWEST, newest))


def _without_failure(expectation: Expectation) -> Expectation:
    """A failure is raised at the end, when it is known how many rows there are in all."""
    if expectation.on_violation is not OnViolation.FAIL_UPDATE:
        return expectation
    return replace(expectation, on_violation=OnViolation.KEEP)


def _timestamp_column(plain: pa.Schema, timestamp: str | None) -> str | None:
    """The column that dates the records, as it is spelled in these rows."""
    if timestamp is None:
        return None
    named = {name.lower(): name for name in plain.names}
    if timestamp.lower() not in named:
        raise SchemaError(
            f'there is no column "{timestamp}" to date the records by',
            hint=f"'springhouse.timestamp' names one of: {', '.join(plain.names)}",
        )
    return str(named[timestamp.lower()])


def instant_of(value: object) -> Instant | None:
    """A date or a timestamp as a moment; those without a zone are in UTC."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, datetime):
        return Instant((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
    return None
