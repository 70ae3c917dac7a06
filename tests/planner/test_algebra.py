"""Laws that hold for every provenance: sections 2.1, 2.2 and 2.4 of 004."""

from hypothesis import given
from hypothesis import strategies as st

from springhouse.planner.provenance import Channel, Provenance, join_provenances
from springhouse.planner.search.blocks import BASE, STRONG, Block, apply_block
from springhouse.units import Instant

CHANNELS = {
    name: Channel(tuple(range(6)), tuple(Instant(10.0 * v + shift) for v in range(6)))
    for name, shift in (("a", 0.0), ("b", 3.0), ("c", 7.0))
}
KEYS = ("a", "b", "b>x", "c>y")

versions = st.frozensets(st.integers(0, 5), min_size=1, max_size=3)
provenances = st.dictionaries(st.sampled_from(KEYS), versions, max_size=4).map(Provenance)
full = st.fixed_dictionaries(dict.fromkeys(KEYS, versions)).map(Provenance)


@given(full)
def test_no_snapshot_precedes_itself(one):
    assert not one.precedes(one)


@given(full, full)
def test_if_one_precedes_the_other_it_is_newer_nowhere(one, other):
    if one.precedes(other):
        assert all(one.newest(key) <= other.newest(key) for key in KEYS)
        assert one != other


singles = st.fixed_dictionaries({key: st.integers(0, 5) for key in KEYS})


@given(singles, singles, singles)
def test_synchronous_snapshots_are_partially_ordered(first, second, third):
    one, two, three = (Provenance.of(**each) for each in (first, second, third))
    if one.precedes(two):
        assert not two.precedes(one)
        if two.precedes(three):
            assert one.precedes(three)


@given(full, provenances, provenances)
def test_a_delta_that_stands_still_only_mixes_in(state, end, other):
    assert state.convertible(end, end)
    mixed = state.converted(end, end)
    assert all(mixed.reflected[k] >= state.reflected[k] for k in state.reflected)
    assert join_provenances([state, end]) == mixed


@given(full, full)
def test_a_delta_from_the_state_itself_leads_exactly_to_its_end(state, end):
    assert state.convertible(state, end)
    assert state.converted(state, end) == end


@given(provenances, provenances)
def test_putting_together_keeps_both_ends(one, other):
    """T+ and T- of a whole are the latest and the earliest of its parts: merging is exact."""
    left, right = join_provenances([one, other]).interval(CHANNELS)
    spans = [one.interval(CHANNELS), other.interval(CHANNELS)]
    assert left == max(each[0] for each in spans)
    assert right == min(each[1] for each in spans)


@given(full)
def test_a_merged_pathway_keeps_both_ends(state):
    """Merge `b` and `b>x` into one pathway, by union of their sets."""
    merged = Provenance(
        {
            "a": state.reflected["a"],
            "b": state.reflected["b"] | state.reflected["b>x"],
            "c": state.reflected["c>y"],
        }
    )
    assert merged.interval(CHANNELS) == state.interval(CHANNELS)
    assert merged.consistent(CHANNELS) == state.consistent(CHANNELS)


@given(full, full, full)
def test_a_chain_is_as_good_as_its_parts(one, two, three):
    first, second = Block("v", STRONG, two, one), Block("v", STRONG, three, two)
    assert apply_block(apply_block(one, first), second) == apply_block(
        one, Block("v", STRONG, three, one)
    )


@given(full, full)
def test_a_base_replaces_whatever_was_there(state, end):
    assert (
        apply_block(state, Block("v", BASE, end)) == end == apply_block(None, Block("v", BASE, end))
    )


@given(provenances)
def test_json_and_back(one):
    assert Provenance.from_json(one.as_json()) == one
    assert hash(Provenance.from_json(one.as_json())) == hash(one)


@given(full)
def test_an_interval_of_one_version_is_its_validity(state):
    for key, found in state.reflected.items():
        channel = CHANNELS[key.split(">")[0]]
        for version in found:
            assert channel.interval(version) == (channel.since(version), channel.until(version))
