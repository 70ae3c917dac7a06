"""Queries inside of expressions: each becomes a join, exactly, NULLs included."""

import pytest
from scenario import View

LEFT = "a int, x string"
RIGHT = "b int, y int"


def asked(
    query: str, left: list[tuple[int | None, str]], right: list[tuple[int | None, int | None]]
) -> View:
    return View(query, l=(LEFT, left), r=(RIGHT, right))


# NOT IN


def test_not_in_is_true_of_nothing_as_long_as_there_is_a_null() -> None:
    view = asked("SELECT x FROM l WHERE a NOT IN (SELECT b FROM r)", [(1, "one")], [(2, 0)])
    assert view.rows == [("one",)]
    view.insert("r", (None, 0))
    assert view.rows == []
    view.delete("r", (None, 0))
    assert view.rows == [("one",)]


def test_null_is_not_in_nothing_but_in_anything_else_perhaps() -> None:
    view = asked("SELECT x FROM l WHERE a NOT IN (SELECT b FROM r)", [(None, "null")], [])
    assert view.rows == [("null",)]
    view.insert("r", (1, 0))
    assert view.rows == []
    view.delete("r", (1, 0))
    assert view.rows == [("null",)]


def test_not_in_among_those_of_its_own_group() -> None:
    view = asked(
        "SELECT x FROM l WHERE a NOT IN (SELECT b FROM r WHERE y = length(x))",
        [(1, "one"), (4, "four")],
        [(None, 4), (2, 3)],
    )
    assert view.rows == [("one",)]
    view.change(r=([(None, 4)], [(None, 3)]))
    assert view.rows == [("four",)]


def test_in_is_true_of_equals_only() -> None:
    view = asked(
        "SELECT x FROM l WHERE a IN (SELECT b FROM r)", [(1, "one"), (None, "null")], [(None, 0)]
    )
    assert view.rows == []
    view.insert("r", (1, 0))
    assert view.rows == [("one",)]


def test_in_compares_several_columns() -> None:
    view = View(
        "SELECT k FROM t WHERE (k, v) IN (SELECT b, y FROM r)",
        t=("k int, v int", [(1, 2), (2, 3)]),
        r=(RIGHT, [(1, 2), (2, 2)]),
    )
    assert view.rows == [(1,)]
    view.update("r", (1, 2), (2, 3))
    assert view.rows == [(2,)]


def test_what_is_tested_may_be_an_aggregate() -> None:
    view = asked(
        "SELECT b FROM r GROUP BY b HAVING sum(y) IN (SELECT a FROM l) OR max(b) NOT IN"
        " (SELECT a FROM l)",
        [(1, "one"), (5, "five")],
        [(1, 2), (1, 3), (2, 7), (5, 8)],
    )
    assert view.rows == [(1,), (2,)]
    view.change(l=([(1, "one")], [(7, "seven"), (2, "two")]), r=([(1, 3)], []))
    assert view.rows == [(1,), (2,)]


def test_what_is_tested_may_be_a_window_function() -> None:
    view = asked(
        "SELECT b FROM r QUALIFY rank() OVER (ORDER BY y) IN (SELECT a FROM l)",
        [(2, "two")],
        [(1, 10), (2, 20), (3, 30)],
    )
    assert view.rows == [(2,)]
    view.insert("r", (4, 0))
    assert view.rows == [(1,)]


def test_what_is_selected_may_reach_out() -> None:
    view = asked(
        "SELECT x FROM l WHERE a IN (SELECT b + y * length(x) FROM r)",
        [(7, "one"), (8, "four")],
        [(1, 2)],
    )
    assert view.rows == [("one",)]
    view.update("r", (1, 2), (0, 2))
    assert view.rows == [("four",)]


# AND, OR, NOT


def test_exists_under_or() -> None:
    view = asked(
        "SELECT x FROM l WHERE a > 5 OR EXISTS (SELECT 1 FROM r WHERE b = a)",
        [(1, "one"), (9, "nine"), (None, "null")],
        [],
    )
    assert view.rows == [("nine",)]
    view.insert("r", (1, 0), (9, 0))
    assert view.rows == [("nine",), ("one",)]
    view.change(l=([(9, "nine")], []), r=([(1, 0)], []))
    assert view.rows == []


def test_two_subqueries_under_or() -> None:
    view = View(
        "SELECT k FROM t WHERE k IN (SELECT a FROM l) OR k NOT IN (SELECT b FROM r)",
        t=("k int", [(1,), (2,), (None,)]),
        l=(LEFT, []),
        r=(RIGHT, [(1, 0), (2, 0)]),
    )
    assert view.rows == []
    view.change(l=([], [(1, "one")]), r=([(2, 0)], []))
    assert view.rows == [(1,), (2,)]
    view.delete("r", (1, 0))
    assert view.rows == [(None,), (1,), (2,)]


def test_neither_of_two() -> None:
    view = asked(
        "SELECT x FROM l WHERE NOT (a > 5 OR EXISTS (SELECT 1 FROM r WHERE b = a))",
        [(1, "one"), (2, "two"), (None, "null")],
        [(1, 0)],
    )
    assert view.rows == [("two",)]
    view.update("r", (1, 0), (2, 0))
    assert view.rows == [("one",)]


def test_exists_as_a_value() -> None:
    view = asked(
        "SELECT x, EXISTS (SELECT 1 FROM r WHERE b = a) AS found FROM l",
        [(1, "one"), (None, "null")],
        [],
    )
    assert view.rows == [("null", False), ("one", False)]
    view.insert("r", (1, 0), (1, 1), (None, 0))
    assert view.rows == [("null", False), ("one", True)]


# One value


def test_one_value_for_all_rows() -> None:
    view = asked(
        "SELECT x FROM l WHERE a > (SELECT avg(y) FROM r)", [(1, "one"), (5, "five")], [(0, 3)]
    )
    assert view.rows == [("five",)]
    view.insert("r", (0, -3))
    assert view.rows == [("five",), ("one",)]
    view.delete("r", (0, 3), (0, -3))
    assert view.rows == [], "nothing is greater than NULL"


def test_one_value_of_no_rows_is_null_in_the_select_list() -> None:
    view = asked("SELECT x, (SELECT max(y) FROM r) AS most FROM l", [(1, "one")], [])
    assert view.rows == [("one", None)]
    view.insert("r", (7, 8), (7, 9))
    assert view.rows == [("one", 9)]


def test_a_value_per_row() -> None:
    view = asked(
        "SELECT x, (SELECT sum(y) FROM r WHERE b = a) AS total FROM l",
        [(1, "one"), (2, "two"), (None, "null")],
        [(1, 5), (1, 6), (None, 7)],
    )
    assert view.rows == [("null", None), ("one", 11), ("two", None)]
    view.change(r=([(1, 5), (1, 6)], [(2, 0)]))
    assert view.rows == [("null", None), ("one", None), ("two", 0)]


def test_a_count_of_nothing_is_zero_and_not_null() -> None:
    view = asked(
        "SELECT x, (SELECT count(*) FROM r WHERE b = a) AS n FROM l",
        [(1, "one"), (2, "two"), (None, "null")],
        [(1, 5)],
    )
    assert view.rows == [("null", 0), ("one", 1), ("two", 0)]
    view.change(r=([(1, 5)], [(2, 5), (2, 5)]))
    assert view.rows == [("null", 0), ("one", 0), ("two", 2)]


def test_a_count_of_nothing_in_a_condition() -> None:
    view = asked(
        "SELECT x FROM l WHERE 0 = (SELECT count(y) FROM r WHERE b = a)",
        [(1, "one"), (2, "two")],
        [(1, 5), (2, None)],
    )
    assert view.rows == [("two",)]
    view.delete("r", (1, 5))
    assert view.rows == [("one",), ("two",)]


def test_something_computed_from_a_count_of_nothing() -> None:
    view = asked(
        "SELECT x, (SELECT coalesce(sum(y), -1) + count(*) FROM r WHERE b = a) AS n FROM l",
        [(1, "one")],
        [],
    )
    assert view.rows == [("one", -1)]
    view.insert("r", (1, 5))
    assert view.rows == [("one", 6)]


def test_a_count_of_some_of_nothing_is_zero_too() -> None:
    view = asked(
        "SELECT x, (SELECT count(*) FILTER (WHERE y > 1) FROM r WHERE b = a) AS n FROM l",
        [(1, "one"), (2, "two")],
        [(1, 5)],
    )
    assert view.rows == [("one", 1), ("two", 0)]
    view.delete("r", (1, 5))
    assert view.rows == [("one", 0), ("two", 0)]


def test_a_value_may_reach_out() -> None:
    view = asked("SELECT x, (SELECT max(y) + a FROM r) AS n FROM l", [(1, "one"), (2, "two")], [])
    assert view.rows == [("one", None), ("two", None)]
    view.insert("r", (1, 5), (2, 3))
    assert view.rows == [("one", 6), ("two", 7)]


def test_a_value_of_nothing_may_reach_out() -> None:
    view = asked(
        "SELECT x, (SELECT coalesce(max(y), a) FROM r WHERE b = a) AS n FROM l",
        [(1, "one"), (2, "two")],
        [(1, 5)],
    )
    assert view.rows == [("one", 5), ("two", 2)]
    view.change(r=([(1, 5)], [(2, 0)]))
    assert view.rows == [("one", 1), ("two", 0)]


def test_a_value_that_having_may_take_away() -> None:
    view = asked(
        "SELECT x, (SELECT sum(y) + a FROM r WHERE b = a HAVING count(*) > 1) AS n FROM l",
        [(1, "one"), (2, "two")],
        [(1, 5), (1, 6), (2, 7)],
    )
    assert view.rows == [("one", 12), ("two", None)]
    view.change(r=([(1, 5)], [(2, 0)]))
    assert view.rows == [("one", None), ("two", 9)]


def test_having_may_ask_how_many_there_are() -> None:
    view = asked(
        "SELECT x FROM l WHERE EXISTS (SELECT 1 FROM r WHERE b = a HAVING count(*) > 1)",
        [(1, "one"), (2, "two")],
        [(1, 5), (1, 6), (2, 7)],
    )
    assert view.rows == [("one",)]
    view.change(r=([(1, 5)], [(2, 0)]))
    assert view.rows == [("two",)]


def test_two_values_in_one_condition() -> None:
    view = asked(
        "SELECT x FROM l WHERE (SELECT max(y) FROM r WHERE b = a) > (SELECT avg(y) FROM r)",
        [(1, "one"), (2, "two")],
        [(1, 5), (2, 7)],
    )
    assert view.rows == [("two",)]
    view.insert("r", (1, 9))
    assert view.rows == [("one",)]


def test_the_first_of_all_rows() -> None:
    view = asked("SELECT x, (SELECT y FROM r ORDER BY b LIMIT 1) AS n FROM l", [(1, "one")], [])
    assert view.rows == [("one", None)]
    view.insert("r", (3, 5), (2, 7))
    assert view.rows == [("one", 7)]
    view.delete("r", (2, 7))
    assert view.rows == [("one", 5)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x, z FROM l LATERAL VIEW explode(array(a, (SELECT max(y) FROM r))) e AS z",
        "SELECT x, explode(array(a, (SELECT max(y) FROM r))) AS z FROM l",
    ],
)
def test_a_generator_over_a_value(query: str) -> None:
    view = asked(query, [(1, "one")], [(0, 7)])
    assert view.rows == [("one", 1), ("one", 7)]
    view.insert("r", (0, 9))
    assert view.rows == [("one", 1), ("one", 9)]


def test_the_best_of_its_group() -> None:
    view = View(
        "SELECT k, v FROM t x WHERE v = (SELECT max(v) FROM t y WHERE y.k = x.k)",
        t=("k int, v int", [(1, 1), (1, 2), (2, 1), (None, 9)]),
    )
    assert view.rows == [(1, 2), (2, 1)]
    view.change(t=([(1, 2)], [(2, 5), (2, 5)]))
    assert view.rows == [(1, 1), (2, 5), (2, 5)]


def test_a_subquery_in_having() -> None:
    view = asked(
        "SELECT b, sum(y) AS total FROM r GROUP BY b HAVING sum(y) > (SELECT max(a) FROM l)",
        [(5, "five")],
        [(1, 3), (1, 3), (2, 4)],
    )
    assert view.rows == [(1, 6)]
    view.change(l=([(5, "five")], [(3, "three")]), r=([(1, 3)], []))
    assert view.rows == [(2, 4)]


@pytest.mark.parametrize("word", ["IN", "NOT IN"])
def test_a_subquery_over_groups(word: str) -> None:
    view = asked(
        f"SELECT x FROM l WHERE a {word} (SELECT max(y) FROM r GROUP BY b)",
        [(3, "three"), (4, "four")],
        [(1, 3), (2, 1)],
    )
    assert view.rows == [("three",) if word == "IN" else ("four",)]
    view.insert("r", (1, 4))
    assert view.rows == [("four",) if word == "IN" else ("three",)]
