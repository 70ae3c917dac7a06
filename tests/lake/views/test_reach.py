"""Which changes lie beyond the last of the first rows?"""

from math import nan
from typing import Any

import pyarrow as pa
import pytest

from springhouse.lake.views.reach import out_of_reach
from springhouse.views.delta.statement import Leading


def leading(order: str) -> Leading:
    return Leading("points", (("scores_change", "points"),), "DESC" in order, "FIRST" in order)


def column(values: list[Any], kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


@pytest.mark.parametrize(
    ("order", "stored", "changed", "expected"),
    [
        ("DESC", [30, 20], [19, 1], True),
        ("DESC", [30, 20], [20], False),  # a tie: what comes next in the order decides
        ("DESC", [30, 20], [25], False),
        ("DESC", [30, 20], [], True),
        ("DESC", [30, 20], [None], True),
        ("DESC NULLS FIRST", [30, 20], [None], False),
        ("DESC", [30, None], [None], False),
        ("ASC NULLS FIRST", [1, 2], [3], True),
        ("ASC NULLS FIRST", [1, 2], [3, None], False),
        ("ASC NULLS LAST", [1, 2], [3, None], True),
        ("ASC NULLS FIRST", [1, 2], [2, 3], False),
        ("DESC", [], [3], False),
    ],
)
def test_numbers(order: str, stored: list[Any], changed: list[Any], expected: bool) -> None:
    for kind in (pa.int64(), pa.float64(), pa.decimal128(12, 2)):
        found = out_of_reach(leading(order), column(stored, kind), [column(changed, kind)])
        assert found is expected


def test_where_only_spark_knows_the_order() -> None:
    floats, lists = pa.float64(), pa.list_(pa.int64())
    order = leading("DESC")
    assert not out_of_reach(order, column([3.0], floats), [column([nan], floats)])
    assert not out_of_reach(order, column([nan], floats), [column([1.0], floats)])
    assert not out_of_reach(order, column([[3]], lists), [column([[1]], lists)])
    assert not out_of_reach(order, column([3], pa.int64()), [column([1.0], floats)])


def test_every_part_of_a_change_counts() -> None:
    kind = pa.string()
    far, near = column(["a"], kind), column(["y"], kind)
    assert out_of_reach(leading("DESC"), column(["x", "z"], kind), [far, far])
    assert not out_of_reach(leading("DESC"), column(["x", "z"], kind), [far, near])
