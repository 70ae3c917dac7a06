"""The report of `explain` about a compiled view: plain data from the statements that run."""

from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from springhouse.views.compile import compile_view
from springhouse.views.explanation import (
    HiddenColumn,
    RefreshExplanation,
    StatementExplanation,
    StepExplanation,
    explain_refresh,
)

SCHEMAS = {
    "orders": {"id": "bigint", "customer": "bigint", "amount": "decimal(12,2)"},
    "customers": {"id": "bigint", "country": "string"},
}
REVENUE = (
    "SELECT country, sum(amount) AS revenue "
    "FROM orders o JOIN customers c ON o.customer = c.id GROUP BY country"
)
SPENDERS = (
    "SELECT country, count(*) AS spenders FROM customers c "
    "JOIN (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer) t "
    "ON c.id = t.customer WHERE total > 100 GROUP BY country"
)


def told(query: str, **options: Any) -> RefreshExplanation:
    return explain_refresh(compile_view(query, SCHEMAS), "v", **options)


def statement(step: StepExplanation, name: str) -> StatementExplanation:
    return next(each for each in step.statements if each.name == name)


def meanings(step: StepExplanation, name: str) -> dict[str, str]:
    return {each.name: each.meaning for each in statement(step, name).reads}


def test_every_relation_of_a_statement_is_said_to_be_something() -> None:
    (step,) = told(REVENUE).steps
    assert meanings(step, "merge") == {
        "orders_change": "the rows of orders that changed, with __springhouse_weight +1 or -1",
        "customers_change": (
            "the rows of customers that changed, with __springhouse_weight +1 or -1"
        ),
        "customers_before": (
            "customers as of the version that v reflects; "
            "only rows matter whose id is among orders_change.customer"
        ),
        "orders_after": (
            "orders as of the version that v will reflect; "
            "only rows matter whose customer is among customers_change.id"
        ),
        "stored_groups": (
            "v as it is stored, with its hidden columns; "
            "only rows matter whose country is among customers_before.country "
            "or customers_change.country"
        ),
    }
    assert meanings(step, "recompute")["touched"] == (
        "the keys of the groups to compute anew, as touched_country"
    )
    assert meanings(step, "merge_given")["increments"] == "the rows that `increments` gave"


def test_hidden_tables_are_written_before_the_view_and_read_by_name() -> None:
    first, last = told(SPENDERS).steps
    assert (first.writes, first.hidden, first.holds) == (
        "orders_by_customer",
        True,
        "one row per customer",
    )
    assert (last.writes, last.hidden, last.holds) == ("v", False, "one row per country")
    assert meanings(first, "merge")["stored_groups"] == (
        "the hidden table orders_by_customer as it is stored, with its hidden columns; "
        "only rows matter whose customer is among orders_change.customer"
    )
    assert meanings(last, "merge")["orders_by_customer_change"] == (
        "the rows of the hidden table orders_by_customer that changed by an earlier step, "
        "with __springhouse_weight +1 or -1"
    )


def test_the_state_says_what_each_hidden_column_holds() -> None:
    state = told(SPENDERS).state
    assert state.hidden_columns == (HiddenColumn("__springhouse_count", "COUNT(*)"),)
    (table,) = state.tables
    assert (table.name, table.keys, table.columns) == (
        "orders_by_customer",
        ("customer",),
        ("customer", "sum_amount"),
    )
    assert HiddenColumn("__springhouse_decimal_sum_2", "SUM(amount)") in table.hidden_columns


def test_what_orders_the_first_rows_is_traced_to_where_it_comes_from() -> None:
    state = told("SELECT id FROM orders ORDER BY amount DESC LIMIT 3").state
    assert [column.holds for column in state.hidden_columns] == ["amount"]


USUAL = [
    (REVENUE, ["merge"]),
    ("SELECT id FROM orders WHERE amount > 5", ["change"]),
    ("SELECT id FROM orders ORDER BY id LIMIT 3", ["candidates"]),
    ("SELECT id FROM orders ORDER BY id LIMIT 3 OFFSET 2", ["build"]),
    ("SELECT customer, count(DISTINCT amount) AS n FROM orders GROUP BY customer", ["increments"]),
]


@pytest.mark.parametrize(("query", "first"), USUAL)
def test_what_usually_runs_comes_first_and_building_last(query: str, first: list[str]) -> None:
    (step,) = told(query).steps
    usual = [each.name for each in step.statements if each.usual]
    names = [each.name for each in step.statements]
    assert usual[:1] == first
    assert names[: len(usual)] == usual
    assert names[-1] == "build"


def test_groups_that_are_recomputed_take_two_statements() -> None:
    query = "SELECT customer, count(DISTINCT amount) AS n FROM orders GROUP BY customer"
    (step,) = told(query).steps
    assert [each.name for each in step.statements if each.usual] == [
        "increments",
        "recompute",
    ]


def test_only_the_steps_of_what_changed_are_told() -> None:
    steps = told(SPENDERS, changed=frozenset({"customers"})).steps
    assert [step.writes for step in steps] == ["v"]
    assert set(meanings(steps[0], "merge")) == {
        "customers_change",
        "orders_by_customer_after",
        "stored_groups",
    }


def test_a_delta_table_of_others_is_called_as_the_user_calls_it() -> None:
    names = {"orders": "delta.`data/orders`"}
    whole = told("SELECT id FROM orders", inputs=names)
    assert whole.changed == ("delta.`data/orders`",)
    assert meanings(whole.steps[0], "change")["orders_change"].startswith(
        "the rows of delta.`data/orders` that changed"
    )


@pytest.mark.parametrize("query", [REVENUE, SPENDERS, *(query for query, _ in USUAL)])
def test_the_sql_names_exactly_the_relations_that_are_listed(query: str) -> None:
    whole = told(query)
    for step in whole.steps:
        for each in step.statements:
            tree = sqlglot.parse_one(each.sql, read="spark")
            defined = {cte.alias for cte in tree.find_all(exp.CTE)}
            named = {table.name for table in tree.find_all(exp.Table)}
            assert named - defined == {relation.name for relation in each.reads}
