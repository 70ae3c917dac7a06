"""Into how many rows does a change turn? From the numbers of rows alone."""

from springhouse.views.compile import compile_view
from springhouse.views.spread import Spread, spread

SCHEMAS = {
    "lines": {"l_order": "bigint", "l_supplier": "bigint", "l_price": "bigint"},
    "orders": {"o_id": "bigint", "o_customer": "bigint"},
    "customers": {"c_id": "bigint", "c_name": "string"},
    "suppliers": {"s_id": "bigint", "s_name": "string"},
}
ROWS = {"lines": 4_000, "orders": 1_000, "customers": 100, "suppliers": 10}
BAG = "SELECT l_order, s_name FROM lines JOIN suppliers ON l_supplier = s_id"


def spread_of(query: str, changed: dict[str, int], view_rows: int = 4_000) -> Spread:
    refresh = compile_view(query, SCHEMAS).refresh(frozenset(changed))
    return spread(refresh, changed, {**ROWS, "": view_rows})


def test_a_changed_row_changes_all_that_refer_to_it() -> None:
    assert spread_of(BAG, {"suppliers": 2}) == Spread(made=2 * 400 - 2)


def test_no_more_rows_come_and_go_than_the_view_has() -> None:
    assert spread_of(BAG, {"suppliers": 2}, view_rows=1_000) == Spread(made=2 * 100 - 2)
    # The number is unknown, or the view is still empty: assume that no row is left out.
    assert spread_of(BAG, {"suppliers": 2}, view_rows=0) == Spread(made=2 * 400 - 2)


def test_a_row_that_refers_to_others_meets_one_of_them() -> None:
    assert spread_of(BAG, {"lines": 50}) == Spread()


def test_groups_gather_what_a_change_meets_through_others() -> None:
    query = (
        "SELECT c_name, sum(l_price) AS spent FROM lines JOIN orders ON l_order = o_id "
        "JOIN customers ON c_id = o_customer GROUP BY c_name"
    )
    assert spread_of(query, {"customers": 3}) == Spread(met=3 * 40 - 3)


def test_orders_that_come_with_their_lines_become_nothing_beyond_them() -> None:
    query = "SELECT o_customer, l_price FROM orders JOIN lines ON l_order = o_id"
    assert spread_of(query, {"orders": 10, "lines": 40}) == Spread()


def test_what_is_not_joined_stays_what_it_is() -> None:
    query = "SELECT l_order AS id FROM lines UNION ALL SELECT s_id FROM suppliers"
    assert spread_of(query, {"suppliers": 2}) == Spread()
    assert spread_of("SELECT s_name, count(*) AS n FROM suppliers GROUP BY s_name", {}) == Spread()
