"""Refreshes on tracks: each table ends on its own; a track is free when all of its tables ended."""

import threading
from collections.abc import Iterator

from patience import patience
from springhouse.lake.landing.landing import Done
from springhouse.units import Instant
from springhouse.warehouse.running.track_threads import Outcome, RunningRefresh, Tracks


def running(*tables: str) -> list[RunningRefresh]:
    return [RunningRefresh(table, 1, Instant(0.0), "new records") for table in tables]


def test_a_table_is_done_before_the_others_of_its_track() -> None:
    tracks, go_on = Tracks(2), threading.Event()

    def work() -> Iterator[Outcome]:
        yield "a", [Done("a", "append")]
        go_on.wait(patience(10))
        yield "b", ValueError("no")

    tracks.start(running("a", "b"), work)
    (first,) = tracks.wait(patience(10))
    assert (first.table, first.done[0].table, first.error) == ("a", "a", None)
    assert tracks.free() == [2]
    go_on.set()
    (second,) = tracks.wait(patience(10))
    assert (second.table, str(second.error)) == ("b", "no")
    assert tracks.free() == [1, 2]


def test_what_breaks_off_ends_everything_that_has_not_ended() -> None:
    tracks = Tracks(1)

    def work() -> Iterator[Outcome]:
        yield "b", []
        raise OSError("no disk")

    tracks.start(running("a", "b", "c"), work)
    ended: dict[str, str] = {}
    while len(ended) < 3:
        ended |= {each.table: str(each.error) for each in tracks.wait(patience(10))}
    assert ended == {"b": "None", "a": "no disk", "c": "no disk"}
