"""The change of an inner join: one term per child that changed."""

import pytest
from scenario import View, compiled, read

from springhouse.views.delta.statement import Bag

ORDERS = "id int, customer int"
CUSTOMERS = "id int, country string"
BY_COUNTRY = "SELECT o.id, country FROM orders o JOIN customers c ON o.customer = c.id"


def shop() -> View:
    return View(
        BY_COUNTRY,
        orders=(ORDERS, [(1, 7), (2, 7), (3, None)]),
        customers=(CUSTOMERS, [(7, "no"), (8, "se"), (None, "??")]),
    )


def test_a_row_meets_those_that_are_there() -> None:
    view = shop()
    assert view.rows == [(1, "no"), (2, "no")]
    view.insert("orders", (4, 8))
    assert view.rows == [(1, "no"), (2, "no"), (4, "se")]
    view.delete("customers", (7, "no"))
    assert view.rows == [(4, "se")]


def test_rows_that_come_on_both_sides_at_once_meet_once() -> None:
    view = shop()
    view.change(orders=([], [(5, 9)]), customers=([], [(9, "dk")]))
    assert view.rows == [(1, "no"), (2, "no"), (5, "dk")]


def test_rows_that_go_on_both_sides_at_once_go_once() -> None:
    view = shop()
    view.change(orders=([(1, 7)], []), customers=([(7, "no")], []))
    assert view.rows == []


def test_an_update_on_both_sides_at_once() -> None:
    view = shop()
    view.change(
        orders=([(1, 7), (2, 7)], [(1, 8)]), customers=([(8, "se")], [(8, "fi"), (8, "is")])
    )
    assert view.rows == [(1, "fi"), (1, "is")]


def test_null_meets_nothing_unless_it_is_asked_for() -> None:
    assert (3, "??") not in shop().rows
    view = View(
        BY_COUNTRY.replace("=", "<=>"),
        orders=(ORDERS, [(3, None)]),
        customers=(CUSTOMERS, [(None, "??"), (7, "no")]),
    )
    assert view.rows == [(3, "??")]
    view.insert("orders", (4, None))
    assert view.rows == [(3, "??"), (4, "??")]


def test_duplicates_multiply() -> None:
    view = View(
        "SELECT r.a FROM r JOIN t ON r.a = t.a",
        r=("a int", [(1,), (1,)]),
        t=("a int", [(1,), (1,), (1,)]),
    )
    assert view.rows == [(1,)] * 6
    view.change(r=([(1,)], []), t=([(1,)], []))
    assert view.rows == [(1,)] * 2


def test_a_table_joined_with_itself() -> None:
    view = View(
        "SELECT x.k AS above, y.k AS below FROM t x JOIN t y ON x.k = y.boss",
        t=("k int, boss int", [(1, None), (2, 1), (3, 3)]),
    )
    assert view.rows == [(1, 2), (3, 3)]
    view.change(t=([(1, None)], [(1, 1), (4, 2)]))
    assert view.rows == [(1, 1), (1, 2), (2, 4), (3, 3)]
    view.delete("t", (3, 3), (2, 1))
    assert view.rows == [(1, 1)]


def test_a_cte_joined_with_itself() -> None:
    view = View(
        """WITH totals AS (SELECT shop, sum(amount) AS total FROM sales GROUP BY shop)
           SELECT a.shop, b.shop AS better FROM totals a JOIN totals b ON a.total < b.total""",
        sales=("shop string, amount int", [("a", 1), ("b", 2)]),
    )
    assert view.rows == [("a", "b")]
    view.insert("sales", ("a", 5), ("c", 3))
    assert view.rows == [("b", "a"), ("b", "c"), ("c", "a")]
    assert list(view.compiled.hidden.values()) == ["sales_by_shop"]


def test_three_tables() -> None:
    view = View(
        "SELECT c.country, i.item FROM customers c, orders o, items i "
        "WHERE c.id = o.customer AND o.id = i.id",
        customers=(CUSTOMERS, [(7, "no")]),
        orders=(ORDERS, [(1, 7)]),
        items=("id int, item string", [(1, "pen"), (2, "cup")]),
    )
    assert view.rows == [("no", "pen")]
    view.change(orders=([], [(2, 8)]), customers=([], [(8, "se")]), items=([(1, "pen")], []))
    assert view.rows == [("se", "cup")]


def test_a_product_and_a_join_by_inequality() -> None:
    view = View(
        "SELECT x, y, z FROM r CROSS JOIN s JOIN t ON x < z",
        r=("x int", [(1,), (2,)]),
        s=("y int", [(5,)]),
        t=("z int", [(2,)]),
    )
    assert view.rows == [(1, 5, 2)]
    view.change(s=([], [(6,)]), t=([(2,)], [(3,)]))
    assert view.rows == [(1, 5, 3), (1, 6, 3), (2, 5, 3), (2, 6, 3)]


@pytest.mark.parametrize("join", ["JOIN t USING (k)", "NATURAL JOIN t"])
def test_a_column_that_both_sides_have(join: str) -> None:
    view = View(
        f"SELECT * FROM r {join}",
        r=("k int, a int", [(1, 10), (None, 20)]),
        t=("k int, b int", [(1, 30), (None, 40)]),
    )
    assert view.rows == [(1, 10, 30)]
    view.insert("t", (1, 31))
    assert view.rows == [(1, 10, 30), (1, 10, 31)]


def test_a_condition_on_one_side_is_asked_there() -> None:
    view = View(
        f"{BY_COUNTRY} WHERE country <> 'no' AND o.id > 1",
        orders=(ORDERS, [(1, 8), (2, 8), (3, 7)]),
        customers=(CUSTOMERS, [(7, "no"), (8, "se")]),
    )
    assert view.rows == [(2, "se")]
    view.update("customers", (7, "no"), (7, "fi"))
    assert view.rows == [(2, "se"), (3, "fi")]


def test_those_that_do_not_change_are_joined_once() -> None:
    three = compiled(
        "SELECT item FROM customers c, orders o, items i WHERE c.id = o.customer AND o.id = i.id",
        customers=CUSTOMERS,
        orders=ORDERS,
        items="id int, item string",
    )
    (step,) = three.refresh(frozenset({"customers", "orders"})).steps
    assert isinstance(step, Bag)
    assert [name for name in read(step.change) if name.startswith("items")] == ["items_after"]
    assert step.change.sql.count("items_after") == 1
