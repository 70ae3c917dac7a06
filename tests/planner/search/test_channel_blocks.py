"""Chains and conversions on one channel."""

from springhouse.planner.bounds import ChannelBounds, Times
from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.search.blocks import BASE, INCREMENTS, MONOTONE, STRONG, Block
from springhouse.planner.search.channel_blocks import ChannelBlocks
from springhouse.planner.search.converters import converters, increments
from springhouse.planner.search.invocation import PlannedBlock
from springhouse.planner.search.operators import WidgetVariant
from springhouse.units import Instant

CHANNEL = Channel((0, 1, 2, 3), tuple(map(Instant, (0.0, 10.0, 20.0, 30.0))))
TIMES = Times({"a": CHANNEL, "b": CHANNEL}, Instant(40.0))
CONVERTERS = converters("v", [increments])


def at(**versions):
    return Provenance.of(**versions)


def base(end):
    return Block("v", BASE, end)


def delta(start, end, kind=STRONG):
    return Block("v", kind, end, start)


def lane(staleness=None, *, has_one_pathway=True):
    return ChannelBlocks(ChannelBounds(staleness or {}), TIMES, has_one_pathway=has_one_pathway)


def made(lane, block):
    """The blocks that follow from a new one, each with its ingredients."""
    takes = [
        each
        for each in CONVERTERS
        if (each.reads_base if block.kind == BASE else block.kind in (each.source, MONOTONE))
    ]
    return {
        (made, frozenset(each.block for each in found.holdings))
        for found in lane.add(PlannedBlock(block, 0, 0.0), takes)
        for made in found.makes
    }


def test_deltas_that_abut_are_a_chain_whichever_came_first():
    one, other = delta(at(a=0), at(a=1)), delta(at(a=1), at(a=3))
    chain = (delta(at(a=0), at(a=3)), frozenset({one, other}))
    for first, second in ((one, other), (other, one)):
        there = lane()
        assert chain not in made(there, first)
        assert chain in made(there, second)


def test_a_chain_of_which_one_is_monotone_is_a_strong_delta():
    one, other = delta(at(a=0), at(a=1), MONOTONE), delta(at(a=1), at(a=2))
    there = lane()
    there.add(PlannedBlock(one, 0, 0.0), ())
    (chain,) = there.add(PlannedBlock(other, 0, 0.0), ())
    assert chain.makes == (delta(at(a=0), at(a=2)),)
    assert chain.operator.variant is WidgetVariant.CHAIN


def test_a_base_and_what_continues_it_are_the_next_base():
    there = lane()
    made(there, base(at(a=1)))
    assert (base(at(a=2)), frozenset({base(at(a=1)), delta(at(a=1), at(a=2))})) in made(
        there, delta(at(a=1), at(a=2))
    )
    assert base(at(a=3)) not in dict(made(there, delta(at(a=0), at(a=3))))


def test_where_there_are_several_pathways_a_delta_may_leave_some_alone():
    moves_one = delta(at(a=0, b=3), at(a=2, b=3))
    there = lane(has_one_pathway=False)
    made(there, base(at(a=0, b=1)))
    # The provenance includes the versions that were read beside the block (section 2.4).
    mixed = Provenance({"a": frozenset({2}), "b": frozenset({1, 3})})
    assert base(mixed) in dict(made(there, moves_one))


def test_between_two_bases_there_is_a_delta_forward():
    there = lane()
    made(there, base(at(a=2)))
    assert set(dict(made(there, base(at(a=1))))) == {delta(at(a=1), at(a=2))}


def test_a_strong_delta_becomes_a_weak_one_without_the_base():
    strong = delta(at(a=0), at(a=1))
    there = lane()
    made(there, base(at(a=0)))
    assert (delta(at(a=0), at(a=1), INCREMENTS), frozenset({strong})) in made(there, strong)


def test_nothing_is_made_that_ends_out_of_bounds():
    there = lane({"a": 5.0})
    made(there, base(at(a=0)))
    assert not made(there, delta(at(a=0), at(a=1)))
    assert {each.end for each in dict(made(there, delta(at(a=1), at(a=3))))} == {at(a=3)}
