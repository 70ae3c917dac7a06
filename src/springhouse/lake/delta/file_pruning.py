"""Which files can hold rows with certain keys?

A change has few keys, and they often lie close together: new orders have new numbers, deleted
orders are the oldest. A handful of ranges describes them. A file whose bounds meet no range stays
closed. Spark also gets the ranges as a condition, so Parquet's own statistics skip row groups in
the other files.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springhouse.lake.delta.tables import DataFile, quoted

_MOST_RANGES = 16


@dataclass(frozen=True)
class Ranges:
    """The ranges of a column's values, in order and inclusive, and whether some are NULL."""

    bounds: tuple[tuple[Any, Any], ...]
    with_null: bool

    def may_hold(self, low: Any, high: Any, nulls: int | None) -> bool:
        """Whether a file with these bounds may hold a value in the ranges."""
        if self.with_null and nulls != 0:
            return True
        if low is None or high is None:
            return True
        try:
            return any(first <= high and last >= low for first, last in self.bounds)
        except TypeError:
            return True

    def condition(self, name: str) -> str:
        """The ranges as a condition in SQL."""
        value = quoted(name)
        parts = [
            f"{value} = {_literal(first)}"
            if first == last
            else f"{value} BETWEEN {_literal(first)} AND {_literal(last)}"
            for first, last in self.bounds
        ]
        parts += [f"{value} IS NULL"] if self.with_null else []
        return " OR ".join(parts) or "FALSE"

    def expression(self, name: str) -> pc.Expression:
        """The ranges as a condition for Arrow."""
        column = pc.field(name)
        parts = [(column >= first) & (column <= last) for first, last in self.bounds]
        parts += [column.is_null()] if self.with_null else []
        return reduce(or_, parts, pc.scalar(False)) if len(parts) != 1 else parts[0]


def _literal(value: Any) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return f"{value}"


def ranges_of(values: pa.ChunkedArray | pa.Array) -> Ranges | None:
    """The ranges of the values; None if the bounds of files don't order this type."""
    kind = values.type
    orderly = (
        pa.types.is_integer(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_string(kind)
    )
    if not orderly:
        return None
    with_null = values.null_count > 0
    ordered = pc.unique(values).drop_null()
    ordered = ordered.take(pc.sort_indices(ordered))
    if not len(ordered):
        return Ranges((), with_null)
    cuts = [0, *_widest_gaps(ordered), len(ordered)]
    try:
        bounds = tuple(
            (ordered[start].as_py(), ordered[end - 1].as_py()) for start, end in pairwise(cuts)
        )
    except (ValueError, OverflowError):
        # Spark has years before 1 and after 9999; Python's dates do not.
        return None
    return Ranges(bounds, with_null)


def _widest_gaps(ordered: pa.Array) -> list[int]:
    """Where to cut sorted values so that the ranges cover as little as possible."""
    if len(ordered) <= 2:
        return list(range(1, len(ordered)))
    if not pa.types.is_integer(ordered.type):
        return []
    numbers = ordered.cast(pa.int64()).to_numpy(zero_copy_only=False)
    gaps = np.diff(numbers)
    widest = np.argsort(gaps)[::-1][: _MOST_RANGES - 1]
    # Cut only at a gap that is a fair part of the whole range.
    worth = gaps[widest] * _MOST_RANGES >= numbers[-1] - numbers[0]
    return sorted((widest[worth] + 1).tolist())


def chosen_files(files: Iterable[DataFile], near: Mapping[str, Ranges]) -> list[DataFile]:
    """The files that may hold rows whose columns lie in all these ranges."""
    return [
        file
        for file in files
        if all(
            ranges.may_hold(file.low.get(name), file.high.get(name), file.nulls.get(name))
            for name, ranges in near.items()
        )
    ]


def ranges_of_keys(keys: pa.Table, names: Sequence[str]) -> dict[str, Ranges]:
    """The ranges of the columns of a table of keys; `names` are the columns in the files."""
    found = {name: ranges_of(keys[index]) for index, name in enumerate(names)}
    return {name: ranges for name, ranges in found.items() if ranges is not None}
