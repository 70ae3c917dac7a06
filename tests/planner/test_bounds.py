"""Section 5: is a promise kept, until when, and which bounds follow upstream?"""

from math import inf

import pytest

from springhouse.planner.bounds import (
    BoundInconsistency,
    BoundStaleness,
    ChannelBounds,
    Times,
    limits_of,
    pathways_named,
    propagate_limits,
)
from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.widgets import view, workflow
from springhouse.simulate.paper_widgets import join, stateless
from springhouse.units import Instant

# a changed at 0, 10 and 20; b at 0 and 15.
CHANNELS = {
    "a": Channel((0, 1, 2), (Instant(0.0), Instant(10.0), Instant(20.0))),
    "b": Channel((0, 1), (Instant(0.0), Instant(15.0))),
}


def times(now: float) -> Times:
    return Times(CHANNELS, Instant(now))


STALENESS = [
    # version of a, seconds of the bound, now, kept
    (2, 0.0, 99.0, True),  # the newest is never stale
    (1, 0.0, 20.0, False),  # now is after all that arrived
    (1, 5.0, 24.9, True),
    (1, 5.0, 25.0, False),
    (0, 5.0, 16.0, False),  # the missing version came at 10
]


@pytest.mark.parametrize(("version", "seconds", "now", "kept"), STALENESS)
def test_a_bound_on_staleness(version, seconds, now, kept):
    limits = ChannelBounds({"a": seconds})
    provenance = Provenance.of(a=version)
    assert times(now).keeps(limits, provenance) is kept
    assert (times(now).violated(limits, provenance) == ()) is kept


@pytest.mark.parametrize(
    ("a", "b", "seconds", "kept"),
    [
        ({2}, {1}, 0.0, True),
        ({1}, {1}, 0.0, True),  # [15, 20)
        ({2}, {0}, 0.0, False),  # T+ is 20, T- is 15
        ({2}, {0}, 5.0, False),  # 20 < 15 + 5 is not so
        ({2}, {0}, 5.1, True),
        ({0, 2}, {1}, 10.0, False),
        ({0, 2}, {1}, 11.0, True),
    ],
)
def test_a_bound_on_inconsistency(a, b, seconds, kept):
    provenance = Provenance({"a": frozenset(a), "b": frozenset(b)})
    assert times(30.0).keeps(ChannelBounds(inconsistency=seconds), provenance) is kept


def test_when_a_bound_breaks():
    limits = ChannelBounds({"a": 100.0, "b": 3.0})
    assert times(16.0).due(limits, Provenance.of(a=1, b=0)) == 18.0
    assert times(16.0).due(limits, Provenance.of(a=1, b=1)) == 120.0
    assert times(16.0).due(limits, Provenance.of(a=2, b=1)) == inf


def test_a_pathway_that_is_missing_is_broken():
    assert times(1.0).violated(ChannelBounds({"a": 5.0}), Provenance()) == ("a",)


FLOW = workflow(
    ["a", "b"],
    [stateless("a1", "a"), join("v", "a1", "b"), join("w", "a1", "b"), join("x", "v", "w")],
)


@pytest.mark.parametrize(
    ("channel", "named", "expected"),
    [
        ("v", None, ("a>a1", "b")),
        ("v", "a1", ("a>a1",)),
        ("v", "b", ("b",)),
        ("x", "w", ("a>a1>w", "b>w")),
        ("x", "a1>w", ("a>a1>w",)),
        ("x", "a>a1>v", ("a>a1>v",)),
        ("x", "nothing", ()),
    ],
)
def test_which_pathways_a_bound_means(channel, named, expected):
    assert pathways_named(FLOW, channel, named) == expected


def test_the_tightest_of_several_bounds_counts():
    bounds = [
        BoundStaleness("v", None, 60.0),
        BoundStaleness("v", "b", 5.0),
        BoundInconsistency("v", 9.0),
        BoundInconsistency("v", 7.0),
    ]
    assert limits_of(FLOW, bounds)["v"] == ChannelBounds({"a>a1": 60.0, "b": 5.0}, 7.0)


def test_section_6_2_3_bounds_go_upstream():
    limits = limits_of(
        FLOW,
        [
            BoundStaleness("v", "a1", 0.0),
            BoundStaleness("v", "b", 30.0),
            BoundStaleness("a1", None, 5.0),
            BoundInconsistency("v", 20.0),
            BoundStaleness("w", None, 50.0),
        ],
    )
    loose = propagate_limits(FLOW, limits)
    assert loose["v"] == ChannelBounds({"a>a1": 0.0, "b": 30.0}, 20.0)
    # The looser of the bounds of v and w, each plus its own allowance.
    assert loose["a1"] == ChannelBounds({"a": 5.0}, inf)
    assert loose["b"] == ChannelBounds({"b": 50.0}, inf)
    assert loose["a"] == ChannelBounds({"a": 5.0}, inf)
    tight = propagate_limits(FLOW, limits, tightest=True)
    # Staleness must not exceed the inconsistency of a reader that also reads something else.
    assert tight["a1"] == ChannelBounds({"a": 0.0}, 20.0)
    assert tight["b"] == ChannelBounds({"b": 20.0}, 20.0)


def test_a_consistent_view_is_bound_as_tightly_as_its_tightest_input():
    flow = workflow(
        ["a"],
        [view("v", ["a"], [WidgetVariant.BATCH]), view("w", ["a", "v"], [WidgetVariant.BATCH])],
        strict=["v", "w"],
    )
    bounds = [BoundStaleness("w", "v", 60.0), BoundStaleness("w", "a", 5.0)]
    assert limits_of(flow, bounds)["w"].staleness == {"a": 5.0}


def test_bounds_tell_what_they_are():
    assert str(BoundStaleness("v", "a", 60.0)) == "staleness of a in v is at most 60 s"
    assert str(BoundInconsistency("v", 5.0)) == "inconsistency in v is at most 5 s"
