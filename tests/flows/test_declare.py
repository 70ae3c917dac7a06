"""The declaration of a flow, its results, and the errors of a wrong declaration."""

import re
from collections.abc import Callable

import pyarrow as pa
import pytest

import springhouse
from springhouse.flows.declare import Draft
from springhouse.flows.flow_graph import FlowError
from springhouse.flows.flow_rows import Rows
from springhouse.flows.policy_choice import PolicyName

ORDERS = pa.table(
    {
        "customer": [1, 2, 1, 3, 4],
        "amount": [10, 0, 30, 40, 50],
        "quantity": [1, 1, 2, 1, 1],
    }
)
CUSTOMERS = pa.table({"customer": [1, 2, 3], "country": ["NO", "NO", "SE"]})


@springhouse.flow
def orders(flow: Draft) -> None:
    fresh = flow.read("raw_orders").where("amount > 0").compute(total="amount * quantity")
    known = fresh.lookup(flow.read("customers"), on="customer", take="country")
    home, abroad = known.split("country = 'NO'")
    home.write("orders_home")
    abroad.write("orders_abroad")
    known.aggregate("country", revenue="sum(total)").write("revenue")


def test_a_flow_reads_like_a_sentence_and_does_what_it_says() -> None:
    made = orders.run({"raw_orders": ORDERS, "customers": CUSTOMERS})
    assert [row["total"] for row in made["orders_home"].to_pylist()] == [10, 60]
    assert [row["country"] for row in made["orders_abroad"].to_pylist()] == ["SE", None]
    revenue = {row["country"]: row["revenue"] for row in made["revenue"].to_pylist()}
    assert revenue == {"NO": 70, "SE": 40, None: 50}


Declare = Callable[[Draft], object]
WRONG: list[tuple[str, Declare]] = [
    ('names a column "price"', lambda flow: flow.read("orders").where("price > 0")),
    ("amount is BIGINT, not a condition", lambda flow: flow.read("orders").where("amount")),
    ('the columns of "nowhere" are not known', lambda flow: flow.read("nowhere")),
    ("amount \\+ 1 has no name", lambda flow: flow.read("orders").select("amount + 1")),
    (
        "median\\(amount\\) is not an aggregate that a flow has",
        lambda flow: flow.read("orders").aggregate(m="median(amount)"),
    ),
    (
        'names a column "nation", which "customers" doesn\'t have',
        lambda flow: flow.read("orders").lookup(
            flow.read("customers"), on="customer", take="nation"
        ),
    ),
    (
        'compares "amount" \\(BIGINT\\) with "country" \\(STRING\\)',
        lambda flow: flow.read("orders").join(flow.read("customers"), on={"amount": "country"}),
    ),
    (
        'would have the column "customer" twice',
        lambda flow: flow.read("orders").lookup(
            flow.read("customers"), on="customer", take="customer"
        ),
    ),
    (
        'can\'t take the rows of "customers"',
        lambda flow: flow.read("orders").union(flow.read("customers")),
    ),
    ("on_violation is one of", lambda flow: flow.read("orders").expect(on_violation="x")),
    ("on_error is", lambda flow: flow.read("orders").apply(print, on_error="ignore")),
    ("of type 1 or 2", lambda flow: _history(flow, scd_type=3)),
]


def _history(flow: Draft, scd_type: int) -> object:
    changes = flow.read("orders")
    return changes.keep_history(changes, keys="customer", sequence="amount", scd_type=scd_type)


@pytest.mark.parametrize(("says", "declare"), WRONG, ids=[says for says, _ in WRONG])
def test_what_is_wrong_is_said_before_any_row_moves(says: str, declare: Declare) -> None:
    with pytest.raises(FlowError, match=says):
        springhouse.flow(declare).graph({"orders": ORDERS.schema, "customers": CUSTOMERS.schema})


def test_a_flow_says_how_it_runs() -> None:
    declared = springhouse.flow(policy="minimum-memory", pack_bytes=1000)(lambda flow: None)
    assert declared.settings().policy is PolicyName.MINIMUM_MEMORY
    assert declared.settings({"policy": "mixed"}).policy is PolicyName.MIXED
    assert declared.settings({"policy": "mixed"}).pack_bytes == 1000
    with pytest.raises(FlowError, match='there is no policy "fastest"'):
        declared.settings({"policy": "fastest"})
    with pytest.raises(FlowError, match='a flow has no setting "thread"'):
        declared.settings({"thread": 3})


def test_a_function_may_promise_other_columns() -> None:
    @springhouse.flow
    def lengths(flow: Draft) -> None:
        def length(pack: pa.RecordBatch) -> pa.RecordBatch:
            return pa.record_batch({"n": pa.array([pack.num_rows], pa.int32())})

        flow.read("orders").apply(length, schema="n INT").write("out")

    assert lengths.run({"orders": ORDERS})["out"].to_pylist() == [{"n": 5}]


def test_a_function_that_returns_other_columns_is_named_with_them() -> None:
    @springhouse.flow
    def wrong(flow: Draft) -> None:
        def score(pack: pa.RecordBatch) -> pa.RecordBatch:
            return pack.rename_columns(["customer", "price", "quantity"])

        flow.read("orders").apply(score).write("out")

    says = (
        'activity "score" returned other columns than it promised: '
        'column "amount" is missing; column "price" is not expected'
    )
    with pytest.raises(FlowError, match=says):
        wrong.run({"orders": ORDERS})


def test_a_function_that_returns_no_rows_at_all() -> None:
    @springhouse.flow
    def wrong(flow: Draft) -> None:
        flow.read("orders").apply(lambda pack: 3, name="three").write("out")  # type: ignore[arg-type,return-value]

    with pytest.raises(FlowError, match='activity "three" returned int, not rows'):
        wrong.run({"orders": ORDERS})


def test_expectations_are_a_router_of_the_same_pass() -> None:
    @springhouse.flow
    def careful(flow: Draft) -> None:
        good = flow.read("orders").expect(paid="amount > 0", on_violation="quarantine")
        good.expect(small="amount < 50", on_violation="drop").write("out")

    made = careful.run({"orders": ORDERS}, pack_bytes=48)
    assert made["out"].column("amount").to_pylist() == [10, 30, 40]
    aside = [(row["reason"], row["origin"]) for row in made["quarantine"].to_pylist()]
    assert aside == [("expectation paid: amount > 0", "expect")]

    @springhouse.flow
    def strict(flow: Draft) -> None:
        flow.read("orders").expect(paid="amount > 0").write("out")

    with pytest.raises(FlowError, match='1 row in "expect" broke the expectation "paid"'):
        strict.run({"orders": ORDERS})


def test_packs_that_a_function_can_not_take_go_to_quarantine_with_the_reason() -> None:
    @springhouse.flow
    def careful(flow: Draft) -> None:
        def model(pack: pa.RecordBatch) -> pa.RecordBatch:
            if 40 in pack.column("amount").to_pylist():
                raise ValueError("I don't know 40")
            return pack

        flow.read("orders").apply(model, on_error="quarantine").write("out")

    made = careful.run({"orders": ORDERS}, pack_bytes=48)
    assert made["out"].column("amount").to_pylist() == [10, 0, 50]
    aside = made["quarantine"].to_pylist()
    assert [row["reason"] for row in aside] == ["ValueError: I don't know 40"] * 2
    assert {row["origin"] for row in aside} == {"model"}
    assert aside[1]["record"] == '{"customer": 3, "amount": 40, "quantity": 1}'


CLASHES = [
    (lambda rows: rows.select("k", "n AS k"), 'would have the column "k" twice'),
    (lambda rows: rows.aggregate("k", k="max(n)"), 'would have the column "k" twice'),
    (lambda rows: rows.aggregate(["k", "k"]), 'would have the column "k" twice'),
    (lambda rows: rows.join(rows, on="k", take=["s", "s"]), 'the column "s" twice'),
    (lambda rows: rows.join(rows, on={}, take=[]), "joins on no column"),
    (lambda rows: rows.join(rows, on="s", take=[]), "A flow joins by no STRUCT<a: BIGINT>"),
    (lambda rows: rows.sort("1"), "sorts by what is the same for all rows: 1"),
    (lambda rows: rows.sort("n", "2 DESC"), "sorts by what is the same for all rows: n, 2 DESC"),
    (lambda rows: rows.surrogate_key(rows, on="k", key="n"), "nothing else; there are k, n, s"),
    (
        lambda rows: rows.select("k").surrogate_key(rows.select("k", "k AS id"), on="k", key="id"),
        "which is no whole number but STRING",
    ),
    (
        lambda rows: rows.select("k").surrogate_key(
            rows.select("n AS k", "n AS id"), on="k", key="id"
        ),
        'looks for "k" \\(STRING\\) among BIGINT',
    ),
    (
        lambda rows: rows.keep_history(rows, keys="k", sequence="n"),
        "can't compare STRUCT<a: BIGINT>",
    ),
]


@pytest.mark.parametrize(("declare", "says"), CLASHES)
def test_columns_that_clash_are_said_before_any_row_moves(
    declare: Callable[[Rows], object], says: str
) -> None:
    @springhouse.flow
    def clashing(flow: Draft) -> None:
        declare(flow.read("rows", "k STRING, n BIGINT, s STRUCT<a: BIGINT>"))

    with pytest.raises(FlowError) as raised:
        clashing.graph()
    assert re.search(says, f"{raised.value.problem} {raised.value.hint}")


@pytest.mark.parametrize("measure", ["x", "sum_x", "x_sum", "_x"])
@pytest.mark.parametrize("key", ["__x", "__sum_x", "___x", "__x_sum", "key"])
def test_a_key_may_have_any_name(key: str, measure: str) -> None:
    """Columns for partial sums have names of their own."""

    @springhouse.flow
    def summed(flow: Draft) -> None:
        flow.read("rows").aggregate(key, **{measure: "sum(x)", "mean": "avg(x)"}).write("sums")

    rows = pa.table({key: [1, 2, 2], "x": [10, 20, 30]})
    made = summed.run({"rows": rows})["sums"].to_pylist()
    assert made == [{key: 1, measure: 10, "mean": 10.0}, {key: 2, measure: 50, "mean": 25.0}]


UNSETTLED = [
    {"theta": -1},
    {"theta": "x"},
    {"slot_seconds": 0},
    {"slot_seconds": float("nan")},
    {"slot_seconds": "x"},
    {"policy": None},
    {"policy": 5},
    {"policy": "fastest"},
]


@pytest.mark.parametrize("said", UNSETTLED, ids=str)
def test_a_setting_that_means_nothing_is_refused(said: dict[str, object]) -> None:
    @springhouse.flow
    def passed(flow: Draft) -> None:
        flow.read("rows").write("same")

    with pytest.raises(FlowError, match=r"a flow can't run with|there is no policy"):
        passed.run({"rows": pa.table({"n": [1]})}, **said)
