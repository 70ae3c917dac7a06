"""To which output does each row go? Routers, unions and expectations."""

import pyarrow as pa
import pytest

from springhouse.flows.activities.router import ExpectationRouter
from springhouse.flows.declare import Draft, flow
from springhouse.flows.flow_graph import FlowError
from springhouse.flows.row_expressions import compile_expression

NUMBERS = pa.record_batch({"a": pa.array([1, 5, None, 12, -3], pa.int64())})


def test_the_first_condition_that_holds_and_the_rest() -> None:
    @flow
    def routed(flow: Draft) -> None:
        low, middle, rest = flow.read("n").route("a < 3", "a < 10")
        low.write("low")
        middle.write("middle")
        rest.write("rest")
        low.union(rest).write("again")

    made = routed.run({"n": pa.Table.from_batches([NUMBERS])})
    found = {name: rows.column("a").to_pylist() for name, rows in made.items()}
    assert found["low"] == [1, -3]
    assert found["middle"] == [5]
    assert found["rest"] == [None, 12], "NULL is neither"
    assert sorted(found["again"], key=repr) == sorted([1, -3, None, 12], key=repr)


def judge(**fates: str) -> ExpectationRouter:
    conditions = {"there": "a IS NOT NULL", "small": "a < 10", "positive": "a > 0"}
    expected = {
        name: (compile_expression(conditions[name], NUMBERS.schema, name), fate, conditions[name])
        for name, fate in fates.items()
    }
    return ExpectationRouter("orders", expected)


def test_expectations_keep_drop_and_set_aside_in_one_pass() -> None:
    judging = judge(there="dropped", small="set aside", positive="kept")
    outputs = dict(judging.take(0, NUMBERS))
    assert outputs[0].column("a").to_pylist() == [1, 5, -3]
    assert outputs[1].to_pylist() == [
        {"reason": "expectation small: a < 10", "record": '{"a": 12}', "origin": "orders"}
    ]
    assert judging.violations == {"there": 1, "small": 2, "positive": 2}, "NULL breaks them all"


def test_an_expectation_that_must_not_be_broken() -> None:
    with pytest.raises(FlowError, match='2 rows in "orders" broke the expectation "small": a < 10'):
        judge(small="failure").take(0, NUMBERS)
