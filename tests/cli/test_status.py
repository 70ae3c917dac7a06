"""A table of tables that a person can read, also at 80 columns."""

import json
from dataclasses import replace

from rich.console import Console

from springhouse.cli.status import live_table, remarks, status_table
from springhouse.units import Instant
from springhouse.warehouse import TableStatus
from springhouse.warehouse.reports.result import utc

NOW = Instant(1_800_000_000.0)

ORDERS = TableStatus(
    name="orders",
    kind="table",
    version=7,
    rows=12_000_000,
    staleness_seconds=75.0,
    lag_seconds=0.0,
    promise_seconds=None,
    priority=1.0,
    state="up to date",
    refreshed_at=utc(NOW - 5.0),
    refresh_seconds=0.4,
    quarantined_rows=0,
    problem=None,
)
REVENUE = replace(ORDERS, name="revenue_by_country", rows=4, lag_seconds=12.0, promise_seconds=10.0)


def drawn(*parts, width=80):
    screen = Console(width=width, color_system=None)
    with screen.capture() as capture:
        screen.print(*parts)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_lag_stands_beside_its_promise():
    _, orders, revenue = drawn(status_table([ORDERS, REVENUE], NOW, 120), width=120)
    assert orders.split()[:5] == ["orders", "12,000,000", "up", "to", "date"]
    assert "12 s of 10 s" in revenue


def test_the_scheduler_says_what_a_refresh_takes_and_where_and_when_it_runs():
    planned = replace(
        REVENUE,
        expected_refresh_seconds=0.42,
        tracks=(1, 2),
        queue_place=1,
        starts_in_seconds=5.0,
        promise_kept_share=0.973,
    )
    _, wide = drawn(status_table([planned], NOW, 120), width=120)
    assert "97%  0.4 s  1, 2    in 5 s" in wide
    _, narrow = drawn(status_table([planned], NOW))
    assert narrow.endswith("97%  in 5 s")


def test_what_runs_says_for_how_long():
    _, orders = drawn(live_table([ORDERS], NOW, {"orders": Instant(NOW - 3.2)}))
    assert "running 3 s" in orders


def test_quarantined_rows_are_told_with_where_they_are():
    assert drawn(*remarks([replace(ORDERS, quarantined_rows=3), REVENUE])) == [
        "",
        "orders: 3 rows in orders_quarantine",
    ]


def test_problems_are_told_in_full():
    failing = replace(ORDERS, state="failing", problem="a.sql:3: no such file\n  hint: Make it.")
    assert drawn(*remarks([failing, REVENUE])) == [
        "",
        "orders: a.sql:3: no such file",
        "  hint: Make it.",
    ]


def test_no_row_needs_a_second_line_at_80_columns():
    assert len(drawn(status_table([ORDERS, REVENUE], NOW))) == 3
    assert len(drawn(live_table([ORDERS, REVENUE], NOW, {"orders": NOW}))) == 3


def test_the_next_turn_is_a_place_in_the_queue_a_pause_or_a_track():
    for status, turn in (
        (replace(ORDERS, queue_place=2, starts_in_seconds=0.0), "2."),
        (replace(ORDERS, queue_place=2, starts_in_seconds=90.0), "in 1.5 min"),
        (replace(ORDERS, running_on_track=1), "runs on 1"),
    ):
        assert drawn(status_table([status], NOW))[1].endswith(f"  {turn}")


def test_a_status_is_json_with_moments_in_utc_and_durations_in_seconds():
    told = json.loads(json.dumps(REVENUE.to_dict()))
    assert told["refreshed_at"] == "2027-01-15T07:59:55.000Z"
    assert told["promise_kept"] is False
    assert (told["lag_seconds"], told["refresh_seconds"]) == (12.0, 0.4)
