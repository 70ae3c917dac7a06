"""A cluster in a bad world keeps its laws. Broken clusters are caught, so the checkers can fail."""

from dataclasses import asdict, replace

import pytest

from springhouse.cluster import balance, election, follower
from springhouse.cluster.leader_state import LeaderState
from springhouse.cluster.messages import AskForVote, Persist, Received
from springhouse.cluster.processing import Processing
from springhouse.cluster.raft_node import Node
from springhouse.cluster.timing import Timing
from springhouse.simulate.cluster_checkers import BrokenLaw
from springhouse.simulate.cluster_model import ClusterConditions
from springhouse.simulate.cluster_run import ClusterRun

SIZES = (3, 5, 3, 4, 5, 3, 2, 5, 3, 7)
"""Small clusters are where two things that go wrong at once do harm."""

CHUNK = 100


@pytest.mark.parametrize("first", range(0, 2000, CHUNK))
def test_no_law_is_broken_in_2000_runs(first):
    """The checkers raise `BrokenLaw`; the outcome also shows how fast a leader is there."""
    longest = 10 * Timing().election_seconds
    for seed in range(first, first + CHUNK):
        outcome = ClusterRun(ClusterConditions(SIZES[seed % len(SIZES)], seed=seed)).run()
        assert outcome.leader_after_seconds <= longest, (
            f"springhouse simulate cluster --seed {seed}"
        )


def test_a_lost_disk_and_an_old_state_that_comes_late():
    """Found among 100,000: a node that lost its disk took a unit that it had released before."""
    assert ClusterRun(ClusterConditions(5, seed=56761)).run().versions > 1


def test_what_is_let_go_twice_and_taken_again_is_worked_on():
    """Found among 100,000: a node released units once more after it had taken them again."""
    assert ClusterRun(ClusterConditions(2, seed=69626)).run().versions > 1


def test_one_node_alone_is_a_cluster_too():
    for seed in range(20):
        assert ClusterRun(ClusterConditions(1, 3, seed)).run().versions > 1


def test_the_same_seed_is_the_same_run():
    first, again, other = (ClusterRun(ClusterConditions(seed=seed)).run() for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_runs_are_about_something():
    outcomes = [ClusterRun(ClusterConditions(seed=seed)).run() for seed in range(100)]
    assert sum(each.elections for each in outcomes) > 200
    assert sum(each.versions for each in outcomes) > 1000
    assert sum(each.troubles for each in outcomes) > 1000
    assert max(each.leader_after_seconds for each in outcomes) < 30


def test_the_story_is_told():
    told = []
    ClusterRun(ClusterConditions(seed=7), listener=lambda at, what: told.append((at, what))).run()
    assert [at for at, _ in told] == sorted(at for at, _ in told)
    assert any("leads in term" in what for _, what in told)
    assert "all troubles end" in [what for _, what in told]


# --- Mutations: a machine that is broken in one place ---------------------------------------------


class ForgetfulVoter(Node):
    """Grants votes without storing them first."""

    def step(self, event, now):
        orders = super().step(event, now)
        if isinstance(event, Received) and isinstance(event.message, AskForVote):
            return [order for order in orders if not isinstance(order, Persist)]
        return orders


class OverHasty(Node):
    """Sends messages before it stores their contents."""

    def step(self, event, now):
        orders = super().step(event, now)
        return sorted(orders, key=lambda order: isinstance(order, Persist))


class Tireless(Node):
    """Works on for a minute without a quorum."""

    def __init__(self, name, nodes, timing, dice, now, memory=None):
        tireless = replace(timing, keep_alive_seconds=60.0)
        super().__init__(name, nodes, tireless, dice, now, memory)


class Impatient(Node):
    """Considers a node gone as soon as it is late."""

    def __init__(self, name, nodes, timing, dice, now, memory=None):
        super().__init__(name, nodes, ImpatientTiming(**asdict(timing)), dice, now, memory)


class ImpatientTiming(Timing):
    patience_seconds = settling_seconds = 0.5


def laws_broken(make=Node, nodes=3, seeds=range(1000), beside=None):
    """The first law at which a broken machine is caught, if any; `beside` is one that it breaks."""
    for seed in seeds:
        try:
            ClusterRun(ClusterConditions(nodes, seed=seed), make).run()
        except BrokenLaw as broken:
            if broken.law != beside:
                return [broken.law]
    return []


def test_votes_that_are_not_written_down_are_caught():
    assert laws_broken(ForgetfulVoter) in (["one leader"], ["nothing lost"])


def test_votes_without_a_look_at_the_version_are_caught(monkeypatch):
    monkeypatch.setattr(election, "is_up_to_date", lambda candidate, own: True)
    assert laws_broken() == ["nothing lost"]


def test_force_without_a_look_at_term_and_stamp_is_caught(monkeypatch):
    """Literally as in 003 section 4.2.1."""
    checked = follower.accept_entries

    def to_the_letter(term, accepted, message):
        return message.state if message.force else checked(term, accepted, message)

    monkeypatch.setattr(follower, "accept_entries", to_the_letter)
    assert laws_broken() in (["nothing lost"], ["one at a time"])


def test_answers_before_the_disk_are_caught():
    assert laws_broken(OverHasty, nodes=5)


def test_what_is_caught_can_be_replayed(monkeypatch):
    monkeypatch.setattr(election, "is_up_to_date", lambda candidate, own: True)
    seed = next(seed for seed in range(200) if laws_broken(seeds=(seed,)))
    command = f"springhouse simulate cluster --nodes 3 --units 10 --seed {seed} --story"
    with pytest.raises(BrokenLaw, match=f"replay: {command}"):
        ClusterRun(ClusterConditions(3, seed=seed)).run()


def test_processing_without_a_quorum_is_caught():
    assert laws_broken(Tireless) == ["quorum"]


def test_units_taken_from_a_node_that_may_still_work_are_caught():
    # A late node that is considered gone is back a moment later, so units also move without need.
    assert laws_broken(Impatient, beside="able") == ["one at a time"]


def test_a_handover_that_does_not_wait_is_caught(monkeypatch):
    def all_that_have_an_heir(processing):
        return tuple(unit for unit, each in processing.applied.assignments.items() if each.heir)

    monkeypatch.setattr(Processing, "released_units", property(all_that_have_an_heir))
    assert laws_broken() == ["one at a time"]


def test_acting_on_what_is_not_committed_is_caught(monkeypatch):
    monkeypatch.setattr(follower, "is_committed", lambda own, committed: own.term > 0)
    assert laws_broken() == ["applied"]


def test_voters_that_are_not_bound_are_caught(monkeypatch):
    """Without bound voters nobody knows when a former leader's right ends."""
    monkeypatch.setattr(election, "is_bound", lambda heard, now, seconds: False)
    assert laws_broken(nodes=5) == ["one at a time"]


def test_two_votes_in_a_term_are_caught(monkeypatch):
    monkeypatch.setattr(election, "may_vote_for", lambda candidate, vote: True)
    assert laws_broken(nodes=5) in (["one leader"], ["nothing lost"])


def test_units_that_stay_with_who_can_not_work_are_caught(monkeypatch):
    record = LeaderState.record_load
    monkeypatch.setattr(
        LeaderState,
        "record_load",
        lambda leadership, node, load, now: record(leadership, node, load._replace(able=True), now),
    )
    assert laws_broken() == ["able"]


def test_units_that_change_hands_without_need_are_caught(monkeypatch):
    """Without hysteresis a returning node gets all units that it would have had."""
    monkeypatch.setattr(balance, "EPSILON", 0.0)
    assert laws_broken(nodes=5) == ["able"]
