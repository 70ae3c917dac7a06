"""The units that a node works on: it takes them, releases them, and reports both."""

from springhouse.cluster.messages import Assign, Release
from springhouse.cluster.processing import Processing
from springhouse.cluster.state import Assignment, ClusterState, SnapshotVersion


def apply(processing, number, **assignments):
    processing.apply(ClusterState(SnapshotVersion(1, number), assignments=assignments), None)


def test_it_takes_what_it_owns_while_it_may():
    processing = Processing("a")
    apply(processing, 1, one=Assignment("a", offset=7), two=Assignment("b"))
    assert processing.next_orders(allowed=False) == []
    assert processing.next_orders(allowed=True) == [Assign((("one", 7),))]
    assert processing.next_orders(allowed=True) == []


def test_it_lets_go_at_once_when_it_may_no_longer_and_takes_again_when_it_may():
    processing = Processing("a")
    apply(processing, 1, one=Assignment("a"))
    processing.next_orders(allowed=True)
    assert processing.next_orders(allowed=False) == [Release(("one",), at_once=True)]
    assert processing.next_orders(allowed=False) == []
    assert processing.next_orders(allowed=True) == []
    processing.mark_released(("one",))
    assert processing.next_orders(allowed=True) == [Assign((("one", 0),))]


def test_a_unit_with_an_heir_is_let_go_and_then_released():
    processing = Processing("a")
    apply(processing, 1, one=Assignment("a"), two=Assignment("a"))
    processing.next_orders(allowed=True)
    processing.apply(ClusterState(SnapshotVersion(1, 2)), {"one": Assignment("a", "b", since=2)})
    assert processing.released_units == ()
    assert processing.next_orders(allowed=True) == [Release(("one",), at_once=False)]
    assert processing.released_units == ()
    processing.mark_released(("one",))
    assert processing.released_units == ("one",)
    processing.apply(ClusterState(SnapshotVersion(1, 3)), {"one": Assignment("b", since=3)})
    assert processing.released_units == ()
    assert list(processing.working) == ["two"]


def test_what_is_leaving_when_the_time_is_over_is_given_up():
    processing = Processing("a")
    apply(processing, 1, one=Assignment("a"))
    processing.next_orders(allowed=True)
    apply(processing, 2, one=Assignment("a", "b", since=2))
    processing.next_orders(allowed=True)
    assert processing.is_busy
    assert processing.next_orders(allowed=False) == [Release(("one",), at_once=True)]
    assert not processing.is_busy


def test_offsets_are_told_until_they_are_agreed_on():
    processing = Processing("a")
    apply(processing, 1, one=Assignment("a", offset=3))
    processing.record_progress("one", 5)
    processing.record_progress("one", 4)
    processing.record_progress("elsewhere", 9)
    assert processing.new_offsets == (("one", 5),)
    assert processing.next_orders(allowed=True) == [Assign((("one", 5),))]
    apply(processing, 2, one=Assignment("a", offset=5))
    assert processing.new_offsets == ()
