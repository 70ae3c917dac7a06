"""Semi joins and anti joins: rows that find a partner, and rows that find none."""

import pytest
from scenario import View

LEFT = "a int, x string"
RIGHT = "b int, y int"
ROWS = [(1, "one"), (1, "one"), (2, "two"), (None, "none")]


def having_partner(condition: str) -> View:
    return View(f"SELECT x FROM l WHERE {condition}", l=(LEFT, ROWS), r=(RIGHT, [(1, 5)]))


@pytest.mark.parametrize("condition", ["EXISTS (SELECT 1 FROM r WHERE b = a)", "a IN (TABLE)"])
def test_a_row_is_there_once_however_many_partners_it_has(condition: str) -> None:
    view = having_partner(condition.replace("TABLE", "SELECT b FROM r"))
    assert view.rows == [("one",), ("one",)]
    view.insert("r", (1, 6), (2, 6), (2, 6))
    assert view.rows == [("one",), ("one",), ("two",)]
    view.delete("r", (2, 6), (1, 5))
    assert view.rows == [("one",), ("one",), ("two",)]
    view.delete("r", (2, 6), (1, 6))
    assert view.rows == []


def test_a_row_without_a_partner_is_there_until_it_finds_one() -> None:
    view = having_partner("NOT EXISTS (SELECT 1 FROM r WHERE b = a)")
    assert view.rows == [("none",), ("two",)]
    view.update("r", (1, 5), (2, 5))
    assert view.rows == [("none",), ("one",), ("one",)]
    view.change(l=([(1, "one")], [(2, "zwei"), (None, "none")]), r=([(2, 5)], [(2, 6)]))
    assert view.rows == [("none",), ("none",), ("one",)]


def test_both_sides_change_at_once() -> None:
    view = having_partner("EXISTS (SELECT 1 FROM r WHERE b = a)")
    view.change(l=([(1, "one")], [(3, "three"), (4, "four")]), r=([(1, 5)], [(3, 5)]))
    assert view.rows == [("three",)]


def test_a_partner_has_to_meet_all_conditions() -> None:
    view = having_partner("EXISTS (SELECT 1 FROM r WHERE b = a AND y > 5 AND length(x) < y)")
    assert view.rows == []
    view.insert("r", (1, 6), (2, 3))
    assert view.rows == [("one",), ("one",)]


def test_a_partner_by_inequality_alone() -> None:
    view = having_partner("EXISTS (SELECT 1 FROM r WHERE b < a)")
    assert view.rows == [("two",)]
    view.update("r", (1, 5), (0, 5))
    assert view.rows == [("one",), ("one",), ("two",)]


def test_any_row_at_all_is_a_partner() -> None:
    view = having_partner("NOT EXISTS (SELECT 1 FROM r)")
    assert view.rows == []
    view.delete("r", (1, 5))
    assert view.rows == [("none",), ("one",), ("one",), ("two",)]
    view.insert("r", (None, None))
    assert view.rows == []


@pytest.mark.parametrize(
    ("kind", "expected"), [("SEMI", [("one",), ("one",)]), ("ANTI", [("none",), ("two",)])]
)
def test_the_words_of_spark_for_it(kind: str, expected: list[tuple[str]]) -> None:
    view = View(f"SELECT x FROM l LEFT {kind} JOIN r ON a = b", l=(LEFT, ROWS), r=(RIGHT, [(1, 5)]))
    assert view.rows == expected
    view.insert("r", (2, 5), (1, 5))
    view.delete("r", (1, 5), (2, 5))
    assert view.rows == expected


def test_several_partners_change_at_once() -> None:
    view = View(
        "SELECT x FROM l WHERE EXISTS (SELECT 1 FROM r WHERE b = a)"
        " AND NOT EXISTS (SELECT 1 FROM s WHERE c = a)",
        l=(LEFT, [(1, "one"), (2, "two"), (3, "three")]),
        r=(RIGHT, [(1, 0), (2, 0)]),
        s=("c int", [(2,)]),
    )
    assert view.rows == [("one",)]
    view.change(r=([(1, 0)], [(3, 0)]), s=([(2,)], [(1,)]))
    assert view.rows == [("three",), ("two",)]


def test_a_table_asks_itself() -> None:
    view = View(
        "SELECT k FROM t x WHERE NOT EXISTS (SELECT 1 FROM t y WHERE y.boss = x.k)",
        t=("k int, boss int", [(1, None), (2, 1)]),
    )
    assert view.rows == [(2,)]
    view.change(t=([(2, 1)], [(3, 2), (2, 3)]))
    assert view.rows == [(1,)]
