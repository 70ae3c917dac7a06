"""The owners of units in the next version."""

import pytest

from springhouse.cluster.assigner import Assigner, Presence
from springhouse.cluster.ring import Ring
from springhouse.cluster.state import Assignment, ClusterState, SnapshotVersion

NODES = ("a", "b", "c")
RING = Ring(NODES)
UNITS = {f"unit {number}": 1.0 for number in range(9)}
ALL_HERE = Presence(NODES, set(), unsure=False)


class Story:
    """A leader's decisions, one version after the other."""

    def __init__(self, **assignments):
        self.state = ClusterState(SnapshotVersion(1, 1), assignments=assignments)
        self.assigner = Assigner(
            RING, self.state, UNITS if not assignments else dict.fromkeys(assignments, 1.0)
        )

    def decide(self, presence=ALL_HERE):
        version = SnapshotVersion(1, self.state.version.number + 1)
        assignments, fenced = self.assigner.next_changes(self.state, version.number, presence)
        made = {**self.state.assignments, **assignments}
        made = {unit: assignment for unit, assignment in made.items() if assignment is not None}
        self.state = ClusterState(version, assignments=made, shares=self.state.shares)
        return assignments, fenced


def without(*gone):
    return Presence([node for node in NODES if node not in gone], set(gone), unsure=False)


@pytest.fixture
def settled():
    story = Story()
    story.decide()
    return story


def test_units_without_an_owner_get_one_at_once(settled):
    assert set(settled.state.assignments) == set(UNITS)
    assert {assignment.heir for assignment in settled.state.assignments.values()} == {None}
    assert settled.decide() == ({}, set())


def test_as_long_as_somebody_may_still_come_nothing_is_moved():
    assert Story().decide(Presence(["a", "b"], set(), unsure=True)) == ({}, set())


def test_units_of_a_node_that_is_gone_change_owner_and_it_is_fenced(settled):
    lost = {
        unit for unit, assignment in settled.state.assignments.items() if assignment.owner == "b"
    }
    changed, fenced = settled.decide(without("b"))
    assert set(changed) == lost
    assert fenced == {"b"}
    assert all(each.owner in ("a", "c") and each.heir is None for each in changed.values())


def test_a_node_that_comes_back_is_an_heir_first_and_an_owner_when_the_other_let_go(settled):
    settled.decide(without("b"))
    named, fenced = settled.decide()
    assert named
    assert fenced == set()
    assert {each.heir for each in named.values()} == {"b"}
    assert settled.decide() == ({}, set())
    unit, assignment = next(iter(named.items()))
    version, assignments = settled.state.version, settled.state.assignments
    assert settled.assigner.record_release(assignment.owner, [unit], version, assignments)
    handed, _ = settled.decide()
    assert {unit: each.owner for unit, each in handed.items()} == {unit: "b"}


@pytest.mark.parametrize(
    ("told", "who", "version"),
    [("of an earlier handover", "a", 6), ("of somebody else", "b", 9)],
)
def test_a_release_that_does_not_count(told, who, version):
    story = Story(one=Assignment("a", "b", since=7))
    assert not story.assigner.record_release(
        who, ["one"], SnapshotVersion(1, version), story.state.assignments
    ), told


def test_the_heir_goes_before_the_owner_let_go_and_the_owner_keeps_it():
    for owner in ("a", "c"):
        story = Story(one=Assignment(owner, "b", since=1))
        changed, fenced = story.decide(without("b"))
        assert fenced == set()
        assert changed["one"] == Assignment(owner, owner, since=1)


def test_who_may_have_nothing_keeps_nothing_though_the_heir_goes():
    story = Story(one=Assignment("a", "b", since=1))
    story.state = ClusterState(
        story.state.version, assignments=story.state.assignments, shares={"a": 0.0}
    )
    changed, _ = story.decide(without("b"))
    assert changed["one"] == Assignment("a", "c", since=1)


def test_the_owner_goes_before_it_let_go():
    story = Story(one=Assignment("a", "b", since=1, offset=5))
    changed, fenced = story.decide(without("a"))
    assert fenced == {"a"}
    assert changed["one"] == Assignment("b", None, 2, 5)


def test_a_drained_node_gives_everything_away(settled):
    had = {
        unit for unit, assignment in settled.state.assignments.items() if assignment.owner == "b"
    }
    settled.state = ClusterState(
        settled.state.version, assignments=settled.state.assignments, shares={"b": 0.0}
    )
    changed, fenced = settled.decide()
    assert set(changed) == had
    assert fenced == set()
    assert all(each.heir in ("a", "c") for each in changed.values())


def test_units_come_and_go_with_the_project(settled):
    settled.assigner.declare({"unit 0": 1.0, "news": 1.0})
    changed, _ = settled.decide()
    assert set(settled.state.assignments) == {"unit 0", "news"}
    assert changed["unit 1"] is None
