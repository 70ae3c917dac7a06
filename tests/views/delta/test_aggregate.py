"""Groups: maintained aggregates, recomputed aggregates, NULLs and empty groups."""

import math
from decimal import Decimal
from random import Random
from typing import NamedTuple

import pytest
from scenario import View, compiled
from sqlglot import parse_one

from springhouse.views.algebra.exact import number_type
from springhouse.views.algebra.query_tree import Aggregate, Scan
from springhouse.views.delta.aggregate import AggregateState, decompose
from springhouse.views.delta.statement import Keyed
from springhouse.views.sql.sql_tree import FromClause, table
from warehouse import Row, Warehouse, shared_database

SALES = "shop string, amount int"


class Number(NamedTuple):
    exact: Decimal
    inexact: float


def by_shop(measure: str, *rows: tuple[str | None, int | None]) -> View:
    return View(f"SELECT shop, {measure} AS m FROM sales GROUP BY shop", sales=(SALES, list(rows)))


def test_null_is_a_group_like_any_other() -> None:
    view = by_shop("count(*)", (None, 1), ("a", 1))
    assert view.rows == [(None, 1), ("a", 1)]
    view.insert("sales", (None, 2))
    assert view.rows == [(None, 2), ("a", 1)]
    view.delete("sales", (None, 1), (None, 2))
    assert view.rows == [("a", 1)]


def test_a_group_that_empties_is_gone_and_comes_back_as_new() -> None:
    view = by_shop("sum(amount)", ("a", 5))
    view.delete("sales", ("a", 5))
    assert view.rows == []
    view.insert("sales", ("a", 3))
    assert view.rows == [("a", 3)]


def test_a_group_may_sum_to_nothing_and_still_be_there() -> None:
    view = by_shop("sum(amount)", ("a", 5))
    view.insert("sales", ("a", -5))
    assert view.rows == [("a", 0)]


def test_a_sum_of_nulls_is_null_and_not_zero() -> None:
    view = by_shop("sum(amount)", ("a", None), ("a", 5))
    assert view.rows == [("a", 5)]
    view.delete("sales", ("a", 5))
    assert view.rows == [("a", None)]
    view.insert("sales", ("a", 0))
    assert view.rows == [("a", 0)]


def test_a_count_passes_over_nulls_only_if_it_counts_a_column() -> None:
    view = by_shop("count(amount) * 10 + count(*)", ("a", None), ("a", 1))
    assert view.rows == [("a", 12)]
    view.update("sales", ("a", 1), ("a", None))
    assert view.rows == [("a", 2)]


def test_an_average_passes_over_nulls() -> None:
    view = by_shop("avg(amount)", ("a", 1), ("a", None))
    assert view.rows == [("a", 1.0)]
    view.insert("sales", ("a", 2))
    assert view.rows == [("a", 1.5)]
    view.delete("sales", ("a", 1), ("a", 2))
    assert view.rows == [("a", None)]


@pytest.mark.parametrize(("extreme", "sign"), [("min", 1), ("max", -1)])
def test_the_smallest_and_the_largest(extreme: str, sign: int) -> None:
    def row(amount: int) -> tuple[str, int]:
        return ("a", sign * amount)

    view = by_shop(f"{extreme}(amount)", row(2), row(2), row(5))
    assert view.rows == [row(2)]
    view.delete("sales", row(2))
    assert view.rows == [row(2)], "a copy is still there"
    view.delete("sales", row(2))
    assert view.rows == [row(5)], "the next has to be looked for"
    view.change(sales=([row(5)], [row(1)]))
    assert view.rows == [row(1)], "what comes beats what goes"
    view.change(sales=([row(1)], [("a", None), row(9)]))
    assert view.rows == [row(9)]
    view.delete("sales", row(9))
    assert view.rows == [("a", None)]


def test_what_comes_and_goes_in_one_change_was_never_there() -> None:
    view = View(
        "SELECT max(x) AS m FROM l JOIN r ON a = b",
        l=("a int, x int", [(1, 5)]),
        r=("b int", [(1,), (2,)]),
    )
    # The change of the join has both rows: the pair came with its left row, and went with its right
    # row.
    view.change(l=([], [(2, 9)]), r=([(2,)], []))
    assert view.rows == [(5,)]


def test_truth_of_all_and_of_any() -> None:
    view = by_shop(
        "concat(bool_and(amount > 0), ' ', bool_or(amount > 0))", ("a", 1), ("a", None), ("b", None)
    )
    assert view.rows == [("a", "true true"), ("b", None)]
    view.insert("sales", ("a", -1))
    assert view.rows == [("a", "false true"), ("b", None)]
    view.delete("sales", ("a", 1))
    assert view.rows == [("a", "false false"), ("b", None)]


def test_only_some_rows_are_gathered() -> None:
    view = by_shop(
        "coalesce(sum(amount) FILTER (WHERE amount > 1), -1) * 10 + count_if(amount > 1)",
        ("a", 1),
        ("a", 2),
    )
    assert view.rows == [("a", 21)]
    view.update("sales", ("a", 2), ("a", 1))
    assert view.rows == [("a", -10)]


def test_distinct_values() -> None:
    view = by_shop("count(DISTINCT amount)", ("a", 1), ("a", 1), ("a", None))
    assert view.rows == [("a", 1)]
    view.delete("sales", ("a", 1))
    assert view.rows == [("a", 1)]
    view.change(sales=([("a", 1)], [("a", 2), ("a", 3)]))
    assert view.rows == [("a", 2)]


def test_all_rows_are_one_group_even_when_there_are_none() -> None:
    view = View("SELECT count(*) AS n, sum(amount) AS total FROM sales", sales=(SALES, []))
    assert view.rows == [(0, None)]
    view.insert("sales", ("a", 5), ("b", 6))
    assert view.rows == [(2, 11)]
    view.delete("sales", ("a", 5), ("b", 6))
    assert view.rows == [(0, None)]


def test_having_lets_groups_in_and_out() -> None:
    view = View(
        "SELECT shop FROM sales GROUP BY shop HAVING sum(amount) > 10",
        sales=(SALES, [("a", 9), ("b", 11)]),
    )
    assert view.rows == [("b",)]
    view.change(sales=([("b", 11)], [("a", 9)]))
    assert view.rows == [("a",)]


def test_a_key_may_be_computed_and_need_not_be_selected() -> None:
    view = View(
        "SELECT sum(amount) AS total FROM sales GROUP BY upper(shop), amount > 5",
        sales=(SALES, [("a", 1), ("A", 2), ("a", 7)]),
    )
    assert view.rows == [(3,), (7,)]
    view.delete("sales", ("a", 1), ("a", 7))
    assert view.rows == [(2,)]


def test_distinct_rows_stay_until_their_last_copy_goes() -> None:
    view = View("SELECT DISTINCT shop FROM sales", sales=(SALES, [("a", 1), ("a", 2), (None, 1)]))
    view.delete("sales", ("a", 1))
    assert view.rows == [(None,), ("a",)]
    view.delete("sales", ("a", 2), (None, 1))
    assert view.rows == []


def test_groups_of_groups() -> None:
    view = View(
        "SELECT n, count(*) AS shops FROM"
        " (SELECT shop, count(*) AS n FROM sales GROUP BY shop) AS q GROUP BY n",
        sales=(SALES, [("a", 1), ("a", 2), ("b", 1)]),
    )
    assert view.rows == [(1, 1), (2, 1)]
    view.change(sales=([("a", 1)], [("c", 1)]))
    assert view.rows == [(1, 3)]


# Maintained aggregates


def carried(measure: str, kind: str = "int") -> AggregateState | None:
    """The state that maintains a measure over a column `a` of this type; None if it has none."""
    node = Aggregate(Scan("t", ("k", "a"), ("k", "a")), ("k",), (("m", parse_one(measure)),))
    return decompose(node, lambda _: number_type(kind))


@pytest.mark.parametrize(
    ("measure", "states"),
    [
        ("COUNT(*)", []),
        ("COUNT(1)", []),
        ("COUNT(a)", ["present"]),
        ("SUM(a)", ["present", "sum"]),
        ("AVG(a)", ["present", "sum", "sum"]),
        ("MIN(a)", ["min"]),
        ("MAX(a)", ["max"]),
        ("BOOL_AND(a)", ["count", "present"]),
        ("COUNT(*) FILTER(WHERE a > 1)", ["count"]),
    ],
)
def test_what_is_carried(measure: str, states: list[str]) -> None:
    found = carried(measure)
    assert found is not None
    assert sorted(state.carry.value for state in found.states) == states


@pytest.mark.parametrize(
    "measure", ["COUNT(DISTINCT a)", "SUM(DISTINCT a)", "MEDIAN(a)", "STDDEV(a)", "COUNT(a, k)"]
)
def test_what_is_recomputed(measure: str) -> None:
    assert carried(measure) is None


def test_sums_are_carried_only_if_they_are_exact() -> None:
    assert carried("SUM(a)", "double") is None
    assert carried("AVG(a)", "double") is None
    assert carried("MAX(a)", "double") is not None


def test_averages_and_sums_of_decimals_are_carried_as_long_as_no_digit_is_in_doubt() -> None:
    def are_carried(kind: str) -> tuple[bool, bool]:
        return carried("SUM(a)", kind) is not None, carried("AVG(a)", kind) is not None

    assert are_carried("decimal(18,6)") == (True, True)
    assert are_carried("decimal(19,0)") == (True, False)
    assert are_carried("decimal(38,37)") == (True, False)
    assert are_carried("decimal(38,38)") == (False, False)


def test_what_is_computed_is_computed_once() -> None:
    found = carried("SUM(a * 2 + 1)")
    assert found is not None
    items, source = found.increments(("k",), "changed_rows")
    assert not any("a * 2" in item.sql(dialect="spark") for item in items)
    assert source.relation.sql(dialect="spark").count("a * 2 + 1 AS __springhouse_value_1") == 1
    plain = carried("SUM(a)")
    assert plain is not None
    assert plain.increments(("k",), "changed_rows")[1] == FromClause(table("changed_rows"))


def test_two_measures_share_their_states() -> None:
    node = Aggregate(
        Scan("t", ("k", "a"), ("k", "a")),
        ("k",),
        tuple((f, parse_one(f"{f}(a)")) for f in ("SUM", "AVG", "COUNT")),
    )
    found = decompose(node, lambda _: number_type("decimal(12,2)"))
    assert found is not None
    assert [state.name for state in found.states] == [
        "__springhouse_present_1",
        "__springhouse_decimal_sum_2",
    ]


# A thousand refreshes


def drifted(measures: str) -> list[tuple[Row, list[Number]]]:
    """Groups after a thousand changes, each with the numbers that it should have gathered."""
    dice = Random(4)

    def number() -> Number:
        # Of very different sizes: a running sum of doubles would lose the small ones.
        return Number(Decimal(dice.randint(-(10**9), 10**9)) / 100, 10 ** dice.uniform(-6, 9))

    schemas = {"t": {"k": "int", "d": "decimal(18,2)", "x": "double"}}
    query = f"SELECT k, {measures} FROM t GROUP BY k"
    rows = [(dice.randrange(2), *number()) for _ in range(30)]
    warehouse = Warehouse(schemas, query, database=shared_database())
    warehouse.load({"t": rows})
    for _ in range(1_000):
        gone, came = dice.randrange(len(rows)), (dice.randrange(2), *number())
        warehouse.change({"t": ([rows[gone]], [came])})
        rows[gone] = came
    found = warehouse.rows()
    assert [row[0] for row in found] == [0, 1]
    return [(row[1:], [Number(d, x) for k, d, x in rows if k == row[0]]) for row in found]


def test_a_thousand_refreshes_leave_a_sum_of_decimals_exact() -> None:
    for (total, count), numbers in drifted("sum(d) AS total, count(d) AS n"):
        assert (total, count) == (sum(each.exact for each in numbers), len(numbers))


def test_a_thousand_refreshes_leave_a_sum_of_doubles_as_good_as_new() -> None:
    for (total, mean), numbers in drifted("sum(x) AS total, avg(x) AS mean"):
        expected = math.fsum(each.inexact for each in numbers)
        assert math.isclose(total, expected, rel_tol=1e-9)
        assert math.isclose(mean, expected / len(numbers), rel_tol=1e-9)


def test_a_sum_of_decimals_is_carried_and_one_of_doubles_recomputed() -> None:
    table = "k int, d decimal(18,2), x double"
    for measure, is_carried in (("sum(d)", True), ("avg(d)", True), ("sum(x)", False)):
        (step,) = compiled(f"SELECT k, {measure} AS m FROM t GROUP BY k", t=table).build
        assert isinstance(step, Keyed)
        assert (step.merge is not None) == is_carried
