"""The display of a run, from events alone."""

import re

import pytest
from rich.console import Console

from springhouse.cli.progress import Progress, event_line, kept_line, picture, totals_text
from springhouse.refresh.retry import Failure
from springhouse.units import Instant, Seconds
from springhouse.warehouse import Done, Failed, Finished, SparkNeeded, Started, Warned

NOW = Instant(1_800_000_000.0)
FAILURE = Failure("a.sql:3: no such file\n  hint: Make it.", 1, NOW, Instant(NOW + 2.0))


def finished(table="orders", **done):
    return Finished(table, 1, Done(table, "append", seconds=0.41, **done))


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (SparkNeeded(), "starting Spark …"),
        (finished(rows_added=120), "orders +120 rows 0.41 s"),
        (finished(rows_added=1), "orders +1 row 0.41 s"),
        (finished(rows_added=4, rows_removed=4), "orders +4 -4 rows 0.41 s"),
        (finished(rows_added=117, rows_set_aside=3), "orders +117 rows, 3 quarantined 0.41 s"),
        (finished(), "orders unchanged 0.41 s"),
        (Finished("orders", 1, None, "b was first"), "orders gave way: b was first"),
        (Warned("orders", "no folder"), "orders warning: no folder"),
        (Failed("orders", 1, FAILURE), "orders failed: a.sql:3: no such file"),
    ],
    ids=str,
)
def test_an_event_is_one_line_with_its_time(event, line):
    told = event_line(event, NOW)
    assert told is not None
    assert re.fullmatch(r"\d\d:\d\d:\d\d " + re.escape(line), told.plain)


@pytest.mark.parametrize(
    "event", [Started("orders", 1, "new records"), Finished("orders", 1, None)]
)
def test_nothing_came_of_it_yet(event):
    assert event_line(event, NOW) is None


def test_totals_count_rows_in_at_the_base_tables_only():
    progress = Progress(NOW, frozenset({"orders"}))
    for event in (
        Started("orders", 1, "new records"),
        finished(rows_added=120, rows_set_aside=2),
        Started("revenue", 1, "new data in orders"),
        finished("revenue", rows_added=4),
        Started("orders", 1, "new records"),
        Failed("orders", 1, FAILURE),
    ):
        progress.take(event, NOW)
    assert progress.running == {}
    assert totals_text(progress, Instant(NOW + 12)) == (
        "120 rows in, 2 quarantined, 2 refreshes, 1 failure in 12 s"
    )


def test_the_picture_ends_with_how_to_stop_until_it_is_over():
    progress = Progress(NOW, frozenset())

    def drawn():
        screen = Console(width=80, color_system=None)
        with screen.capture() as capture:
            screen.print(picture("shop", progress, [], NOW))
        return capture.get().strip().splitlines()

    assert drawn()[0].startswith("shop  0 rows in")
    assert drawn()[-1].strip() == "Ctrl-C to stop"
    progress.stopping = "stopping"
    assert drawn()[-1].strip() == "stopping"
    progress.over = True
    assert "stopping" not in "\n".join(drawn())


def test_how_a_promise_was_kept():
    assert kept_line("revenue", Seconds(10.0), 0.987, Seconds(12.0)) == (
        "revenue kept its promise of 10 s 98.7 % of the time, largest lag 12 s"
    )
