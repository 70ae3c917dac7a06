"""The checker finds the errors that it looks for."""

import pytest

from springhouse.planner.bounds import BoundInconsistency, BoundStaleness
from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG, UPSERTS, Block
from springhouse.simulate.workflow_checker import BrokenPromise, Checker

VERSIONS = {"a": [0, 1, 2], "b": [0, 1]}
TIMES = {"a": [0.0, 10.0, 20.0], "b": [0.0, 15.0]}


def state(a, b):
    return Provenance({"a": frozenset(a), "b": frozenset(b)})


@pytest.fixture
def checker():
    bounds = [BoundInconsistency("v", 6.0), BoundStaleness("v", None, 0.0)]
    made = Checker(bounds, {"v": (BASE, STRONG)})
    made.begin("v", state({0}, {0}))
    return made


def publish(checker, block):
    checker.published("v", block, VERSIONS, TIMES)


def test_what_is_right_passes(checker):
    publish(checker, Block("v", MONOTONE, state({1}, {0}), state({0}, {0})))
    publish(checker, Block("v", BASE, state({2}, {1})))
    assert checker.blocks == 2
    assert checker.worst_inconsistency == 0.0


def test_a_bound_that_is_used_up_in_part(checker):
    publish(checker, Block("v", BASE, state({2}, {0})))
    assert checker.worst_inconsistency == 5.0


def test_an_asynchronous_delta_mixes(checker):
    publish(checker, Block("v", STRONG, state({1}, {0}), state({0}, {0})))
    with pytest.raises(BrokenPromise, match="10 s inconsistent"):
        publish(
            checker, Block("v", BASE, Provenance({"a": frozenset({0, 2}), "b": frozenset({1})}))
        )


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (Block("v", UPSERTS, state({1}, {0}), state({0}, {0})), "a kind that it does not accept"),
        (Block("v", STRONG, state({2}, {0}), state({1}, {0})), "does not continue"),
        (Block("v", BASE, state({0}, {0})), "changes nothing"),
        (Block("v", BASE, Provenance({"a": frozenset({2})})), "went back on b"),
    ],
)
def test_what_is_wrong_does_not(checker, block, problem):
    with pytest.raises(BrokenPromise, match=problem):
        publish(checker, block)


def test_going_back(checker):
    publish(checker, Block("v", BASE, state({2}, {1})))
    with pytest.raises(BrokenPromise, match="went back on a"):
        publish(checker, Block("v", BASE, state({1}, {1})))
