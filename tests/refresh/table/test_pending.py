"""Is waiting data merged, kept in order, and never lost?"""

from hypothesis import given
from hypothesis import strategies as st

from springhouse.refresh.table.pending import PendingBatch, PendingBatches
from springhouse.units import Instant


def pending(*batches: tuple[float, float]) -> PendingBatches:
    found = PendingBatches()
    for freshness, at in batches:
        found.arrived(Instant(freshness), Instant(at), Instant(at))
    return found


def test_pending_updates_merge() -> None:
    both = pending((7, 7), (9, 9))
    assert (both.oldest.since, both.newest) == (7, 9)
    assert [batch.freshness for batch in both.take(Instant(9.0))] == [7, 9]
    assert not both


def test_what_reaches_no_further_is_no_news_unless_nothing_waits() -> None:
    some = pending((7, 7))
    assert not some.arrived(Instant(6.0), Instant(8.0), Instant(8.0))
    some.take(Instant(7.0))
    assert some.arrived(Instant(6.0), Instant(9.0), Instant(9.0))


def test_what_counts_as_older_than_it_did_is_news() -> None:
    some = pending((7, 7), (9, 9))
    assert some.arrived(Instant(9.0), Instant(5.0), Instant(10.0))
    assert (some.oldest.since, some.newest) == (5, 9)
    assert not some.arrived(Instant(9.0), Instant(6.0), Instant(11.0))


def test_a_part_takes_whole_batches_only() -> None:
    three = pending((3, 4), (6, 7), (9, 10))
    assert [batch.freshness for batch in three.take(Instant(8.0))] == [3, 6]
    assert three.oldest == PendingBatch(Instant(9.0), Instant(10.0), Instant(10.0))


def test_what_a_failed_refresh_took_waits_again_before_late_records() -> None:
    some = pending((7, 7), (9, 9))
    taken = some.take(Instant(9.0))
    some.arrived(Instant(5.0), Instant(11.0), Instant(11.0))
    some.put_back(taken)
    assert (some.oldest.since, some.newest) == (7, 9)
    assert len(some.take(Instant(9.0))) == 3


def test_however_much_waits_the_oldest_and_the_newest_are_known() -> None:
    found = pending(*((at, at) for at in range(1, 5000)))
    assert (found.oldest.since, found.newest) == (1, 4999)
    assert len(found) < 4999
    taken = found.take(Instant(4999.0))
    assert [batch.freshness for batch in taken] == sorted(batch.freshness for batch in taken)


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=50))
def test_whatever_is_taken_or_put_back_nothing_is_lost(steps: list[tuple[float, bool]]) -> None:
    found, loaded, arrived, at = PendingBatches(), 0.0, 0.0, 0.0
    for step, fails in steps:
        at += step
        if found.arrived(Instant(at), Instant(at), Instant(at)):
            arrived = at
        taken = found.take(found.reach(Instant(loaded + 30.0)))
        assert taken, "a refresh always takes something"
        if fails:
            found.put_back(taken)
        else:
            loaded = max(loaded, taken[-1].freshness)
    while found:
        loaded = max(loaded, found.take(found.reach(Instant(loaded + 30.0)))[-1].freshness)
    assert loaded == arrived
