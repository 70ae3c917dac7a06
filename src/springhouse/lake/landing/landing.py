"""How do computed rows become files that a commit can add?

Every flow and every view passes its rows in as a lazy DataFrame, and gets files back. Readers can't
see these files until a commit names them. Rows that break an expectation are counted, dropped, or
returned for the quarantine (`quarantine` stores them). Rows from small inputs are computed to Arrow
in this process; for large inputs Spark writes the files. Work that is repeated by mistake does no
harm: no commit names its files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark.sql import functions as sf

from springhouse.flows.flow_settings import Settings
from springhouse.lake.delta.tables import quoted
from springhouse.lake.delta.writing import rows_of, write_arrow, write_with_spark
from springhouse.lake.flows.arrival_graph import instant_of
from springhouse.lake.flows.arrivals import ArrivalOutcome, arrive, arrive_in_tasks
from springhouse.lake.lake import Lake
from springhouse.lake.landing.quarantine import QuarantinedRecord
from springhouse.lake.spark.quality import (
    count_violations,
    expectation_failed,
    kept_rows,
    rows_set_aside,
    with_verdicts,
)
from springhouse.planner.placement import fits_here
from springhouse.project.declarations.declaration import Expectation, OnViolation
from springhouse.units import Instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Landed:
    """Rows that are written but not committed; `rows` is set if this process holds them."""

    add: Sequence[AddAction]
    count: int
    rows: pa.Table | None = None
    quarantined: Sequence[QuarantinedRecord] = ()
    violations: Mapping[str, int] = field(default_factory=dict)
    newest: Instant | None = None
    activities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """One commit of a refresh; `committed` is False if the refresh had nothing to commit.

    `read` are the versions that the refresh read, by input. `way` is how it refreshed a view.
    """

    table: str
    kind: str
    rows: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    rows_set_aside: int = 0
    seconds: float = 0.0
    reason: str = ""
    committed: bool = True
    read: Mapping[str, int] | None = None
    way: str = ""


def land(
    lake: Lake,
    table: str,
    rows: "DataFrame",
    *,
    size: int,
    expectations: Sequence[Expectation] = (),
    timestamp: str | None = None,
    write: bool = True,
    settings: Settings = Settings(),  # noqa: B008  a frozen value
) -> Landed:
    """Compute the rows, check their expectations, and write the rows that stay.

    `size` is the size of the inputs in bytes. Without `write`, the caller writes few rows itself.
    """
    checked = with_verdicts(rows, expectations)
    if fits_here(size):
        in_process = checked.toArrow()
        return land_arrow(
            lake, table, in_process, expectations, timestamp, write=write, settings=settings
        )
    if (expectations or timestamp) and lake.spark.shares_our_code:
        return _land_in_tasks(lake, table, checked, expectations, timestamp, settings)
    return _land_large(lake, table, checked, expectations, timestamp)


def land_arrow(
    lake: Lake,
    table: str,
    rows: pa.Table,
    expectations: Sequence[Expectation] = (),
    timestamp: str | None = None,
    *,
    write: bool = True,
    settings: Settings = Settings(),  # noqa: B008  a frozen value
) -> Landed:
    """Write the rows that stay, from rows with verdicts in this process."""
    kept, arrived = arrive(rows, expectations, table, timestamp, settings)
    add = [write_arrow(lake.place(table), kept)] if write and kept.num_rows else []
    return landed_rows(table, arrived, add, kept)


def landed_rows(
    table: str, arrived: ArrivalOutcome, add: Sequence[AddAction], rows: pa.Table | None = None
) -> Landed:
    """The files of a table's rows, with the counts of the flow that wrote them."""
    return Landed(
        add,
        rows_of(add) if rows is None else rows.num_rows,
        rows,
        [(reason, record, table) for reason, record in arrived.set_aside],
        arrived.violations,
        arrived.newest,
        arrived.activities,
    )


def _land_in_tasks(
    lake: Lake,
    table: str,
    rows: "DataFrame",
    expectations: Sequence[Expectation],
    timestamp: str | None,
    settings: Settings,
) -> Landed:
    """Land rows in one pass; Spark alone needs separate passes for rows, verdicts and counts."""
    spark, place = lake.spark.session(), lake.place(table)
    add, arrived = arrive_in_tasks(spark, rows, expectations, table, timestamp, place, settings)
    return landed_rows(table, arrived, add)


def _land_large(
    lake: Lake,
    table: str,
    rows: "DataFrame",
    expectations: Sequence[Expectation],
    timestamp: str | None,
) -> Landed:
    """Land rows with Spark alone, without our code in its tasks."""
    if not expectations:
        return _write_large(lake, table, rows, timestamp)
    rows = rows.persist()
    try:
        violations = count_violations(rows, expectations)
        broken = [e for e in expectations if e.name in violations]
        for expectation in broken:
            if expectation.on_violation is OnViolation.FAIL_UPDATE:
                raise expectation_failed(expectation, table, violations[expectation.name])
        quarantined: list[QuarantinedRecord] = []
        if any(e.on_violation is OnViolation.QUARANTINE for e in broken):
            bad = rows_set_aside(rows, expectations).collect()
            quarantined = [(row["reason"], row["record"], table) for row in bad]
        written = _write_large(lake, table, kept_rows(rows, expectations), timestamp)
    finally:
        rows.unpersist()
    return replace(written, quarantined=quarantined, violations=violations)


def _write_large(lake: Lake, table: str, kept: "DataFrame", timestamp: str | None) -> Landed:
    add = write_with_spark(lake.place(table), kept)
    newest = None
    if timestamp is not None:
        top = kept.agg(sf.max(sf.col(quoted(timestamp)).cast("timestamp")))
        newest = instant_of(top.toArrow().column(0)[0].as_py())
    return Landed(add, rows_of(add), newest=newest)
