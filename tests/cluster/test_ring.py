"""Nodes and units on the circle."""

from collections import Counter

from springhouse.cluster.ring import Ring, place

NODES = [f"node {number}" for number in range(10)]


def test_every_node_is_met_once_and_the_first_one_first():
    ring = Ring(NODES)
    met = list(ring.walk(place("orders 0")))
    assert sorted(met) == NODES
    assert met[0] == ring.first(place("orders 0"))


def test_places_are_the_same_on_every_machine():
    assert place("orders 0") == 14_385_078_056_928_184_811


def test_when_a_node_goes_only_its_units_meet_somebody_else():
    before, after = Ring(NODES), Ring(NODES[1:])
    for number in range(2000):
        at = place(f"unit {number}")
        if before.first(at) != NODES[0]:
            assert after.first(at) == before.first(at)


def test_nodes_get_about_as_much_of_the_circle_as_others():
    ring = Ring(NODES)
    counts = Counter(ring.first(place(f"unit {number}")) for number in range(10_000))
    assert set(counts) == set(NODES)
    assert 600 < min(counts.values()) <= max(counts.values()) < 1500
