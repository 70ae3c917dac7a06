"""GROUPING SETS, ROLLUP and CUBE: each row once per set, then one GROUP BY."""

import pytest
from scenario import View
from sqlglot import exp, parse_one

from springhouse.views.read.grouping_sets import Sets, read

SALES = "shop string, item string, amount int"
ROWS = [("a", "pen", 1), ("a", "cup", 2), ("b", "pen", 4)]


def grouped(by: str, *columns: str) -> View:
    listed = ", ".join(["shop", "item", *columns])
    return View(
        f"SELECT {listed}, sum(amount) AS total FROM sales GROUP BY {by}", sales=(SALES, ROWS)
    )


def test_a_rollup_has_a_total_per_level() -> None:
    view = grouped("ROLLUP (shop, item)")
    assert view.rows == [
        (None, None, 7),
        *[("a", None, 3), ("a", "cup", 2), ("a", "pen", 1)],
        *[("b", None, 4), ("b", "pen", 4)],
    ]
    view.change(sales=([("b", "pen", 4)], [("a", "pen", 5)]))
    assert view.rows == [(None, None, 8), ("a", None, 8), ("a", "cup", 2), ("a", "pen", 6)]


def test_a_cube_has_a_total_per_combination() -> None:
    view = grouped("CUBE (shop, item)")
    view.delete("sales", ("a", "pen", 1), ("a", "cup", 2))
    assert view.rows == [(None, None, 4), (None, "pen", 4), ("b", None, 4), ("b", "pen", 4)]


def test_the_sets_that_are_asked_for_and_no_others() -> None:
    view = grouped("GROUPING SETS ((shop), (item))")
    assert view.rows == [(None, "cup", 2), (None, "pen", 5), ("a", None, 3), ("b", None, 4)]
    view.update("sales", ("a", "cup", 2), ("c", "pen", 2))
    assert view.rows == [(None, "pen", 7), ("a", None, 1), ("b", None, 4), ("c", None, 2)]


def test_a_key_that_is_null_is_not_a_key_that_is_left_out() -> None:
    view = grouped("ROLLUP (shop, item)", "grouping_id(shop, item) AS level")
    view.insert("sales", ("b", None, 8))
    assert [row for row in view.rows if row[:2] == ("b", None)] == [
        ("b", None, 0, 8),
        ("b", None, 1, 12),
    ]
    view.delete("sales", ("b", "pen", 4))
    assert [row for row in view.rows if row[0] == "b"] == [("b", None, 0, 8), ("b", None, 1, 8)]


def test_the_level_of_a_row_is_a_bit_per_key_that_is_left_out() -> None:
    view = grouped("CUBE (shop, item)", "grouping_id() AS level", "grouping(item) AS alone")
    levels = {row[2:4] for row in view.rows}
    assert levels == {(0, 0), (1, 1), (2, 0), (3, 1)}
    view.insert("sales", ("c", "jar", 1))
    assert (None, None, 3, 1, 8) in view.rows
    assert ("c", None, 1, 1, 1) in view.rows


def test_what_is_gathered_may_be_a_key_too() -> None:
    view = View(
        "SELECT shop, count(shop) AS n FROM sales GROUP BY ROLLUP (shop)", sales=(SALES, ROWS)
    )
    assert view.rows == [(None, 3), ("a", 2), ("b", 1)]
    view.insert("sales", (None, "pen", 1))
    assert view.rows == [(None, 0), (None, 3), ("a", 2), ("b", 1)]


def sets(by: str) -> Sets:
    query = parse_one(f"SELECT 1 FROM t GROUP BY {by}", read="spark")
    return read(query.args["group"], lambda key: key, ())


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("a, b", ["ab"]),
        ("ROLLUP (a, b)", ["ab", "a", ""]),
        ("ROLLUP ((a, b), c)", ["abc", "ab", ""]),
        ("a, b WITH ROLLUP", ["ab", "a", ""]),
        ("CUBE (a, b)", ["ab", "a", "b", ""]),
        ("a, b WITH CUBE", ["ab", "a", "b", ""]),
        ("GROUPING SETS ((a, b), a, ())", ["ab", "a", ""]),
        ("a, ROLLUP (b)", ["ab", "a"]),
        ("GROUPING SETS ((a), (b)), GROUPING SETS ((c), ())", ["ac", "a", "bc", "b"]),
    ],
)
def test_what_a_clause_says(by: str, expected: list[str]) -> None:
    found = sets(by)
    names = [key.name for key in found.keys]
    assert ["".join(sorted(names[i] for i in each)) for each in found.sets] == expected


def test_without_a_clause_all_rows_are_one_group() -> None:
    assert read(None, lambda key: key, ()) == Sets((), (frozenset(),))


def test_spark_numbers_the_levels() -> None:
    found = sets("CUBE (a, b)")
    assert [found.level(each) for each in found.sets] == [0, 1, 2, 3]
    assert not found.is_plain
    assert sets("a, b").is_plain
    assert isinstance(found.keys[0], exp.Column)
