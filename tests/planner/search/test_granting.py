"""Blocks that repair a broken bound, alone or one after the other."""

from springhouse.planner.bounds import ChannelBounds, Times
from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.search.blocks import BASE, STRONG, UPSERTS, Block
from springhouse.planner.search.granting import Granting
from springhouse.planner.search.workflow_plan import ANY_DELTA, Wish
from springhouse.units import Instant

CHANNEL = Channel((0, 1, 2), (Instant(0.0), Instant(10.0), Instant(20.0)))


def at(**versions):
    return Provenance({key: frozenset(found) for key, found in versions.items()})


def granting(inconsistency=100.0):
    limits = {"v": ChannelBounds({"a": 0.0, "b": 0.0}, inconsistency)}
    held = {"v": at(a={0}, b={0})}
    times = Times({"a": CHANNEL, "b": CHANNEL}, Instant(30.0))
    return Granting({"v": ANY_DELTA}, limits, held, times, [Wish("v", ("a", "b"))])


LEFT = Block("v", STRONG, at(a={2}), at(a={0}))
RIGHT = Block("v", STRONG, at(b={2}), at(b={0}))
BOTH = Block("v", BASE, at(a={2}, b={2}))


def test_one_block_for_all():
    assert list(granting().rows("v", [BOTH])) == [(frozenset(), (0,))]


def test_two_blocks_one_after_the_other():
    found = list(granting().rows("v", [LEFT, RIGHT]))
    assert (frozenset({"b"}), (0,)) in found
    assert (frozenset(), (0, 1)) in found
    assert (frozenset(), (1, 0)) in found
    assert granting().reached("v", [LEFT, RIGHT]) == BOTH.end


def test_what_consumers_hold_is_never_too_inconsistent_not_even_in_between():
    assert list(granting(inconsistency=5.0).rows("v", [LEFT, RIGHT])) == []
    assert list(granting(inconsistency=5.0).rows("v", [BOTH])) == [(frozenset(), (0,))]


def test_what_does_not_mend_is_not_handed_out():
    halfway = Block("v", STRONG, at(a={1}), at(a={0}))
    assert not granting().mends("v", halfway)
    assert not granting().mends("v", Block("v", UPSERTS, at(a={2}), at(a={0})))
    assert not granting().mends("v", Block("v", STRONG, at(a={2}), at(a={1})))
    assert granting().reaches("v", halfway) is None
    assert granting().reaches("v", LEFT) == at(a={2}, b={0})
