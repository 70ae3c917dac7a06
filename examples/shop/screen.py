"""What does the warehouse look like while it works, and what did it do?

`Progress` counts what the warehouse tells. In a terminal it is a table that changes in place;
anywhere else it is a line every few seconds, so that a log stays readable.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from springhouse.units import Seconds, span_text
from springhouse.warehouse import (
    Done,
    Event,
    Failed,
    Finished,
    FreshnessRecord,
    Started,
    TableStatus,
)

_LINE_EVERY = 5.0
_TABLE_EVERY = 1.0

MEASURES = """\
  stale: the age of the moment up to which all of its inputs are in it, even when nothing is new
  lag:   how long the oldest data has waited that arrived and is not in it; promises bound this"""

Status = Callable[[], list[TableStatus]]


class Progress:
    """Listens to a warehouse and shows how it stands."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.refreshes: Counter[str] = Counter()
        self.rows_in = 0
        self.set_aside = 0
        self.seconds = 0.0
        self.failures: list[str] = []
        self._running: set[str] = set()
        self._began = time.monotonic()
        self._shown = self._began
        self._live: Live | None = None
        self._status: Status | None = None

    def __call__(self, event: Event) -> None:
        """Take note of what the warehouse tells, and show it when it is time."""
        match event:
            case Started():
                self._running.add(event.table)
            case Finished():
                self._running.discard(event.table)
                self._count(event)
            case Failed():
                self._running.discard(event.table)
                self.failures.append(f"{event.table}: {event.failure.problem}")
                told = f"{event.table} failed: {event.failure.problem}"
                self.console.print(told, style="red", markup=False)
            case _:
                pass
        every = _TABLE_EVERY if self._live else _LINE_EVERY
        if self._status is not None and time.monotonic() - self._shown >= every:
            self._shown = time.monotonic()
            self._show(self._status())

    def watching(self, status: Status) -> "Progress":
        """From now on show how the tables stand; for a `with` around `warehouse.run`."""
        self._status = status
        self._began = self._shown = time.monotonic()
        return self

    def __enter__(self) -> "Progress":
        if self.console.is_terminal:
            self._live = Live(console=self.console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._status = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _count(self, event: Finished) -> None:
        if event.done is None:
            return
        self.refreshes[event.table] += 1
        self.seconds += event.done.seconds
        self.set_aside += event.done.rows_set_aside
        self.rows_in += event.done.rows_added if event.done.kind == "append" else 0

    def _show(self, statuses: Sequence[TableStatus]) -> None:
        passed = time.monotonic() - self._began
        if self._live is not None:
            self._live.update(self._table(statuses, passed))
            return
        promises = [s.promise_kept for s in statuses if s.promise_kept is not None]
        slowest = max(statuses, key=lambda s: s.lag_seconds)
        self.console.print(
            f"{passed:4.0f} s  {self.rows_in:7,} rows in, {self.set_aside:3} set aside"
            f"  {self.refreshes.total():4} refreshes"
            f"  {sum(promises):2} of {len(promises)} promises kept"
            f"  longest lag {slowest.lag_seconds:.1f} s ({slowest.name})"
        )

    def _table(self, statuses: Sequence[TableStatus], passed: float) -> Table:
        title = (
            f"{passed:.0f} s   {self.rows_in:,} rows in   {self.set_aside} set aside   "
            f"{self.refreshes.total()} refreshes"
        )
        table = Table(title=title, box=None, padding=(0, 2), title_justify="left")
        for heading in ("", "rows", "lag", "promise", "refreshes", "took", ""):
            table.add_column(heading, justify="left" if not heading else "right")
        for status in statuses:
            table.add_row(
                _name(status),
                _number(status.rows),
                Text(f"{status.lag_seconds:.1f} s", "red" if status.promise_kept is False else ""),
                _span(status.promise_seconds),
                _number(self.refreshes[status.name]),
                f"{status.refresh_seconds or 0:.2f} s",
                Text("refreshing", "green") if status.name in self._running else status.state,
            )
        return table


# The summary


def sources_table(
    statuses: Sequence[TableStatus], done: Sequence[Done], violations: Mapping[str, int]
) -> Table:
    """What came in, and what of it was turned away."""
    table = Table(title="What came in", box=None, padding=(0, 2), title_justify="left")
    for heading in ("table", "rows", "commits", "quarantined", "broke an expectation"):
        table.add_column(heading, justify="left" if heading == "table" else "right")
    commits = Counter(each.table for each in done)
    for status in statuses:
        if status.kind == "table":
            table.add_row(
                status.name,
                _number(status.rows),
                _number(commits[status.name]),
                _number(status.quarantined_rows) if status.quarantined_rows else "",
                _number(violations[status.name]) if violations.get(status.name) else "",
            )
    return table


def promises_table(
    statuses: Sequence[TableStatus], kept: Mapping[str, FreshnessRecord], done: Sequence[Done]
) -> Table:
    """How fresh everything is, and how its promise was kept."""
    table = Table(title="How fresh it stayed", box=None, padding=(0, 2), title_justify="left")
    headings = ("", "rows", "refreshes", "each took", "stale", "lag now", "worst lag", "promise")
    for heading in (*headings, "kept"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    refreshes = Counter(each.table for each in done)
    seconds: Counter[str] = Counter()
    for each in done:
        seconds[each.table] += each.seconds  # type: ignore[assignment]  # Counter adds floats too
    for status in statuses:
        name = status.name
        lags = kept.get(name, FreshnessRecord())
        share = lags.share(_promise(status))
        table.add_row(
            _name(status),
            _number(status.rows),
            _number(refreshes[name]),
            f"{seconds[name] / refreshes[name]:.2f} s" if refreshes[name] else "",
            _span(status.staleness_seconds),
            _span(status.lag_seconds),
            _span(lags.worst),
            _span(status.promise_seconds),
            "" if share is None else Text(f"{share:.0%}", "" if share == 1 else "red"),
        )
    return table


def _promise(status: TableStatus) -> Seconds | None:
    return None if status.promise_seconds is None else Seconds(status.promise_seconds)


def _name(status: TableStatus) -> Text:
    return Text(status.name, "bold" if status.kind == "view" else "")


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _span(seconds: float | None) -> str:
    return "" if seconds is None else span_text(round(seconds, 1))
