"""Which flow do arriving rows go through?

One activity, a router, divides the rows of a table. Kept rows leave by port 0, and rows for the
quarantine leave by port 1. The counts leave by port 2 at the end. If several tables read one
source, each table has its own router, and every row pack goes to all of them. Before each router an
activity selects the rows and columns of its table.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.errors import SchemaError
from springhouse.flows.activities.per_pack import PackActivity
from springhouse.flows.flow_graph import Edge, FlowGraph, FlowNode, NodeKind, Output, recordset
from springhouse.lake.spark.quality import HIDDEN_COLUMNS, check_rows
from springhouse.project.declarations.declaration import Expectation, OnViolation
from springhouse.units import Instant

QUARANTINE_SCHEMA = pa.schema({"reason": pa.string(), "record": pa.string()})
COUNTS_SCHEMA = pa.schema({"name": pa.string(), "value": pa.float64()})
NEWEST = "the newest timestamp"
SELECT, EXPECTATIONS = "select", "expectations"
# No table can have these names, because a table's name has no spaces.
ARRIVED, SET_ASIDE, COUNTED = "what arrived", "the quarantine", "the counts"


@dataclass(frozen=True)
class TableShare:
    """The rows and columns that one of several tables takes from the rows of their source.

    `columns` has pairs: a column's name in the table, and its name in the shared pass. `flag` names
    the column that is true for the table's rows; None if the table takes all rows.
    """

    table: str
    columns: tuple[tuple[str, str], ...]
    flag: str | None
    expectations: Sequence[Expectation]
    timestamp: str | None


def name_of(what: str, arrival: TableShare | None = None) -> str:
    return f"{what} of {arrival.table if arrival is not None else ''}"


def arrival_flow(
    schema: pa.Schema, expectations: Sequence[Expectation], table: str, timestamp: str | None
) -> FlowGraph:
    """The flow of one table: its rows with their verdicts, the router, and the three targets."""
    plain = pa.schema([f for f in schema if not f.name.startswith(HIDDEN_COLUMNS)])
    dated = _timestamp_column(plain, timestamp)
    softened = [_without_failure(e) for e in expectations]

    def make(size: int) -> ArrivalRouter:
        return ArrivalRouter(plain, softened, table, dated)

    outputs = (plain, QUARANTINE_SCHEMA, COUNTS_SCHEMA)
    nodes = [
        recordset(ARRIVED, schema),
        FlowNode(
            EXPECTATIONS, NodeKind.ACTIVITY, (schema,), outputs, make, router=True, verb="expect"
        ),
        recordset(table, plain),
        recordset(SET_ASIDE, QUARANTINE_SCHEMA),
        recordset(COUNTED, COUNTS_SCHEMA),
    ]
    edges = [Edge(ARRIVED, 0, EXPECTATIONS, 0)]
    edges += [Edge(EXPECTATIONS, port, nodes[2 + port].name, 0) for port in range(3)]
    return FlowGraph({node.name: node for node in nodes}, tuple(edges))


def shared_arrival_flow(schema: pa.Schema, arrivals: Sequence[TableShare]) -> FlowGraph:
    """The flow of several tables: the same rows go to one router per table."""
    nodes = [recordset(ARRIVED, schema)]
    edges: list[Edge] = []
    for arrival in arrivals:
        picked = pa.schema(
            [schema.field(column).with_name(name) for name, column in arrival.columns]
        )
        plain = pa.schema([f for f in picked if not f.name.startswith(HIDDEN_COLUMNS)])
        pick, router = name_of(SELECT, arrival), name_of(EXPECTATIONS, arrival)
        outputs = (plain, QUARANTINE_SCHEMA, COUNTS_SCHEMA)
        picking, judging = partial(_selection, arrival, picked), partial(_router, arrival, plain)
        nodes += [
            FlowNode(pick, NodeKind.ACTIVITY, (schema,), (picked,), picking, verb="select"),
            FlowNode(
                router, NodeKind.ACTIVITY, (picked,), outputs, judging, router=True, verb="expect"
            ),
        ]
        edges += [Edge(ARRIVED, 0, pick, 0), Edge(pick, 0, router, 0)]
        targets = (arrival.table, name_of(SET_ASIDE, arrival), name_of(COUNTED, arrival))
        for port, (name, leaves) in enumerate(zip(targets, outputs, strict=True)):
            nodes.append(recordset(name, leaves))
            edges.append(Edge(router, port, name, 0))
    return FlowGraph({node.name: node for node in nodes}, tuple(edges))


def _selection(arrival: TableShare, picked: pa.Schema, size: int) -> PackActivity:
    """An activity that selects the rows and columns of one table."""
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
    """The router. Port 0 gives the kept rows, 1 the quarantined rows, 2 the counts at the end."""

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
        verdict = check_rows(pa.Table.from_batches([pack]), self._expectations, self._table)
        for name, count in verdict.violations.items():
            self._counts[name] = self._counts.get(name, 0.0) + count
        remaining = verdict.kept.select(self._plain.names).combine_chunks()
        if self._timestamp is not None:
            self._date(remaining)
        outputs = [(0, batch) for batch in remaining.to_batches() if batch.num_rows]
        if verdict.set_aside:
            columns = [pa.array(c, pa.string()) for c in zip(*verdict.set_aside, strict=True)]
            outputs.append((1, pa.RecordBatch.from_arrays(columns, schema=QUARANTINE_SCHEMA)))
        return outputs

    def end(self, port: int) -> Iterable[Output]:
        return self._counted()

    def _counted(self) -> Iterator[Output]:
        if self._counts:
            columns = [pa.array(self._counts.keys()), pa.array(self._counts.values(), pa.float64())]
            yield 2, pa.RecordBatch.from_arrays(columns, schema=COUNTS_SCHEMA)

    def _date(self, kept: pa.Table) -> None:
        newest = instant_of(pc.max(kept[self._timestamp]).as_py()) if kept.num_rows else None
        if newest is not None:
            self._counts[NEWEST] = max(newest, self._counts.get(NEWEST, newest))


def _without_failure(expectation: Expectation) -> Expectation:
    """The expectation without its failure: the failure comes at the end, with all rows counted."""
    if expectation.on_violation is not OnViolation.FAIL_UPDATE:
        return expectation
    return replace(expectation, on_violation=OnViolation.KEEP)


def _timestamp_column(plain: pa.Schema, timestamp: str | None) -> str | None:
    """The column with the time of each record, spelled as in these rows."""
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
    """A date or a timestamp as an instant. A value without a time zone is in UTC."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, datetime):
        return Instant((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
    return None
