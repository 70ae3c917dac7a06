"""What a node works on: it takes, lets go, and says so."""

from springhouse.cluster.messages import Assign, Release
from springhouse.cluster.processing import Processing
from springhouse.cluster.state import Assignment, ClusterState, SnapshotVersion


def acting(hands, version, **holdings):
    hands.act_on(ClusterState(SnapshotVersion(1, version), holdings=holdings), None)


def test_it_takes_what_it_owns_while_it_may():
    hands = Processing("a")
    acting(hands, 1, one=Assignment("a", offset=7), two=Assignment("b"))
    assert hands.orders(allowed=False) == []
    assert hands.orders(allowed=True) == [Assign((("one", 7),))]
    assert hands.orders(allowed=True) == []


def test_it_lets_go_at_once_when_it_may_no_longer_and_takes_again_when_it_may():
    hands = Processing("a")
    acting(hands, 1, one=Assignment("a"))
    hands.orders(allowed=True)
    assert hands.orders(allowed=False) == [Release(("one",), at_once=True)]
    assert hands.orders(allowed=False) == []
    assert hands.orders(allowed=True) == []
    hands.let_go(("one",))
    assert hands.orders(allowed=True) == [Assign((("one", 0),))]


def test_a_unit_with_an_heir_is_let_go_and_then_released():
    hands = Processing("a")
    acting(hands, 1, one=Assignment("a"), two=Assignment("a"))
    hands.orders(allowed=True)
    hands.act_on(ClusterState(SnapshotVersion(1, 2)), {"one": Assignment("a", "b", since=2)})
    assert hands.released == ()
    assert hands.orders(allowed=True) == [Release(("one",), at_once=False)]
    assert hands.released == ()
    hands.let_go(("one",))
    assert hands.released == ("one",)
    hands.act_on(ClusterState(SnapshotVersion(1, 3)), {"one": Assignment("b", since=3)})
    assert hands.released == ()
    assert list(hands.taken) == ["two"]


def test_what_is_leaving_when_the_time_is_over_is_given_up():
    hands = Processing("a")
    acting(hands, 1, one=Assignment("a"))
    hands.orders(allowed=True)
    acting(hands, 2, one=Assignment("a", "b", since=2))
    hands.orders(allowed=True)
    assert hands.under_way
    assert hands.orders(allowed=False) == [Release(("one",), at_once=True)]
    assert not hands.under_way


def test_offsets_are_told_until_they_are_agreed_on():
    hands = Processing("a")
    acting(hands, 1, one=Assignment("a", offset=3))
    hands.progressed("one", 5)
    hands.progressed("one", 4)
    hands.progressed("elsewhere", 9)
    assert hands.offsets == (("one", 5),)
    assert hands.orders(allowed=True) == [Assign((("one", 5),))]
    acting(hands, 2, one=Assignment("a", offset=5))
    assert hands.offsets == ()
