"""The stored form of a view, the steps of a refresh, and the relations that statements read."""

from collections.abc import Iterator

import pytest
from random_cases import case, describe
from scenario import compiled, read

from springhouse.views.algebra.query_tree import inputs
from springhouse.views.compile import Compiled, compile_view
from springhouse.views.delta.row_select import WEIGHT
from springhouse.views.delta.statement import (
    STALE,
    Bag,
    Keyed,
    RelationKind,
    Statement,
    Step,
    TableLayout,
    Top,
    readings,
)

ORDERS = "id int, customer int, amount decimal(12,2)"
CUSTOMERS = "id int, country string"
ITEMS = "id int, order_id int, price double"

JOINED = "SELECT o.id, country FROM orders o JOIN customers c ON o.customer = c.id"
REVENUE = (
    "SELECT country, sum(amount) AS revenue"
    " FROM orders o JOIN customers c ON o.customer = c.id GROUP BY country"
)
THREE = (
    "SELECT i.id, country FROM items i JOIN orders o ON i.order_id = o.id"
    " JOIN customers c ON o.customer = c.id"
)
SPENDERS = (
    "SELECT country, count(*) AS spenders FROM customers c"
    " JOIN (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer) t"
    " ON c.id = t.customer WHERE total > 100 GROUP BY country"
)


def shop(query: str) -> Compiled:
    return compiled(query, orders=ORDERS, customers=CUSTOMERS, items=ITEMS)


def steps(query: str, *changed: str) -> tuple[Step, ...]:
    return shop(query).refresh(frozenset(changed)).steps


def last(query: str, *changed: str) -> Step:
    return steps(query, *changed)[-1]


def layout(query: str) -> TableLayout:
    return shop(query).build[-1].layout


def hints(statement: Statement) -> dict[str, list[str]]:
    """For each relation that a statement reads: the hints that limit its rows."""
    return {
        name: [
            f"{near.column} among {' or '.join(map('.'.join, near.among))}" for near in reading.near
        ]
        for name, reading in read(statement).items()
    }


def statements(step: Step) -> Iterator[Statement]:
    match step:
        case Keyed():
            found = (step.build, step.increments, step.merge, step.merge_given, step.recompute)
        case Bag():
            found = (step.build, step.change)
        case Top():
            found = (step.build, step.candidates)
    yield from (each for each in found if each is not None)


# The stored form


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (JOINED, Bag),
        (REVENUE, Keyed),
        ("SELECT DISTINCT country FROM customers", Keyed),
        ("SELECT max(amount) AS most FROM orders", Keyed),
        ("SELECT twice * 2 AS q FROM (SELECT sum(id) * 2 AS twice FROM orders) AS t", Keyed),
        ("SELECT id FROM orders ORDER BY amount DESC, id LIMIT 3", Top),
        (f"{REVENUE} HAVING sum(amount) > 5", Bag),
        (f"{JOINED} UNION ALL {JOINED}", Bag),
        (f"{JOINED} UNION {JOINED}", Keyed),
    ],
)
def test_the_top_of_the_query_decides_how_a_view_is_kept(query: str, kind: type) -> None:
    assert type(shop(query).build[-1]) is kind


def test_rows_are_stored_as_they_are() -> None:
    assert layout(JOINED) == TableLayout(("id", "country"))


def test_groups_are_stored_with_their_states() -> None:
    assert layout(REVENUE) == TableLayout(
        visible=("country", "revenue"),
        hidden=("__springhouse_count", "__springhouse_present_1", "__springhouse_decimal_sum_2"),
        keys=("country",),
        types={"__springhouse_decimal_sum_2": "decimal(22,2)"},
    )


def test_a_key_that_is_not_selected_is_stored_all_the_same() -> None:
    found = layout("SELECT sum(amount) AS total FROM orders GROUP BY customer, id % 2")
    assert found.visible == ("total",)
    assert found.keys == ("__springhouse_key_customer", "__springhouse_key_value_id")
    assert set(found.keys) < set(found.hidden)


def test_one_group_has_no_key() -> None:
    (step,) = shop("SELECT count(*) AS n FROM orders").build
    assert step.layout == TableLayout(("n",), ("__springhouse_count",))
    assert isinstance(step, Keyed)
    assert step.is_one_group


def test_groups_without_states_are_stored_as_they_are_shown() -> None:
    found = layout("SELECT order_id, sum(price) AS total FROM items GROUP BY order_id")
    assert found == TableLayout(("order_id", "total"), (), ("order_id",))


def test_what_orders_the_first_rows_is_stored() -> None:
    found = layout("SELECT country FROM customers ORDER BY id LIMIT 3")
    assert found == TableLayout(("country",), ("__springhouse_order_key",))


def test_names_may_be_given() -> None:
    found = compile_view("SELECT k, k + 1 FROM t", {"t": {"k": "int"}}, ["k", "(k + 1)"])
    assert found.names == ("k", "(k + 1)")
    assert found.build[-1].layout.visible == ("k", "(k + 1)")


# Hidden tables


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (JOINED, []),
        (REVENUE, []),
        (SPENDERS, ["orders_by_customer"]),
        (f"{REVENUE} HAVING sum(amount) > 5", ["orders_customers_by_country"]),
        ("SELECT id FROM orders WHERE amount > (SELECT avg(amount) FROM orders)", ["orders_total"]),
        (
            (
                "SELECT n, count(*) AS m FROM (SELECT customer, count(*) AS n FROM orders"
                " GROUP BY customer) AS q GROUP BY n"
            ),
            ["orders_by_customer"],
        ),
        (
            (
                "SELECT id FROM customers UNION ALL SELECT id FROM"
                " (SELECT DISTINCT id, customer, amount FROM orders) AS q"
            ),
            ["distinct_orders"],
        ),
        # Two columns would have the same name.
        (
            (
                "SELECT id FROM orders WHERE amount > (SELECT avg(amount) FROM orders)"
                " AND id < (SELECT max(id) FROM orders)"
            ),
            ["orders_total", "orders_total_2"],
        ),
        # The keys of the side whose rows may be missing.
        (
            "SELECT c.id FROM customers c LEFT JOIN orders o ON c.id = customer",
            ["orders_by_customer"],
        ),
        (
            (
                "SELECT id FROM customers c WHERE NOT EXISTS"
                " (SELECT 1 FROM orders o WHERE c.id = customer)"
            ),
            ["orders_by_customer"],
        ),
        ("SELECT id FROM customers WHERE id IN (SELECT customer FROM orders)", []),
    ],
)
def test_aggregates_below_the_top_are_hidden_tables(query: str, names: list[str]) -> None:
    found = shop(query)
    assert list(found.hidden.values()) == names
    assert [step.table for step in found.build] == [*names, ""]


def test_a_hidden_table_is_not_called_like_an_input() -> None:
    found = compiled(
        "SELECT n FROM (SELECT a, count(*) AS n FROM t GROUP BY a) AS q, t_by_a",
        t="a int",
        t_by_a="b int",
    )
    assert list(found.hidden.values()) == ["t_by_a_2"]


def test_a_hidden_table_is_kept_by_its_own_keys_with_its_own_states() -> None:
    hidden, view = shop(SPENDERS).build
    assert hidden.layout == TableLayout(
        visible=("customer", "sum_amount"),
        hidden=("__springhouse_count", "__springhouse_present_1", "__springhouse_decimal_sum_2"),
        keys=("customer",),
        types={"__springhouse_decimal_sum_2": "decimal(22,2)"},
    )
    assert view.layout == TableLayout(
        ("country", "spenders"), ("__springhouse_count",), ("country",)
    )


def test_a_hidden_table_of_constants_is_built_and_never_refreshed() -> None:
    found = compiled(
        "SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM (VALUES (1), (1), (2)) AS v(n)"
        " WHERE n = k)",
        t="k int",
    )
    assert [step.table for step in found.build] == ["constants_by_n", ""]
    assert [step.table for step in found.refresh(frozenset({"t"})).steps] == [""]


# Steps


def test_only_hidden_tables_that_change_have_a_step() -> None:
    assert [step.table for step in steps(SPENDERS, "orders")] == ["orders_by_customer", ""]
    assert [step.table for step in steps(SPENDERS, "customers")] == [""]


def test_a_refresh_says_what_it_is_for_and_is_made_once() -> None:
    found = shop(SPENDERS)
    changed = frozenset({"orders"})
    assert found.refresh(changed).changed == changed
    assert found.refresh(changed) is found.refresh(changed)
    assert found.inputs == {"orders", "customers"}


@pytest.mark.parametrize(
    ("measure", "is_carried"),
    [
        *[("sum(amount)", True), ("avg(amount)", True), ("sum(id)", True), ("count(*)", True)],
        *[("max(price)", True), ("min(price) + count(price)", True)],
        *[("sum(price)", False), ("avg(price)", False), ("count(DISTINCT id)", False)],
        *[("sum(amount * price)", False), ("sum(CAST(price AS DECIMAL(10,2)))", True)],
        # One aggregate without maintained state is enough.
        ("sum(amount) + sum(price)", False),
    ],
)
def test_exact_sums_are_carried_and_others_recomputed(measure: str, is_carried: bool) -> None:
    found = compiled(
        f"SELECT id, {measure} AS m FROM t GROUP BY id",
        t="id int, amount decimal(12,2), price double",
    )
    (step,) = found.build
    assert isinstance(step, Keyed)
    assert (step.merge is not None) == is_carried
    assert (step.merge_given is not None) == is_carried
    assert (step.count is not None) == is_carried
    assert any(name.startswith("__springhouse") for name in step.layout.hidden) == is_carried


# The relations that statements read


def test_a_join_of_two_reads_what_is_near_the_change_of_the_other() -> None:
    step = last(JOINED, "orders", "customers")
    assert isinstance(step, Bag)
    assert hints(step.change) == {
        "orders_change": [],
        "customers_before": ["id among orders_change.customer"],
        "customers_change": [],
        "orders_after": ["customer among customers_change.id"],
    }


def test_in_a_join_of_three_the_rows_near_a_change_lead_to_the_next_ones() -> None:
    for changed, expected in {
        "items": {
            "orders_after": ["id among items_change.order_id"],
            "customers_after": ["id among orders_after.customer"],
        },
        "customers": {
            "orders_after": ["customer among customers_change.id"],
            "items_after": ["order_id among orders_after.id"],
        },
        "orders": {
            "items_after": ["order_id among orders_change.id"],
            "customers_after": ["id among orders_change.customer"],
        },
    }.items():
        step = last(THREE, changed)
        assert isinstance(step, Bag)
        assert hints(step.change) == {f"{changed}_change": [], **expected}


def test_what_does_not_change_is_read_once_as_it_is_now() -> None:
    query = (
        "SELECT o.id, c.country FROM customers c LEFT JOIN orders o ON o.customer = c.id"
        " WHERE c.id <> 3 OR EXISTS (SELECT 1 FROM customers d WHERE d.country = c.country)"
    )
    for step in steps(query, "orders"):
        for statement in statements(step):
            of_customers = [each for each in statement.reads if each.of == "customers"]
            assert {each.kind for each in of_customers} <= {RelationKind.AFTER}
            assert len({each.near for each in of_customers}) == len(of_customers)
    step = last(JOINED, "orders")
    assert isinstance(step, Bag)
    assert list(read(step.change)) == ["orders_change", "customers_after"]


def test_groups_are_merged_in_one_go_or_in_two_halves() -> None:
    step = last(REVENUE, "orders")
    assert isinstance(step, Keyed)
    assert step.merge is not None
    assert step.merge_given is not None
    assert set(read(step.merge)) == {*read(step.increments), "stored_groups"}
    assert hints(step.merge_given) == {
        "increments": [],
        "stored_groups": ["country among increments.country"],
    }
    assert STALE in step.merge.sql
    assert STALE in step.merge_given.sql


def test_groups_that_are_in_doubt_are_computed_from_their_rows() -> None:
    step = last(REVENUE, "orders")
    assert isinstance(step, Keyed)
    assert step.touched_names == ("touched_country",)
    assert hints(step.recompute) == {
        "touched": [],
        "customers_after": ["country among touched.touched_country"],
        "orders_after": ["customer among customers_after.id"],
    }


def test_the_view_reads_the_changes_of_its_hidden_tables() -> None:
    step = last(SPENDERS, "orders")
    assert isinstance(step, Keyed)
    assert hints(step.increments) == {
        "orders_by_customer_change": [],
        "customers_after": ["id among orders_by_customer_change.customer"],
    }


def test_the_relations_of_a_statement_can_be_put_elsewhere() -> None:
    step = last(JOINED, "orders")
    assert isinstance(step, Bag)
    places = {name: f"somewhere.{name}" for name in read(step.change)}
    text = step.change.template().format_map(places)
    assert "FROM somewhere.orders_change" in text
    assert "FROM somewhere.customers_after" in text
    assert "FROM orders_change" in step.change.sql


def test_a_statement_says_which_columns_it_needs() -> None:
    step = last(JOINED, "orders")
    assert isinstance(step, Bag)
    assert step.change.columns == {
        "orders_change": {"id", "customer", WEIGHT},
        "customers_after": {"id", "country"},
    }


def test_all_relations_of_some_statements_each_once() -> None:
    step = last(REVENUE, "orders")
    assert isinstance(step, Keyed)
    assert step.merge is not None
    assert readings([step.increments, step.merge]) == step.merge.reads


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_every_relation_that_a_statement_reads_is_there_by_then(first: int) -> None:
    for seed in range(first, first + 40):
        given = case(seed)
        found = compile_view(given.query, given.tables)
        names = {name: node for node, name in found.hidden.items()}
        for changed in [found.inputs, *(frozenset({name}) for name in found.inputs)]:
            written: set[str] = set()
            for step in found.refresh(changed).steps:
                for reading in readings(statements(step)):
                    if reading.kind is RelationKind.CHANGE:
                        assert reading.of in changed | written, describe(given)
                    if reading.kind is RelationKind.BEFORE:
                        below = names.get(reading.of)
                        moves = inputs(below) if below is not None else {reading.of}
                        assert moves & changed, describe(given)
                    if reading.kind is RelationKind.AFTER:
                        assert reading.of in found.inputs | names.keys(), describe(given)
                written.add(step.table)
