"""Which units move, and that no others do."""

from math import ceil, floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springhouse.cluster.balance import Placement, plan_moves
from springhouse.cluster.ring import Ring

NODES = ["a", "b", "c", "d", "e"]


def placement_of(count, weight=1.0):
    placement = Placement()
    for number in range(count):
        placement.put(f"unit {number}", weight)
    return placement


def shares_of(nodes):
    return dict.fromkeys(nodes, 1.0)


def loads(placement, nodes):
    return [placement.loads.get(node, 0.0) for node in nodes]


def test_ten_partitions_on_five_nodes_are_two_or_three_each():
    placement = placement_of(10)
    assert len(plan_moves(placement, Ring(NODES), shares_of(NODES))) == 10
    assert sum(loads(placement, NODES)) == 10
    assert 1 <= min(loads(placement, NODES)) <= max(loads(placement, NODES)) <= 3


def test_what_is_well_stays():
    placement, ring = placement_of(100), Ring(NODES)
    plan_moves(placement, ring, shares_of(NODES))
    assert plan_moves(placement, ring, shares_of(NODES)) == {}


def test_when_a_node_goes_its_units_move_and_no_others():
    placement, ring = placement_of(100), Ring(NODES)
    plan_moves(placement, ring, shares_of(NODES))
    orphans = set(placement.units_of("c"))
    moved = plan_moves(placement, ring, shares_of("abde"))
    assert set(moved) == orphans
    assert set(moved.values()) <= set("abde")


def test_a_node_that_comes_gets_its_least_and_no_more_moves():
    placement, ring = placement_of(100), Ring(NODES)
    plan_moves(placement, ring, shares_of("abde"))
    moved = plan_moves(placement, ring, shares_of(NODES))
    assert set(moved.values()) == {"c"}
    assert len(moved) == floor(20 * 0.75)


def test_a_smaller_share_gives_units_away():
    placement, ring = placement_of(100), Ring(NODES)
    plan_moves(placement, ring, shares_of(NODES))
    before = placement.loads["a"]
    moved = plan_moves(placement, ring, {**shares_of(NODES), "a": 0.4})
    fair = 100 * 0.4 / 4.4
    assert placement.loads["a"] == ceil(fair * 1.25) < before
    assert len(moved) == before - placement.loads["a"]


def test_a_small_share_is_good_for_one_unit():
    placement, ring = placement_of(2), Ring(NODES)
    plan_moves(placement, ring, {"a": 1.0})
    plan_moves(placement, ring, {"a": 0.5, "b": 0.2, "c": 0.2, "d": 0.2, "e": 0.2})
    assert placement.loads["a"] == 1


def test_a_unit_too_heavy_for_anybody_does_not_wander():
    placement, ring = placement_of(10, 0.1), Ring(NODES)
    placement.put("heavy", 50.0)
    plan_moves(placement, ring, shares_of(NODES))
    home = placement.nodes_by_unit["heavy"]
    for _ in range(3):
        plan_moves(placement, ring, shares_of(NODES))
        assert placement.nodes_by_unit["heavy"] == home


def test_a_unit_that_is_no_more_weighs_nothing():
    placement = placement_of(10)
    plan_moves(placement, Ring(NODES), shares_of(NODES))
    placement.remove("unit 3")
    assert placement.total == sum(loads(placement, NODES)) == 9
    assert "unit 3" not in placement.nodes_by_unit


def test_a_unit_that_weighs_more_now_counts_so():
    placement = placement_of(10)
    plan_moves(placement, Ring(NODES), shares_of(NODES))
    placement.put("unit 3", 5.0)
    assert placement.total == sum(loads(placement, NODES)) == 14


@settings(max_examples=100)
@given(
    count=st.integers(1, 60),
    steps=st.lists(st.sets(st.sampled_from(NODES), min_size=1), min_size=1, max_size=5),
    shares=st.lists(st.sampled_from([0.2, 0.5, 0.8, 1.0]), min_size=5, max_size=5),
)
def test_whoever_comes_and_goes_all_are_within_their_bounds(count, steps, shares):
    placement, ring = placement_of(count), Ring(NODES)
    given_shares = dict(zip(NODES, shares, strict=True))
    for here in steps:
        present = {node: given_shares[node] for node in sorted(here)}
        before = dict(placement.nodes_by_unit)
        moved = plan_moves(placement, ring, present)
        assert set(placement.nodes_by_unit) == set(placement.weights)
        assert set(placement.nodes_by_unit.values()) <= here
        for unit, home in before.items():
            assert placement.nodes_by_unit[unit] == moved.get(unit, home)
        for node, share in present.items():
            fair = count * share / sum(present.values())
            load = placement.loads.get(node, 0.0)
            assert floor(fair * 0.75 + 1e-9) <= load <= ceil(fair * 1.25 - 1e-9)
        assert plan_moves(placement, ring, present) == {}


@pytest.mark.parametrize("nodes", [[], None])
def test_without_nodes_nothing_moves(nodes):
    assert plan_moves(placement_of(3), Ring(NODES), shares_of(nodes or [])) == {}
