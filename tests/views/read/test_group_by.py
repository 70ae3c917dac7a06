"""Groups: the terms that the clauses above them may use, and the meaning of a name there."""

import pytest
from scenario import View

SALES = "shop string, amount int, price int"
ROWS = [("a", 1, 9), ("a", 2, 8), ("b", 5, 1), ("c", 4, 7)]


def sales(query: str) -> View:
    return View(query, sales=(SALES, ROWS))


# HAVING


def test_having_by_an_alias() -> None:
    view = sales("SELECT shop, sum(amount) AS total FROM sales GROUP BY shop HAVING total > 3")
    assert view.rows == [("b", 5), ("c", 4)]
    view.change(sales=([("b", 5, 1)], [("a", 1, 0), ("b", 2, 0)]))
    assert view.rows == [("a", 4), ("c", 4)]


def test_an_alias_inside_a_condition() -> None:
    view = sales(
        "SELECT shop AS s, sum(amount) AS total, max(price) AS most FROM sales GROUP BY shop"
        " HAVING total + most > 11 OR upper(s) = 'B'"
    )
    assert view.rows == [("a", 3, 9), ("b", 5, 1)]
    view.insert("sales", ("c", 1, 0))
    assert view.rows == [("a", 3, 9), ("b", 5, 1), ("c", 5, 7)]


def test_inside_an_aggregate_a_name_is_a_column() -> None:
    view = sales(
        "SELECT shop, max(price) AS amount FROM sales GROUP BY shop HAVING sum(amount) > 3"
    )
    assert view.rows == [("b", 1), ("c", 7)]


def test_a_column_that_is_grouped_by_wins_over_an_alias() -> None:
    view = View(
        "SELECT -k AS k, count(*) AS n FROM t GROUP BY t.k HAVING k > 1",
        t=("k int", [(1,), (2,), (3,)]),
    )
    assert view.rows == [(-3, 1), (-2, 1)]


def test_a_column_that_is_not_grouped_by_loses_to_an_alias() -> None:
    view = sales("SELECT shop, sum(amount) AS price FROM sales GROUP BY shop HAVING price > 3")
    assert view.rows == [("b", 5), ("c", 4)]
    view.insert("sales", ("a", 1, 0))
    assert view.rows == [("a", 4), ("b", 5), ("c", 4)]


def test_a_key_under_the_name_of_the_column_that_it_is_computed_from() -> None:
    view = sales("SELECT upper(shop) AS shop FROM sales GROUP BY upper(shop) HAVING shop > 'A'")
    assert view.rows == [("B",), ("C",)]


def test_having_without_keys() -> None:
    view = sales("SELECT count(*) AS n FROM sales HAVING n > 4")
    assert view.rows == []
    view.insert("sales", ("d", 0, 0))
    assert view.rows == [(5,)]


def test_the_value_of_a_subquery_by_its_alias() -> None:
    view = sales(
        "SELECT shop, sum(amount) AS total, (SELECT avg(amount) FROM sales) AS usual"
        " FROM sales GROUP BY shop HAVING total > usual"
    )
    assert view.rows == [("b", 5, 3.0), ("c", 4, 3.0)]
    view.insert("sales", ("a", 8, 0))
    assert view.rows == [("a", 11, 4.0), ("b", 5, 4.0)]


# ORDER BY and QUALIFY


def test_an_order_by_what_only_the_order_gathers() -> None:
    view = sales("SELECT shop FROM sales GROUP BY shop ORDER BY sum(amount) DESC, shop LIMIT 2")
    assert view.rows == [("b",), ("c",)]
    view.insert("sales", ("a", 9, 0))
    assert view.rows == [("a",), ("b",)]
    view.delete("sales", ("b", 5, 1))
    assert view.rows == [("a",), ("c",)]


def test_an_order_by_something_computed_from_an_alias_and_an_aggregate() -> None:
    view = sales(
        "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop"
        " ORDER BY total * max(price) DESC, shop LIMIT 1 OFFSET 1"
    )
    assert view.rows == [("a", 3)]
    view.insert("sales", ("a", 1, 0))
    assert view.rows == [("c", 4)]


def test_groups_may_be_ranked_by_what_only_the_rank_gathers() -> None:
    view = sales(
        "SELECT shop FROM sales GROUP BY shop QUALIFY rank() OVER (ORDER BY sum(amount) DESC) = 1"
    )
    assert view.rows == [("b",)]
    view.change(sales=([("b", 5, 1)], [("a", 1, 0)]))
    assert view.rows == [("a",), ("c",)]


def test_the_order_of_levels() -> None:
    view = sales(
        "SELECT shop, sum(amount) AS total FROM sales GROUP BY ROLLUP (shop)"
        " ORDER BY grouping(shop) DESC, max(price), shop LIMIT 2"
    )
    assert view.rows == [(None, 12), ("b", 5)]
    view.delete("sales", ("b", 5, 1))
    assert view.rows == [(None, 7), ("c", 4)]


@pytest.mark.parametrize("key", ["2", "2.5", "'b'"])
def test_only_a_whole_number_is_a_place(key: str) -> None:
    view = sales(f"SELECT count(*) AS n, upper('x') AS x FROM sales GROUP BY {key}")
    assert view.rows == [(4, "X")]
