"""When does a node get less of the work? Scenarios in seconds: reported loads and shares."""

import pytest

from springhouse.cluster.node_load import LoadWatch, NodeLoad, pressure
from springhouse.units import Instant

BUSY, CALM = NodeLoad(cpu=0.95), NodeLoad(cpu=0.3)
MIDDLING = NodeLoad(cpu=0.78)


def shares_after(reports, shares=None, here=("a", "b"), limiting_share=1.0):
    """`reports`: (until, load of a, load of b), each reported every second."""
    watch, shares, now = LoadWatch(), dict(shares or {}), 0
    for until, one, other in reports:
        while now < until:
            watch.record("a", one, Instant(now))
            watch.record("b", other, Instant(now))
            shares = (
                watch.next_shares(here, shares, lambda _: limiting_share, Instant(now)) or shares
            )
            now += 1
    return shares


@pytest.mark.parametrize(
    ("told", "reports", "shares"),
    [
        ("a busy moment changes nothing", [(20, BUSY, CALM), (120, CALM, CALM)], {}),
        ("who stays overloaded gets less", [(70, BUSY, CALM)], {"a": 0.8}),
        ("and then is left alone for a while", [(115, BUSY, CALM)], {"a": 0.8}),
        ("and less again", [(130, BUSY, CALM)], {"a": 0.64}),
        ("between the limits it stays so", [(40, BUSY, CALM), (70, MIDDLING, CALM)], {"a": 0.8}),
        ("but does not become so", [(130, MIDDLING, CALM)], {}),
        ("if all are busy nobody is helped", [(130, BUSY, BUSY)], {}),
        ("who stays idle gets it back", [(70, BUSY, CALM), (400, CALM, CALM)], {"a": 1.0}),
        ("never less than a fifth", [(2000, BUSY, CALM)], {"a": 0.2}),
    ],
)  # fmt: skip
def test_shares(told, reports, shares):
    assert shares_after(reports) == pytest.approx(shares), told


def test_a_drained_node_stays_drained():
    assert shares_after([(900, CALM, CALM)], {"a": 0.0}) == {"a": 0.0}


def test_a_node_that_is_gone_is_forgotten():
    watch = LoadWatch()
    watch.record("a", BUSY, Instant(0))
    watch.forget("a")
    watch.record("b", CALM, Instant(100))
    assert watch.next_shares(["a", "b"], {}, lambda _: 1.0, Instant(200)) is None


def test_who_has_less_than_its_share_allows_is_helped_as_well():
    assert shares_after([(70, BUSY, CALM)], limiting_share=0.6) == pytest.approx({"a": 0.48})


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (NodeLoad(0.2, 0.4, 0.0, 0.0), 0.4),
        (NodeLoad(0.2, 0.4, 1.0, 0.0), 0.4),
        (NodeLoad(0.2, 0.4, 1.0, 45.0), 0.75),
        (NodeLoad(0.2, 0.4, 0.5, 600.0), 0.5),
    ],
)
def test_pressure(load, expected):
    assert pressure(load) == expected
