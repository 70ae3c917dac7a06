"""How do computed rows land in a table: kept rows, rows set aside, and one atomic commit?

Everything that writes a table (a flow, a view, a merge) comes through here with its rows as a
lazy DataFrame and leaves with files that a commit can add. Small inputs are computed to Arrow in
this process; for large ones Spark writes the files. What is done twice by mistake is invisible:
files that no commit names are nobody's.

What becomes of rows that are set aside is told in `quarantine`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark.sql import functions as sf

from springhouse.flows.flow_settings import Settings
from springhouse.lake.delta.tables import quoted
from springhouse.lake.delta.writing import rows_of, write_arrow, write_with_spark
from springhouse.lake.flows.arriving import arrive, arrive_in_tasks, instant_of
from springhouse.lake.lake import Lake
from springhouse.lake.landing.quarantine import Aside
from springhouse.lake.spark.quality import (
    count_violations,
    failure,
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
    """Rows that are written and not yet committed; `rows` is set when they are in this process."""

    add: Sequence[AddAction]
    count: int
    rows: pa.Table | None = None
    aside: Sequence[Aside] = ()
    violations: Mapping[str, int] = field(default_factory=dict)
    newest: Instant | None = None
    activities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """What a refresh did. `read` are the versions that it read, by input.

    `way` is how a view was refreshed; for a table it is the kind of commit.
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
    """Compute the rows, hold them against their expectations, and write what is kept.

    `size` is how many bytes the inputs have. With `write` off, small rows are left to the caller.
    """
    judgeable = with_verdicts(rows, expectations)
    if not fits_here(size):
        if (expectations or timestamp) and lake.spark.shares_our_code:
            return _land_in_tasks(lake, table, judgeable, expectations, timestamp, settings)
        return _land_large(lake, table, judgeable, expectations, timestamp)
    given = _arrow(judgeable)
    return land_arrow(lake, table, given, expectations, timestamp, write=write, settings=settings)


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
    """Write what is kept of rows that are in this process already, with their verdicts."""
    kept, arrived = arrive(rows, expectations, table, timestamp, settings)
    return Landed(
        [write_arrow(lake.place(table), kept)] if write and kept.num_rows else [],
        kept.num_rows,
        kept,
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
    """One pass for rows, verdicts and counts, where Spark alone would need one for each."""
    spark, place = lake.spark.session(), lake.place(table)
    add, arrived = arrive_in_tasks(spark, rows, expectations, table, timestamp, place, settings)
    aside = [(reason, record, table) for reason, record in arrived.set_aside]
    counts = arrived.violations, arrived.newest, arrived.activities
    return Landed(add, rows_of(add), None, aside, *counts)


def _land_large(
    lake: Lake,
    table: str,
    rows: "DataFrame",
    expectations: Sequence[Expectation],
    timestamp: str | None,
) -> Landed:
    violations: dict[str, int] = {}
    aside: list[Aside] = []
    if expectations:
        rows = rows.persist()
        violations = count_violations(rows, expectations)
        broken = [e for e in expectations if e.name in violations]
        for expectation in broken:
            if expectation.on_violation is OnViolation.FAIL_UPDATE:
                rows.unpersist()
                raise failure(expectation, table, violations[expectation.name])
        if any(e.on_violation is OnViolation.QUARANTINE for e in broken):
            found = rows_set_aside(rows, expectations).collect()
            aside = [(row["reason"], row["record"], table) for row in found]
    add = write_with_spark(lake.place(table), kept_rows(rows, expectations))
    newest = None
    if timestamp is not None:
        top = kept_rows(rows, expectations).agg(sf.max(sf.col(quoted(timestamp)).cast("timestamp")))
        newest = instant_of(top.toArrow().column(0)[0].as_py())
    if expectations:
        rows.unpersist()
    return Landed(add, rows_of(add), None, aside, violations, newest)


def _arrow(rows: "DataFrame") -> pa.Table:
    return rows.toArrow()
