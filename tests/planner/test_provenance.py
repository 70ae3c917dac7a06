"""Provenance as in 004, section 2.1, with the paper's own tables."""

from dataclasses import dataclass

import pytest

from springhouse.planner.provenance import NOW, Channel, Provenance, join_provenances
from springhouse.units import Instant


def hours(day: str, hour: int) -> Instant:
    """A moment of the paper's week, in hours since Sunday midnight."""
    return Instant(("Sun", "Mon", "Tue", "Wed").index(day) * 24.0 + hour)


# Table 1: when crawl data and click scores arrived. Versions count from 0.
CRAWL = Channel(
    (0, 1, 2, 3, 4),
    (hours("Sun", 15), hours("Mon", 8), hours("Tue", 11), hours("Tue", 17), hours("Wed", 14)),
)
CLICKS = Channel((0, 1, 2), (hours("Mon", 1), hours("Tue", 1), hours("Wed", 1)))
CHANNELS = {"crawl": CRAWL, "clicks": CLICKS}


@dataclass(frozen=True)
class Row:
    """A row of Table 4."""

    crawl: frozenset[int]
    clicks: frozenset[int]
    left: Instant
    right: Instant
    consistent: bool


TABLE_4 = [
    Row(frozenset({1}), frozenset({0}), hours("Mon", 8), hours("Tue", 1), True),
    Row(frozenset({1}), frozenset({1}), hours("Tue", 1), hours("Tue", 11), True),
    Row(frozenset({2}), frozenset({0}), hours("Tue", 11), hours("Tue", 1), False),
    Row(frozenset({4}), frozenset({0, 1, 2}), hours("Wed", 14), hours("Tue", 1), False),
]


@pytest.mark.parametrize("row", TABLE_4)
def test_table_4(row: Row) -> None:
    provenance = Provenance({"crawl": row.crawl, "clicks": row.clicks})
    assert provenance.interval(CHANNELS) == (row.left, row.right)
    assert provenance.consistent(CHANNELS) is row.consistent


def test_the_newest_version_is_valid_until_now() -> None:
    assert CRAWL.until(4) == NOW
    assert CRAWL.until(3) == hours("Wed", 14)


def test_a_channel_knows_which_version_was_the_newest_at_a_moment() -> None:
    assert CLICKS.at(hours("Mon", 0)) is None
    assert CLICKS.at(hours("Mon", 1)) == 0
    assert CLICKS.at(hours("Wed", 0)) == 1


PRECEDES = [
    # one, other, whether one precedes the other
    ({"a": 1}, {"a": 2}, True),
    ({"a": 2}, {"a": 2}, False),
    ({"a": 2}, {"a": 1}, False),
    ({"a": 1, "b": 1}, {"a": 2, "b": 1}, True),
    ({"a": 1, "b": 2}, {"a": 2, "b": 1}, False),
    ({}, {"a": 0}, True),
    ({"a": 0}, {}, False),
    ({}, {}, False),
]


@pytest.mark.parametrize(("one", "other", "expected"), PRECEDES)
def test_precedes(one: dict[str, int], other: dict[str, int], expected: bool) -> None:
    assert Provenance.of(**one).precedes(Provenance.of(**other)) is expected


def test_catching_up_on_one_pathway_is_a_step_ahead() -> None:
    # A diamond reflects two versions, because its view lagged then; afterwards the view caught up.
    mixed = Provenance({"a": frozenset({4, 5})})
    assert mixed.precedes(Provenance.of(a=5))
    assert not Provenance.of(a=5).precedes(mixed)
    assert mixed.channels_ahead(Provenance.of(a=5, b=0)) == ["a", "b"]


def test_what_is_computed_from_two_snapshots_reflects_both() -> None:
    both = join_provenances([Provenance.of(a=1, b=2), Provenance.of(b=3)])
    assert both.as_json() == {"a": [1], "b": [2, 3]}
    assert Provenance.from_json(both.as_json()) == both
