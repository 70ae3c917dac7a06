"""The beginning of a cluster: no node votes before it knows that no state is lost."""

import pytest

from springhouse.cluster.bootstrap import FOUNDED, Bootstrap, draw_identifier
from springhouse.cluster.messages import Introduced, SendTime
from springhouse.cluster.state import ClusterState
from springhouse.cluster.timing import Timing
from springhouse.units import Dice, Instant

ASKED = SendTime(1, Instant(100.0))


@pytest.fixture
def bootstrap():
    made = Bootstrap("a", ["b", "c"], Timing())
    made.ask(ASKED)
    return made


def answer(bootstrap, peer, disk, voters=None, asked=ASKED, now=100.1, own=1):
    return bootstrap.receive_answer(peer, Introduced(asked, disk, voters), own, Instant(now))


def test_all_disks_are_empty(bootstrap):
    assert answer(bootstrap, "b", 2) is None
    assert answer(bootstrap, "c", 3) == ClusterState(FOUNDED, {"a": 1, "b": 2, "c": 3})


@pytest.mark.parametrize(
    ("told", "others"),
    [
        ("of an earlier question", {"asked": SendTime(1, Instant(90.0))}),
        ("of an earlier incarnation", {"asked": SendTime(5, Instant(100.0))}),
        ("that is late", {"now": 101.6}),
        ("of one that remembers", {"voters": {"b": 2, "c": 3}}),
    ],
)
def test_an_answer_that_does_not_count(bootstrap, told, others):
    answer(bootstrap, "b", 2)
    assert answer(bootstrap, "c", 3, **others) is None, told


def test_answers_count_only_together(bootstrap):
    answer(bootstrap, "b", 2)
    again = SendTime(1, Instant(104.0))
    bootstrap.ask(again)
    assert answer(bootstrap, "c", 3, asked=again, now=104.1) is None, "b has to say it again"
    assert answer(bootstrap, "b", 2, asked=again, now=104.1) is not None


def test_who_was_counted_on_may_begin_too(bootstrap):
    voters = {"a": 1, "b": 2, "c": 3}
    assert answer(bootstrap, "b", 2, voters) == ClusterState(FOUNDED, voters)
    assert answer(bootstrap, "b", 2, voters, own=8) is None, "it forgot"


def test_alone_there_is_nobody_to_ask():
    assert Bootstrap("a", [], Timing()).founded_state(1) == ClusterState(FOUNDED, {"a": 1})


def test_disks_have_different_numbers():
    dice = Dice(1)
    assert len({draw_identifier(dice) for _ in range(100)}) == 100
