"""How do arriving rows become table rows, quarantined rows and counts, in one pass?

The rows go through a flow with one router (`arrival_graph`). By its expectations a row is kept for
the table, dropped, or sent to the quarantine. At the end the router gives the counts: how many rows
broke each expectation, and the newest timestamp. The commit records the statistics of each
activity. The flow runs in this process if there are few rows. If there are many, it runs in Spark's
tasks, which write files.

The conditions of expectations are Spark's SQL, so Spark adds to each row whether the row meets them
(`quality.with_verdicts`). Several tables over one source share one such flow.
"""

import logging
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake.transaction import AddAction

from springhouse.errors import SpringhouseError
from springhouse.flows.endpoints import Collected
from springhouse.flows.flow_settings import Settings
from springhouse.flows.monitor import ActivityStatistics
from springhouse.flows.run import run_flow
from springhouse.lake.delta.tables import arrow_schema, read_arrow
from springhouse.lake.flows.arrival_graph import (
    ARRIVED,
    COUNTED,
    EXPECTATIONS,
    NEWEST,
    SELECT,
    SET_ASIDE,
    TableShare,
    arrival_flow,
    name_of,
    shared_arrival_flow,
)
from springhouse.lake.flows.stage_jobs import run_stages
from springhouse.lake.spark.quality import expectation_failed
from springhouse.lake.storage.storage import Storage
from springhouse.logged_errors import passing
from springhouse.project.declarations.declaration import Expectation, OnViolation
from springhouse.units import Instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG = logging.getLogger("springhouse.flows")


@dataclass(frozen=True)
class ArrivalOutcome:
    """The result beside the kept rows: quarantined rows as (reason, record), and the counts."""

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
    """Send rows with their verdicts through the flow, in this process. Gives the kept rows first.

    Raises an error if a row breaks an expectation that must hold.
    """
    graph = arrival_flow(rows.schema, expectations, table, timestamp if rows.num_rows else None)
    sinks = {name: Collected(graph.nodes[name].inputs[0]) for name in graph.targets}
    took = run_flow(graph, {ARRIVED: rows}, sinks, settings)
    aside = sinks[SET_ASIDE].table().to_pylist()
    counts = sinks[COUNTED].table().to_pylist()
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
    """The same in Spark's tasks, for many rows. Gives the files of the kept rows first."""
    graph = arrival_flow(arrow_schema(rows.schema), expectations, table, timestamp)
    beside = place.inside(f"_arriving-{uuid.uuid4().hex}")
    places = {name: place if name == table else beside.inside(name) for name in graph.targets}
    try:
        written = run_stages(spark, graph, {ARRIVED: rows}, places, settings)
        aside, counts = (
            read_arrow(
                places[name],
                [add.path for add in written.files[name]],
                graph.nodes[name].inputs[0].names,
            ).to_pylist()
            for name in (SET_ASIDE, COUNTED)
        )
    finally:
        with passing(LOG, "vacuum removes what is left", OSError):
            beside.remove()
    judgement = _outcome(aside, counts, written.activities, expectations, table)
    return written.files[table], judgement


def arrive_shared(
    rows: pa.Table, arrivals: Sequence[TableShare], settings: Settings
) -> tuple[Mapping[str, pa.Table], Mapping[str, ArrivalOutcome | SpringhouseError]]:
    """Send rows for several tables through one flow, in this process.

    Gives the kept rows and the outcome of each table.
    If a row breaks an expectation that must hold, only its table gets an error as its outcome.
    """
    graph = shared_arrival_flow(rows.schema, arrivals)
    sinks = {name: Collected(graph.nodes[name].inputs[0]) for name in graph.targets}
    took = run_flow(graph, {ARRIVED: rows}, sinks, settings)
    tables = {name: sink.table() for name, sink in sinks.items()}
    judgements = {
        arrival.table: _outcome_of(
            arrival,
            tables[name_of(SET_ASIDE, arrival)].to_pylist(),
            tables[name_of(COUNTED, arrival)].to_pylist(),
            took.activities,
        )
        for arrival in arrivals
    }
    return {arrival.table: tables[arrival.table] for arrival in arrivals}, judgements


def arrive_shared_in_tasks(
    spark: "SparkSession",
    rows: "DataFrame",
    arrivals: Sequence[TableShare],
    places: Mapping[str, Storage],
    settings: Settings,
) -> tuple[Mapping[str, Sequence[AddAction]], Mapping[str, ArrivalOutcome | SpringhouseError]]:
    """The same in Spark's tasks, which write the files of all tables in one pass."""
    graph = shared_arrival_flow(arrow_schema(rows.schema), arrivals)
    beside = places[arrivals[0].table].inside(f"_arriving-{uuid.uuid4().hex}")
    whole = {name: places.get(name) or beside.inside(name) for name in graph.targets}
    try:
        written = run_stages(spark, graph, {ARRIVED: rows}, whole, settings)

        def rows_of_target(name: str) -> list[Mapping[str, Any]]:
            paths = [add.path for add in written.files[name]]
            result = read_arrow(whole[name], paths, graph.nodes[name].inputs[0].names)
            return [dict(row) for row in result.to_pylist()]

        judgements = {
            arrival.table: _outcome_of(
                arrival,
                rows_of_target(name_of(SET_ASIDE, arrival)),
                rows_of_target(name_of(COUNTED, arrival)),
                written.activities,
            )
            for arrival in arrivals
        }
    finally:
        with passing(LOG, "vacuum removes what is left", OSError):
            beside.remove()
    return {arrival.table: written.files[arrival.table] for arrival in arrivals}, judgements


def _outcome_of(
    arrival: TableShare,
    aside: Sequence[Mapping[str, Any]],
    counts: Sequence[Mapping[str, Any]],
    activities: Mapping[str, ActivityStatistics],
) -> ArrivalOutcome | SpringhouseError:
    # In the shared flow an activity's name has its table's name. The outcome leaves that out.
    own = {
        SELECT: activities.get(name_of(SELECT, arrival)),
        EXPECTATIONS: activities.get(name_of(EXPECTATIONS, arrival)),
        f"write {arrival.table}": activities.get(f"write {arrival.table}"),
        f"write {SET_ASIDE}": activities.get(f"write {name_of(SET_ASIDE, arrival)}"),
    }
    read = {name: did for name, did in activities.items() if not _belongs_to_one_table(name)}
    did = read | {name: result for name, result in own.items() if result is not None}
    try:
        return _outcome(aside, counts, did, arrival.expectations, arrival.table)
    except SpringhouseError as broken:
        return broken


def _belongs_to_one_table(activity: str) -> bool:
    return activity.startswith((name_of(SELECT), name_of(EXPECTATIONS), "write "))


def _outcome(
    aside: Sequence[Mapping[str, Any]],
    counts: Sequence[Mapping[str, Any]],
    activities: Mapping[str, ActivityStatistics],
    expectations: Sequence[Expectation],
    table: str,
) -> ArrivalOutcome:
    newest = max((row["value"] for row in counts if row["name"] == NEWEST), default=None)
    broken: Counter[str] = Counter()
    for row in counts:
        if row["name"] != NEWEST:
            broken[row["name"]] += int(row["value"])
    for expectation in expectations:
        if expectation.on_violation is OnViolation.FAIL_UPDATE and broken[expectation.name]:
            raise expectation_failed(expectation, table, broken[expectation.name])
    return ArrivalOutcome(
        [(row["reason"], row["record"]) for row in aside],
        {e.name: broken[e.name] for e in expectations if broken[e.name]},
        None if newest is None else Instant(newest),
        _activities_as_json(activities, len(counts)),
    )


def _activities_as_json(
    activities: Mapping[str, ActivityStatistics], counts: int
) -> dict[str, dict[str, Any]]:
    """The statistics of each activity. The counts are left out: they are not rows of the table."""
    report = {
        name: did.as_json() for name, did in activities.items() if did.packs_in + did.packs_out
    }
    report.pop(f"write {COUNTED}", None)
    if EXPECTATIONS in report:
        report[EXPECTATIONS]["rows_out"] -= counts
    return report
