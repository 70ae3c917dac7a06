"""Which promises can't be kept, and which durations could be?"""

import pytest

from springhouse.refresh.promises.feasible import TableLoad, shares, unkeepable
from springhouse.refresh.table.load_cost import LoadCost


def asked(
    name: str, seconds: float, promise: float | None = None, priority: float = 1.0, *reads: str
) -> TableLoad:
    return TableLoad(name, reads, 10.0, priority, promise, LoadCost(seconds, 0.0))


def test_who_asks_for_little_gets_it_and_the_rest_goes_by_priority() -> None:
    tables = [asked("little", 1.0), asked("much", 9.0, priority=3.0), asked("more", 10.0)]
    assert shares(tables, 1) == pytest.approx({"little": 0.1, "much": 0.675, "more": 0.225})
    assert shares(tables, 3) == pytest.approx({"little": 0.1, "much": 0.9, "more": 1.0})


def test_a_promise_shorter_than_the_refresh_names_the_one_that_could_be_kept() -> None:
    (found,) = unkeepable([asked("report", 40.0, promise=30.0)], 2)
    assert (found.table, found.promise_seconds) == ("report", 30.0)
    assert found.why == "its refreshes take 40 s one after the other"
    assert found.possible_seconds == pytest.approx(40.0, rel=0.02)
    assert unkeepable([asked("report", 40.0, promise=found.possible_seconds)], 2) == []


def test_what_a_table_is_made_of_takes_time_too() -> None:
    tables = [asked("base", 3.0), asked("view", 4.0, 6.0, 1.0, "base")]
    (found,) = unkeepable(tables, 2)
    assert found.why == "its refreshes take 7 s one after the other"


def test_too_many_for_the_tracks() -> None:
    reports = [asked(f"report {n}", 40.0, promise=60.0) for n in range(5)]
    found = unkeepable(reports, 1)
    assert [each.table for each in found] == [each.name for each in reports]
    assert found[0].why == "it needs 66.7% of a track, and its share is 20.0%"
    assert found[0].possible_seconds == pytest.approx(200.0, rel=0.05)
    assert unkeepable(reports, 4) == []


def test_the_important_one_is_kept_and_the_unimportant_is_not() -> None:
    tables = [asked("vip", 40.0, promise=60.0, priority=9.0), asked("other", 40.0, promise=60.0)]
    assert [each.table for each in unkeepable(tables, 1)] == ["other"]


def test_a_source_that_gets_too_little_is_named() -> None:
    tables = [
        asked("base", 6.0, None, 1.0),
        asked("view", 0.5, 20.0, 1.0, "base"),
        *(asked(f"rival {n}", 10.0) for n in range(9)),
    ]
    (found,) = unkeepable(tables, 1)
    assert found.table == "view"
    assert '"base" needs' in found.why


def test_what_can_never_be_kept() -> None:
    endless = TableLoad("endless", (), 10.0, 1.0, 60.0, LoadCost(1.0, 1.2))
    (found,) = unkeepable([endless], 4)
    assert found.possible_seconds is None
