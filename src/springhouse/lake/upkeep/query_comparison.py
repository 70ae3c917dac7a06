"""Does a view hold the rows that its query gives?

Plain Spark runs the query over the same input versions that the view reflects. Then the rows are
compared as bags. The sum of floating-point numbers depends on the order of the additions: two sums
count as equal if they agree to nine digits.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, FloatType, StructType

from springhouse.errors import SpringhouseError
from springhouse.lake.delta import changes
from springhouse.lake.delta.alignment import with_declared_columns
from springhouse.lake.lake import Lake
from springhouse.lake.landing.inputs import RefreshInputs
from springhouse.lake.spark.queries import errors_at
from springhouse.lake.storage.presence import FileLost
from springhouse.project.declarations.declaration import OnViolation, Project, View
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.views.delta.row_select import WEIGHT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_MOST_SHOWN = 3
_MOST_COMPARED = 100_000
_DIGITS = 1e-9


class NotComparable(SpringhouseError):
    """A view can't be compared with its query, at least not now."""


def compare_with_query(lake: Lake, project: Project, view: View) -> list[str]:
    """All differences between a view and its query; raises `NotComparable` if unknown."""
    newest = lake.log(view.name).newest()
    note = newest.note if newest is not None else None
    if note is None or note.kind not in ("merge", "replace"):
        raise NotComparable("its rows were changed by another writer since its last refresh")
    if note.definition != fingerprint(project, view):
        raise NotComparable("its definition changed since its last refresh")
    if note.mixed:
        # An asynchronous refresh took in one input alone: no single version of the other inputs
        # gives the view's rows.
        raise NotComparable(f"it reflects several versions of {', '.join(note.mixed)}")
    stored = lake.open(view.name)
    inputs = RefreshInputs(lake, project, note.read)
    try:
        with errors_at(view.place):
            computed = _expected(
                with_declared_columns(inputs.frame(view.query), view.schema, ""), view
            )
            found = changes.spark_difference(stored.read(inputs.session), computed)
            rows = found.limit(_MOST_COMPARED).collect()
    except FileLost as error:
        raise NotComparable(error.problem) from error
    return list(_told(_differing(rows, stored.schema)))


def _expected(rows: "DataFrame", view: View) -> "DataFrame":
    """The rows without those that an expectation drops or quarantines."""
    for expectation in view.expectations:
        if expectation.on_violation in (OnViolation.QUARANTINE, OnViolation.DROP_ROW):
            rows = rows.where(sf.coalesce(sf.expr(expectation.condition), sf.lit(False)))
    return rows


def _told(rows: "Sequence[Row]") -> Iterator[str]:
    wrong = [row for row in rows if row[WEIGHT] < 0]
    missing = [row for row in rows if row[WEIGHT] > 0]
    for what, found in (("its query does not give", wrong), ("its query gives too", missing)):
        if found:
            count = sum(abs(row[WEIGHT]) for row in found)
            shown = "; ".join(_text(row) for row in found[:_MOST_SHOWN])
            holds = "holds" if what.endswith("not give") else "lacks"
            yield f"it {holds} {count} row{'s' if count != 1 else ''} that {what}: {shown}"


def _text(row: "Row") -> str:
    values = {name: value for name, value in row.asDict().items() if name != WEIGHT}
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _differing(rows: "Sequence[Row]", schema: StructType) -> "list[Row]":
    """The differing rows, without pairs that agree except in the last digits of their floats."""
    floats = [f.name for f in schema.fields if isinstance(f.dataType, FloatType | DoubleType)]
    if not floats:
        return list(rows)
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[repr([row[f.name] for f in schema.fields if f.name not in floats])].append(row)
    return [row for group in groups.values() for row in _unmatched(group, floats)]


def _unmatched(group: "list[Row]", floats: Sequence[str]) -> "list[Row]":
    """The rows of a group without a counterpart of nearly the same numbers."""
    left = [row for row in group if row[WEIGHT] < 0]
    unmatched = []
    for row in (row for row in group if row[WEIGHT] > 0):
        twin = next((other for other in left if _are_near(row, other, floats)), None)
        if twin is None:
            unmatched.append(row)
        else:
            left.remove(twin)
    return [*unmatched, *left]


def _are_near(one: "Row", other: "Row", floats: Sequence[str]) -> bool:
    if one[WEIGHT] != -other[WEIGHT]:
        return False
    return all(_is_near(one[name], other[name]) for name in floats)


def _is_near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    both_nan = math.isnan(one) and math.isnan(other)
    return both_nan or math.isclose(one, other, rel_tol=_DIGITS, abs_tol=1e-300)
