"""How is a table or view made, and what do its rows reflect?"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, Literal

from springhouse.lake.delta.stores import describe_file
from springhouse.lake.lake import QUARANTINE
from springhouse.lake.sinks.delivery import delivered
from springhouse.lake.views.compiled_plans import NotIncremental, known_plan
from springhouse.planner.provenance import NOW
from springhouse.project.declarations.declaration import SqlQuery, Table, View
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.project.lineage.keys import input_key
from springhouse.views.explanation import RefreshExplanation, ViewState, explain_refresh
from springhouse.warehouse.reports.result import Result, utc
from springhouse.warehouse.reports.table_history import CommitRecord, commit_record, last_refresh
from springhouse.warehouse.watch import Watch, is_streaming_function


@dataclass(frozen=True)
class PromiseExplanation:
    """What was promised about a table; a staleness of None means as fresh as possible."""

    staleness_seconds: float | None
    staleness_seconds_by_pathway: Mapping[str, float]
    inconsistency_seconds: float
    priority: float


@dataclass(frozen=True)
class ExpectationExplanation:
    """A condition on rows, and what happens to a row that breaks it."""

    name: str
    condition: str
    on_violation: str


@dataclass(frozen=True)
class SinkExplanation:
    """A sink of a table; it has all changes up to so many versions."""

    name: str
    plugin: str
    versions_delivered: int


@dataclass(frozen=True)
class StoredExplanation:
    """The newest version of a table.

    `reflects` are the versions of base tables that it shows, by pathway. It is `consistent` if
    there is a moment at which all of them were the newest: from `valid_from` until `valid_until`
    (None: until now).
    """

    version: int
    reflects: Mapping[str, tuple[int, ...]]
    consistent: bool
    valid_from: datetime | None
    valid_until: datetime | None
    last_refresh: CommitRecord


@dataclass(frozen=True)
class FlowExplanation:
    """A flow into a table: what it reads, and which engine runs it."""

    name: str
    declared_at: str
    reads: tuple[str, ...]
    run_by: str


@dataclass(frozen=True)
class SharedPass:
    """The tables that one pass over a source can fill together, or why a table has its own."""

    source: str
    tables: tuple[str, ...]
    why_not: str


@dataclass(frozen=True)
class WhyNotIncremental:
    """Why a view can't be refreshed incrementally, and where its query says so."""

    reason: str
    place: str


@dataclass(frozen=True)
class StoredTable:
    """A hidden table of a view as it is stored."""

    name: str
    files: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class TableExplanation(Result):
    """How a streaming table is made.

    `offsets` are the ends up to which each partition of its sources is in the table.
    """

    name: str
    kind: Literal["table"]
    declared_at: str
    location: str
    promise: PromiseExplanation
    expectations: tuple[ExpectationExplanation, ...]
    read_by: tuple[str, ...]
    sinks: tuple[SinkExplanation, ...]
    stored: StoredExplanation | None
    flows: tuple[FlowExplanation, ...]
    offsets: Mapping[str, int]
    shared_pass: SharedPass
    timestamp: str | None
    lateness_seconds: float
    period_seconds: float
    quarantine: str


@dataclass(frozen=True, kw_only=True)
class ViewExplanation(Result):
    """How a materialized view is made.

    `incremental` is None as long as it is not known; `why_not` is set unless it is True, and
    `incremental_refresh` if it is. `hidden_tables` is None if no state of today's definition is
    stored.
    """

    name: str
    kind: Literal["view"]
    declared_at: str
    location: str
    promise: PromiseExplanation
    expectations: tuple[ExpectationExplanation, ...]
    read_by: tuple[str, ...]
    sinks: tuple[SinkExplanation, ...]
    stored: StoredExplanation | None
    query: str
    inputs: tuple[str, ...]
    has_unwatched_inputs: bool
    pathways: tuple[str, ...]
    refresh: str
    incremental: bool | None
    why_not: WhyNotIncremental | None
    incremental_refresh: RefreshExplanation | None
    hidden_tables: tuple[StoredTable, ...] | None


def explain_table(watch: Watch, name: str) -> TableExplanation | ViewExplanation:
    """Explain a declared table or view."""
    view = watch.project.views.get(name)
    if view is not None:
        return _explain_view(watch, view)
    table = watch.project.tables[name]
    shared = watch.sharing[name]
    return TableExplanation(
        **_common(watch, table),
        kind="table",
        flows=_flows(watch, table),
        offsets=_offsets(watch, table),
        shared_pass=SharedPass(shared.source, tuple(shared.tables), shared.why_not),
        timestamp=table.timestamp,
        lateness_seconds=table.lateness_seconds,
        period_seconds=table.period_seconds,
        quarantine=name + QUARANTINE,
    )


def _common(watch: Watch, declared: Table | View) -> dict[str, Any]:
    """The fields that tables and views share."""
    promise = declared.promise
    return {
        "name": declared.name,
        "declared_at": str(declared.place),
        "location": watch.lake.place(declared.name).root,
        "promise": PromiseExplanation(
            promise.staleness_seconds,
            dict(promise.staleness_by_pathway),
            promise.inconsistency_seconds,
            promise.priority,
        ),
        "expectations": tuple(
            ExpectationExplanation(each.name, each.condition, each.on_violation.value)
            for each in declared.expectations
        ),
        "read_by": tuple(watch.graph.dependents(declared.name)),
        "sinks": tuple(
            SinkExplanation(sink.name, sink.plugin, delivered(watch.lake, declared.name, sink.name))
            for sink in declared.sinks
        ),
        "stored": _stored(watch, declared.name),
    }


def _stored(watch: Watch, name: str) -> StoredExplanation | None:
    log = watch.lake.log(name)
    newest, commits = log.newest(), log.commits()
    if newest is None:
        return None
    channels = watch.chooser.channels()
    left, right = newest.provenance.interval(channels)
    reflects = newest.provenance.as_json()
    return StoredExplanation(
        version=newest.version,
        reflects={key: tuple(versions) for key, versions in reflects.items()},
        consistent=newest.provenance.consistent(channels),
        valid_from=utc(left) if left > -inf else None,
        valid_until=None if right == NOW else utc(right),
        last_refresh=commit_record(last_refresh(commits) or commits[-1]),
    )


def _explain_view(watch: Watch, view: View) -> ViewExplanation:
    inputs = watch.chooser.inputs(view.name)
    query = view.query.text if isinstance(view.query, SqlQuery) else f"Python: {view.query.place}"
    compiled = known_plan(watch.lake, watch.project, view, inputs.keys)
    common = _common(watch, view) | {
        "kind": "view",
        "query": query,
        "inputs": tuple(inputs.keys),
        "has_unwatched_inputs": inputs.opaque,
        "pathways": tuple(" -> ".join(pathway) for pathway in watch.graph.pathways(view.name)),
        "refresh": view.refresh.value,
    }
    if isinstance(compiled, NotIncremental):
        return ViewExplanation(
            **common,
            incremental=None if compiled.for_now else False,
            why_not=WhyNotIncremental(compiled.reason, compiled.place),
            incremental_refresh=None,
            hidden_tables=None,
        )
    program, flat = compiled
    names = {name: input_key(*key) for name, key in flat.inputs.items()}
    explained = explain_refresh(program, view.name, names)
    return ViewExplanation(
        **common,
        incremental=True,
        why_not=None,
        incremental_refresh=explained,
        hidden_tables=_hidden_tables(watch, view, explained.state),
    )


def _hidden_tables(watch: Watch, view: View, state: ViewState) -> tuple[StoredTable, ...] | None:
    """The stored hidden tables; None if no state of the current definition is stored."""
    newest = watch.lake.log(view.name).newest()
    note = newest.note if newest is not None else None
    if note is None or not note.stateful or note.definition != fingerprint(watch.project, view):
        return None
    tables = []
    for table in state.tables:
        paths = note.state.get(table.name, ())
        files = [describe_file(watch.lake.place(view.name), path) for path in paths]
        tables.append(StoredTable(table.name, len(files), sum(file.rows for file in files)))
    return tuple(tables)


def _flows(watch: Watch, table: Table) -> tuple[FlowExplanation, ...]:
    return tuple(
        FlowExplanation(
            flow.name,
            str(flow.place),
            tuple(f"{each.reading.value} {each.name}" for each in watch.graph.flow_inputs(flow)),
            "Structured Streaming" if is_streaming_function(flow) else "Springhouse",
        )
        for flow in watch.project.flows_into(table.name)
    )


def _offsets(watch: Watch, table: Table) -> dict[str, int]:
    stored = watch.lake.find(table.name)
    return {
        transaction: stored.offset(transaction) if stored else 0
        for feed in watch.feeds(table.name)
        for transaction in feed.latest()
    }
