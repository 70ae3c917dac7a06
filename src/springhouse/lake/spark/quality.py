"""Which rows meet the expectations of their table?

Each expectation becomes a hidden boolean column beside the rows, so one pass computes the rows and
the verdicts. A row breaks an expectation when the condition is false or NULL. The declaration says
whether the table keeps such rows, drops them, or sets them aside in its quarantine with the reason,
or whether the refresh fails.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from springhouse.errors import ExpectationFailed
from springhouse.lake.delta.tables import quoted
from springhouse.project.declarations.declaration import Expectation, OnViolation

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

QUARANTINE_SCHEMA = StructType(
    [
        StructField("reason", StringType()),
        StructField("record", StringType()),
        StructField("origin", StringType()),
        StructField("flow", StringType()),
        StructField("quarantined_at", TimestampType()),
    ]
)
"""The columns of a quarantine: the reason, the original record, its origin and flow, the time."""

_KEPT = "__springhouse_kept_"
_JSON = "__springhouse_json"

HIDDEN_COLUMNS = (_KEPT, _JSON)
"""The prefixes of the column names that carry verdicts."""


@dataclass(frozen=True)
class CheckedRows:
    """The kept rows, the rows set aside as (reason, record), and the violations by expectation."""

    kept: pa.Table
    set_aside: Sequence[tuple[str, str]] = ()
    violations: dict[str, int] = field(default_factory=dict)


def with_verdicts(rows: "DataFrame", expectations: Sequence[Expectation]) -> "DataFrame":
    """The rows with a hidden column per expectation, and one for the record if it may go aside."""
    if not expectations:
        return rows
    columns = [sf.col(quoted(name)) for name in rows.columns]
    verdicts = [
        sf.coalesce(sf.expr(e.condition), sf.lit(False)).alias(f"{_KEPT}{i}")
        for i, e in enumerate(expectations)
    ]
    aside = [e for e in expectations if e.on_violation is OnViolation.QUARANTINE]
    record = [_as_json(rows).alias(_JSON)] if aside else []
    return rows.select(*columns, *verdicts, *record)


def check_rows(rows: pa.Table, expectations: Sequence[Expectation], table: str) -> CheckedRows:
    """Apply the expectations, in this process, to rows that carry verdicts."""
    if not expectations:
        return CheckedRows(rows)
    broken = {
        e.name: pc.invert(rows[f"{_KEPT}{i}"].combine_chunks()) for i, e in enumerate(expectations)
    }
    counts = {name: int(pc.sum(mask).as_py() or 0) for name, mask in broken.items()}
    for expectation in expectations:
        if expectation.on_violation is OnViolation.FAIL_UPDATE and counts[expectation.name]:
            raise expectation_failed(expectation, table, counts[expectation.name])
    gone, set_aside = _gone(rows, expectations, broken)
    plain = [name for name in rows.schema.names if not name.startswith((_KEPT, _JSON))]
    kept = rows.select(plain)
    if pc.any(gone).as_py():
        kept = kept.filter(pc.invert(gone))
    return CheckedRows(kept, set_aside, {name: count for name, count in counts.items() if count})


def _gone(
    rows: pa.Table, expectations: Sequence[Expectation], broken: Mapping[str, pa.Array]
) -> tuple[pa.Array, list[tuple[str, str]]]:
    """A mask of the rows that do not stay, and the quarantined rows as (reason, record).

    The first expectation that a row breaks decides where the row goes.
    """
    gone = pa.array([False] * rows.num_rows, pa.bool_())
    set_aside: list[tuple[str, str]] = []
    for expectation in expectations:
        mask = pc.and_not(broken[expectation.name], gone)
        if expectation.on_violation is OnViolation.QUARANTINE and pc.any(mask).as_py():
            records = rows.filter(mask)[_JSON].to_pylist()
            set_aside += [(_reason(expectation), record) for record in records]
        if expectation.on_violation in (OnViolation.QUARANTINE, OnViolation.DROP_ROW):
            gone = pc.or_(gone, mask)
    return gone, set_aside


def count_violations(rows: "DataFrame", expectations: Sequence[Expectation]) -> dict[str, int]:
    """The number of violations per broken expectation, counted by Spark."""
    broken = [sf.count_if(~sf.col(f"{_KEPT}{i}")) for i, _ in enumerate(expectations)]
    counts = rows.agg(*broken).collect()[0]
    return {e.name: int(n) for e, n in zip(expectations, counts, strict=True) if n}


def kept_rows(rows: "DataFrame", expectations: Sequence[Expectation]) -> "DataFrame":
    """The rows that stay, without their verdicts."""
    if not expectations:
        return rows
    stays = sf.lit(True)
    for i, expectation in enumerate(expectations):
        if expectation.on_violation in (OnViolation.QUARANTINE, OnViolation.DROP_ROW):
            stays = stays & sf.col(f"{_KEPT}{i}")
    plain = [sf.col(quoted(n)) for n in rows.columns if not n.startswith((_KEPT, _JSON))]
    return rows.where(stays).select(*plain)


def rows_set_aside(rows: "DataFrame", expectations: Sequence[Expectation]) -> "DataFrame":
    """The rows that go to quarantine, as (reason, record)."""
    reason = sf.lit(None).cast("string")
    gone = sf.lit(False)
    for i, expectation in enumerate(expectations):
        broken = ~sf.col(f"{_KEPT}{i}") & ~gone & reason.isNull()
        if expectation.on_violation is OnViolation.QUARANTINE:
            reason = sf.when(broken, sf.lit(_reason(expectation))).otherwise(reason)
        elif expectation.on_violation is OnViolation.DROP_ROW:
            gone = gone | broken
    named = rows.select(reason.alias("reason"), sf.col(_JSON).alias("record"))
    return named.where(sf.col("reason").isNotNull())


def expectation_failed(expectation: Expectation, table: str, count: int) -> ExpectationFailed:
    """The error for rows that break an expectation ON VIOLATION FAIL UPDATE."""
    return ExpectationFailed(
        f'{count} row{"s" if count != 1 else ""} for "{table}" broke the expectation '
        f'"{expectation.name}": {expectation.condition}',
        where=str(expectation.place),
        hint="Nothing was written. Mend the data, or declare ON VIOLATION DROP ROW or QUARANTINE.",
    )


def _reason(expectation: Expectation) -> str:
    return f"expectation {expectation.name}: {expectation.condition}"


def _as_json(rows: "DataFrame") -> "Column":
    return sf.to_json(sf.struct(*(sf.col(quoted(name)) for name in rows.columns)))
