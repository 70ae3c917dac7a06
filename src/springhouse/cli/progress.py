"""What does a running warehouse show?

`Progress` adds up the events so far. The functions turn `Progress` and the status of the tables
into text. A terminal shows a picture that is drawn again and again; a pipe gets a line per refresh.
Both use the same lines.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from springhouse.cli.screen import clock_text, count_text
from springhouse.cli.status import live_table
from springhouse.lake.sinks.delivery import Delivered
from springhouse.units import Instant, Seconds, span_text
from springhouse.warehouse.running.refresh_events import (
    Event,
    Failed,
    Finished,
    SparkNeeded,
    Started,
    Warned,
)

if TYPE_CHECKING:
    from springhouse.warehouse import Done, TableStatus

_LAST_LINES = 8
STARTING = "starting Spark …"


@dataclass
class Progress:
    """Everything that has happened since `began`; `tables` are the names of the base tables."""

    began: Instant
    tables: frozenset[str]
    running: dict[str, Instant] = field(default_factory=dict)
    refreshes: int = 0
    rows_in: int = 0
    quarantined: int = 0
    failures: int = 0
    last_lines: deque[Text] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))
    stopping: str | None = None
    over: bool = False

    def take(self, event: Event, now: Instant) -> Text | None:
        """Add an event; returns its line, or None if the event is not worth a line."""
        match event:
            case Started():
                self.running[event.table] = now
            case Finished():
                self.running.pop(event.table, None)
                self._count(event)
            case Failed():
                self.running.pop(event.table, None)
                self.failures += 1
            case SparkNeeded() | Delivered() | Warned():
                pass
        line = event_line(event, now)
        if line is not None:
            self.last_lines.append(line)
        return line

    def _count(self, event: Finished) -> None:
        if event.done is None or not event.done.committed:
            return
        self.refreshes += 1
        self.quarantined += event.done.rows_set_aside
        if event.table in self.tables:
            self.rows_in += event.done.rows_added


def event_line(event: Event, now: Instant) -> Text | None:
    """One event as `12:03:07 orders +120 rows 0.41 s`; None if it changed nothing."""
    at = (f"{clock_text(now)} ", "dim")
    match event:
        case SparkNeeded():
            return Text.assemble(at, (STARTING, "dim"))
        case Started():
            return None
        case Finished():
            if event.gave_way is not None:
                return Text.assemble(
                    at, (event.table, "bold"), (f" gave way: {event.gave_way}", "dim")
                )
            if event.done is None:
                return None
            took = (f" {span_text(event.done.seconds)}", "dim")
            return Text.assemble(at, (event.table, "bold"), f" {_changes(event.done)}", took)
        case Delivered():
            rows = f" {event.rows:,} {'row' if event.rows == 1 else 'rows'}"
            whereto = (f"{event.table} > {event.sink}", "bold")
            return Text.assemble(at, whereto, rows, (f" {span_text(event.seconds)}", "dim"))
        case Warned():
            if not event.table:
                return Text.assemble(at, ("warning: ", "yellow"), event.warning)
            return Text.assemble(at, (event.table, "bold"), (" warning: ", "yellow"), event.warning)
        case Failed():
            problem = next(iter(event.failure.problem.splitlines()), "")
            return Text.assemble(at, (event.table, "bold"), (" failed: ", "red"), problem)


def _changes(done: "Done") -> str:
    added = [f"+{done.rows_added:,}"] if done.rows_added else []
    removed = [f"-{done.rows_removed:,}"] if done.rows_removed else []
    rows = "row" if done.rows_added + done.rows_removed == 1 else "rows"
    changes = " ".join([*added, *removed, rows]) if added or removed else "unchanged"
    aside = f", {done.rows_set_aside:,} quarantined" if done.rows_set_aside else ""
    return changes + aside


def picture(
    name: str, progress: Progress, tables: Sequence["TableStatus"], now: Instant
) -> RenderableType:
    """The whole picture: totals, a row per table, the last events."""
    now_and_before = Group(
        live_table(tables, now, progress.running), "", *map(_cut, progress.last_lines), ""
    )
    if progress.over:
        return now_and_before  # The summary that follows shows the rest.
    title = Text.assemble((name, "bold"), "  ", (totals_text(progress, now), "dim"))
    foot = Text(progress.stopping or "Ctrl-C to stop", "yellow" if progress.stopping else "dim")
    return Group(title, "", now_and_before, foot)


def _cut(line: Text) -> Text:
    """The line, cut to the width of the screen."""
    cut = line.copy()
    cut.no_wrap, cut.overflow = True, "ellipsis"
    return cut


def totals_text(progress: Progress, now: Instant) -> str:
    """The totals of a run: `120 rows in, 0 quarantined, 5 refreshes, 0 failures in 12 s`."""
    parts = [
        f"{count_text(progress.rows_in, 'row')} in",
        f"{progress.quarantined:,} quarantined",
        count_text(progress.refreshes, "refresh", "refreshes"),
        count_text(progress.failures, "failure"),
    ]
    return f"{', '.join(parts)} in {span_text(now - progress.began)}"


def kept_line(name: str, promise: Seconds, share: float, worst: Seconds) -> str:
    """One promise, and how well the run kept it."""
    return (
        f"{name} kept its promise of {span_text(promise)} {100 * share:.4g} % of the time"
        f", largest lag {span_text(worst)}"
    )
