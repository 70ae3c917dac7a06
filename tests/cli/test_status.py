"""A table of tables that a person can read, also at 80 columns."""

from dataclasses import replace

from rich.console import Console

from springhouse.cli.status import live_table, remarks, status_table
from springhouse.units import Instant
from springhouse.warehouse import TableStatus

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
    refreshed_at=NOW - 5.0,
    refresh_seconds=0.4,
    quarantined=0,
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
        REVENUE, expected_seconds=0.42, tracks=(1, 2), next="in 5 s", kept_share=0.973
    )
    _, wide = drawn(status_table([planned], NOW, 120), width=120)
    assert "97%  0.4 s  1, 2    in 5 s" in wide
    _, narrow = drawn(status_table([planned], NOW))
    assert narrow.endswith("97%  in 5 s")


def test_what_runs_says_for_how_long():
    _, orders = drawn(live_table([ORDERS], NOW, {"orders": Instant(NOW - 3.2)}))
    assert "running 3 s" in orders


def test_quarantined_rows_are_told_with_where_they_are():
    assert drawn(*remarks([replace(ORDERS, quarantined=3), REVENUE])) == [
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
