"""The pretend network does what its settings say."""

import pytest

from springhouse.simulate.faulty_network import FaultyNetwork, Trouble
from springhouse.units import Dice

NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture
def check():
    network = FaultyNetwork(Dice(1), NAMES, 3.0)
    network.repair()
    return network


def test_in_calm_weather_every_message_arrives_once_and_soon(check):
    for _ in range(100):
        (delay,) = check.arrivals("a", "b")
        assert 0 < delay < 0.1


def test_weather_changes_and_then_messages_are_lost_repeated_late_and_overtaken():
    network = FaultyNetwork(Dice(1), NAMES, 3.0)
    counts, delays = set(), []
    for _ in range(50):
        network.change()
        for _ in range(50):
            arrivals = tuple(network.arrivals("a", "b"))
            counts.add(len(arrivals))
            delays += arrivals
    assert counts == {0, 1, 2}
    assert min(delays) < 0.03
    assert max(delays) > 3.0


@pytest.mark.parametrize(
    ("apart", "running", "expected"),
    [
        ("", "abcde", 5),
        ("a", "abcde", 4),
        ("ab", "abcde", 3),
        ("ab", "abcd", 2),
        ("", "ab", 2),
        ("", "", 0),
    ],
)
def test_how_many_are_in_touch(check, apart, running, expected):
    check.split(apart)
    assert check.in_touch(running) == expected
    if apart:
        assert not tuple(check.arrivals("a", "e"))
        assert not tuple(check.arrivals("e", "a"))


def test_one_way_links_are_not_in_touch(check):
    check.change_links(Trouble.ONE_WAY, [])
    cut = [
        (one, other)
        for one in NAMES
        for other in NAMES
        if one != other and not tuple(check.arrivals(one, other))
    ]
    assert cut
    assert any((other, one) not in cut for one, other in cut)
    for one, other in cut:
        assert check.in_touch([one, other]) == 1
    check.change_links(Trouble.HEAL, [])
    assert check.in_touch(NAMES) == 5


def test_some_are_different_ones(check):
    for _ in range(50):
        found = check.some(2, 4)
        assert 2 <= len(set(found)) == len(found) <= 4
