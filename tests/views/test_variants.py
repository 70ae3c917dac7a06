"""The ways in which a view can be refreshed."""

import pytest

from springhouse.views.compile import Compiled, compile_view
from springhouse.views.variants import (
    Way,
    can_drive,
    drives_alone,
    only_grows,
    regrouped,
    synchronous,
)

SCHEMAS = {
    "orders": {"id": "bigint", "customer": "bigint", "amount": "bigint"},
    "customers": {"id": "bigint", "country": "string"},
    "others": {"country": "string"},
}
JOIN = "orders o JOIN customers c ON o.customer = c.id"


def compiled(query: str) -> Compiled:
    return compile_view(query, SCHEMAS)


DRIVERS = {
    f"SELECT o.id, c.country FROM {JOIN}": {"orders", "customers"},
    f"SELECT c.country, sum(o.amount) AS total FROM {JOIN} GROUP BY c.country": {
        "orders",
        "customers",
    },
    # The view keeps the keys of its right side, which would have to advance too.
    "SELECT o.id, c.country FROM orders o LEFT JOIN customers c ON o.customer = c.id": set(),
    "SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers)": {"orders"},
    # The earlier rows decide whether a row is new.
    f"SELECT DISTINCT c.country FROM {JOIN}": {"orders", "customers"},
    f"SELECT c.country, percentile(o.amount, 0.5) AS p FROM {JOIN} GROUP BY c.country": set(),
    "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer": set(),
    "SELECT id, amount FROM orders": set(),
}


@pytest.mark.parametrize(("query", "drivers"), DRIVERS.items())
def test_who_can_drive(query: str, drivers: set[str]) -> None:
    view = compiled(query)
    assert {name for name in view.inputs if can_drive(view, name)} == drivers


UNION = "SELECT id, customer AS number FROM orders WHERE customer > 5 UNION ALL SELECT id, 0 FROM"


def test_a_side_of_a_union_drives_alone() -> None:
    view = compiled(f"{UNION} customers")
    assert {name for name in view.inputs if drives_alone(view, name)} == {"orders", "customers"}
    joined = compiled(f"SELECT o.id, c.country FROM {JOIN}")
    assert not any(drives_alone(joined, name) for name in joined.inputs)
    # A refresh must read the other side of the join: this side can drive, but not alone.
    both = "customers c JOIN others t ON c.country = t.country"
    part = compiled(f"{UNION} (SELECT c.id FROM {both})")
    assert can_drive(part, "customers")
    assert not drives_alone(part, "customers")
    assert drives_alone(part, "orders")


GROWS = {
    "SELECT id, amount FROM orders WHERE amount > 5": True,
    "SELECT DISTINCT customer FROM orders": True,
    f"SELECT o.id, c.country FROM {JOIN}": True,
    "SELECT customer, count(*) AS n FROM orders GROUP BY customer": False,
    "SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers)": False,
    "SELECT o.id, c.country FROM orders o LEFT JOIN customers c ON o.customer = c.id": False,
    "SELECT id FROM orders ORDER BY amount LIMIT 3": False,
}


@pytest.mark.parametrize(("query", "expected"), GROWS.items())
def test_which_views_only_gain_rows(query: str, expected: bool) -> None:
    assert only_grows(compiled(query)) is expected


def test_a_sum_can_be_merged_or_computed_anew() -> None:
    view = compiled("SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
    changed = frozenset({"orders"})
    assert synchronous(view, changed).way is Way.INCREMENTAL
    other = regrouped(view, changed)
    assert other is not None
    assert other.way is Way.GROUP_RECOMPUTE
    assert not can_drive(view, "orders")


def test_a_percentile_is_always_computed_anew() -> None:
    query = "SELECT customer, percentile(amount, 0.5) AS p FROM orders GROUP BY customer"
    view = compiled(query)
    assert synchronous(view, frozenset({"orders"})).way is Way.GROUP_RECOMPUTE
    assert regrouped(view, frozenset({"orders"})) is None


def test_a_join_has_no_groups() -> None:
    assert regrouped(compiled(f"SELECT o.id FROM {JOIN}"), frozenset({"orders"})) is None
