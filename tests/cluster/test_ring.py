"""Nodes and units on the circle."""

from collections import Counter

from springhouse.cluster.ring import Ring, hash_position

NODES = [f"node {number}" for number in range(10)]


def test_every_node_is_met_once_and_the_first_one_first():
    ring = Ring(NODES)
    nodes = list(ring.walk(hash_position("orders 0")))
    assert sorted(nodes) == NODES
    assert nodes[0] == ring.find_first(hash_position("orders 0"))


def test_places_are_the_same_on_every_machine():
    assert hash_position("orders 0") == 14_385_078_056_928_184_811


def test_when_a_node_goes_only_its_units_meet_somebody_else():
    before, after = Ring(NODES), Ring(NODES[1:])
    for number in range(2000):
        at = hash_position(f"unit {number}")
        if before.find_first(at) != NODES[0]:
            assert after.find_first(at) == before.find_first(at)


def test_nodes_get_about_as_much_of_the_circle_as_others():
    ring = Ring(NODES)
    counts = Counter(ring.find_first(hash_position(f"unit {number}")) for number in range(10_000))
    assert set(counts) == set(NODES)
    assert 600 < min(counts.values()) <= max(counts.values()) < 1500
