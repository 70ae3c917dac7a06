"""The effect of a function on rows: none, gathering them, multiplying them, or randomness."""

import pytest
from sqlglot import parse_one

from springhouse.views.read.functions import (
    aggregates,
    is_aggregate,
    is_generator,
    of_nothing,
    validate_deterministic,
)
from springhouse.views.read.not_compilable import NotCompilable


@pytest.mark.parametrize(
    "call",
    [
        *["count(*)", "sum(a)", "avg(a)", "min(a)", "max(a)", "first(a)", "collect_list(a)"],
        *["every(a)", "some(a)", "any(a)", "bool_and(a)", "count_if(a)", "mode(a)", "median(a)"],
        *["percentile(a, 0.5)", "approx_count_distinct(a)", "stddev(a)", "corr(a, b)", "std(a)"],
        *["sum(a) FILTER (WHERE b)", "max_by(a, b)", "listagg(a)", "collect_set(a)"],
    ],
)
def test_these_gather_the_rows_of_a_group(call: str) -> None:
    assert is_aggregate(parse_one(call, read="spark"))


@pytest.mark.parametrize("call", ["abs(a)", "upper(a)", "sum(a) + 1", "a", "my_function(a)"])
def test_these_do_not(call: str) -> None:
    assert not is_aggregate(parse_one(call, read="spark"))


@pytest.mark.parametrize(
    ("text", "gathered"),
    [
        ("sum(a) + max(b)", ["SUM(a)", "MAX(b)"]),
        ("sum(a) OVER (ORDER BY b)", []),
        ("sum(sum(a)) OVER (PARTITION BY max(b) ORDER BY min(c))", ["SUM(a)", "MAX(b)", "MIN(c)"]),
        ("lag(a) IGNORE NULLS OVER (ORDER BY b)", []),
        ("sum(a) FILTER (WHERE b) OVER (ORDER BY c)", []),
        ("a LIKE ANY ('x%', 'y%')", []),
    ],
)
def test_what_a_window_takes_as_its_own_gathers_no_rows(text: str, gathered: list[str]) -> None:
    found = aggregates(parse_one(text, read="spark"))
    assert [each.sql(dialect="spark") for each in found] == gathered


@pytest.mark.parametrize(
    ("call", "nothing"),
    [
        ("count(a)", "0"),
        ("count_if(a)", "0"),
        ("approx_count_distinct(a)", "0"),
        ("count(*) FILTER (WHERE a)", "0"),
        ("sum(a)", "NULL"),
        ("bool_or(a)", "NULL"),
        ("first(a) IGNORE NULLS", "NULL"),
    ],
)
def test_what_an_aggregate_of_no_rows_is(call: str, nothing: str) -> None:
    assert of_nothing(parse_one(call, read="spark")).sql() == nothing


def test_of_most_aggregates_nobody_knows_what_they_are_of_no_rows() -> None:
    with pytest.raises(NotCompilable, match=r"`COLLECT_LIST\(a\)` of no rows is not understood"):
        of_nothing(parse_one("collect_list(a)", read="spark"))


@pytest.mark.parametrize(
    "call",
    [
        *["explode(a)", "explode_outer(a)", "posexplode(a)", "posexplode_outer(a)"],
        *["inline(a)", "inline_outer(a)", "stack(2, a, b)", "json_tuple(a, 'b')"],
    ],
)
def test_these_make_several_rows_of_one(call: str) -> None:
    assert is_generator(parse_one(call, read="spark"))
    assert not is_generator(parse_one("sequence(1, 3)", read="spark"))


@pytest.mark.parametrize(
    "call",
    [
        *["rand()", "randn()", "uuid()", "randstr(5)", "uniform(1, 9)", "shuffle(a)"],
        *["current_date()", "current_date", "current_timestamp()", "now()", "localtimestamp()"],
        *["current_user()", "user()", "session_user()", "current_database()"],
        *["input_file_name()", "spark_partition_id()", "monotonically_increasing_id()"],
    ],
)
def test_these_say_something_else_each_time(call: str) -> None:
    name = call.partition("(")[0]
    with pytest.raises(NotCompilable, match=f"`{name}` gives another value each time"):
        validate_deterministic(parse_one(f"SELECT a, {call} AS c FROM t", read="spark"))


def test_a_sample_gives_other_rows_each_time() -> None:
    with pytest.raises(NotCompilable, match="TABLESAMPLE gives other rows each time") as found:
        validate_deterministic(
            parse_one("SELECT a FROM t\nJOIN u TABLESAMPLE (5 ROWS)", read="spark")
        )
    assert found.value.line == 2


def test_what_the_rows_decide_is_fine() -> None:
    text = "SELECT upper(a), sum(b), date_add(c, 1){more} FROM t GROUP BY 1, 3"
    validate_deterministic(parse_one(text.format(more=""), read="spark"))
    with pytest.raises(NotCompilable):
        validate_deterministic(parse_one(text.format(more=", rand()"), read="spark"))
