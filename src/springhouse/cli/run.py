"""`springhouse run`: keep everything fresh, or bring it up to date once.

The warehouse runs in this thread. The first signal stops it and lets running refreshes commit. The
second signal ends the process on the spot, which loses work but never breaks a table.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from springhouse.cli.options import Duration, ProjectFolder, Settings, open_warehouse
from springhouse.cli.screen import clock_text, console, show
from springhouse.cli.signals import stopped_by_signals
from springhouse.errors import SpringhouseError
from springhouse.lake.storage.clock import steady_clock
from springhouse.logged_errors import passing
from springhouse.project.settings import REREAD
from springhouse.units import Instant

if TYPE_CHECKING:
    from springhouse.cli.progress import Progress
    from springhouse.project.declarations.declaration import Project
    from springhouse.warehouse import Event, Refreshed, TableStatus, Warehouse

LOG = logging.getLogger("springhouse.cli")

_STOPPING = "stopping after the running commits, once more to stop at once"
_KILLED = 130
_SHOW_CURSOR = b"\x1b[?25h\n"
_LOOK_SECONDS = 1.0


def run(
    once: Annotated[
        bool, typer.Option("--once", help="Bring everything up to date once, then stop.")
    ] = False,
    duration: Duration = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Let flows whose source changed read the new one from its start."
        ),
    ] = False,
    project: ProjectFolder = None,
    settings: Settings = None,
) -> None:
    """Keep every table and view as fresh as promised, until Ctrl-C."""
    if once and duration is not None:
        raise typer.BadParameter("--once and --for exclude each other")
    listening = _Listening(console())
    allowed = [f"{REREAD.key}=allow"] if yes else []
    given = [*(settings or []), *allowed]
    with open_warehouse(project, given, listening.hear, read_only=False) as warehouse:
        stop = partial(_stop, warehouse, listening.progress)
        with listening.to(warehouse), stopped_by_signals(stop):
            listening.say(Text(f"{clock_text(_now())} running {warehouse.project.name}"))
            refreshed = warehouse.refresh() if once else warehouse.run(duration)
        _print_summary(warehouse.project, listening.progress, refreshed)
    was_asked_to_stop = listening.progress.stopping is not None
    if refreshed.failures and (once or not was_asked_to_stop):
        raise typer.Exit(1)
    if once and was_asked_to_stop:
        # Some work may remain to be done, so `run --once && publish` must not go on.
        raise typer.Exit(_KILLED)


class _Listening:
    """Shows the events of a warehouse: as a picture on a terminal, as lines elsewhere."""

    def __init__(self, screen: Console) -> None:
        from springhouse.cli.progress import Progress

        self._screen = screen
        self._warehouse: Warehouse | None = None
        self._tables: list[TableStatus] = []
        self._looked = Instant(0.0)
        self.progress: Progress = Progress(_now(), frozenset())

    def hear(self, event: "Event") -> None:
        line = self.progress.take(event, _now())
        if line is not None:
            self.say(line)

    def say(self, line: Text) -> None:
        """Print a line at once, unless a picture shows it."""
        if not self._screen.is_terminal:
            self._screen.print(line, soft_wrap=True)
            self._screen.file.flush()

    @contextmanager
    def to(self, warehouse: "Warehouse") -> Iterator[None]:
        """Show the events of this warehouse while the block runs."""
        self._warehouse = warehouse
        self.progress.tables = frozenset(warehouse.project.tables)
        if not self._screen.is_terminal:
            yield
            return
        with Live(console=self._screen, get_renderable=self._picture, refresh_per_second=4) as live:
            yield
            self.progress.over = True
            self._looked = Instant(0.0)
            live.refresh()

    def _picture(self) -> RenderableType:
        from springhouse.cli.progress import picture

        assert self._warehouse is not None
        now = _now()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            with passing(LOG, "the next picture is soon", SpringhouseError, OSError):
                self._tables = self._warehouse.status(scheduled=False)
        return picture(self._warehouse.project.name, self.progress, self._tables, now)


def _stop(warehouse: "Warehouse", progress: "Progress") -> None:
    """Stop in peace, or at once on the second call. No print: a signal may interrupt a print."""
    if progress.stopping is not None:
        if sys.stdout.isatty():
            os.write(sys.stdout.fileno(), _SHOW_CURSOR)
        os._exit(_KILLED)
    progress.stopping = _STOPPING
    warehouse.stop()
    if not sys.stdout.isatty():
        os.write(sys.stderr.fileno(), f"{_STOPPING}\n".encode())


def _print_summary(project: "Project", progress: "Progress", refreshed: "Refreshed") -> None:
    from springhouse.cli.progress import kept_line, totals_text

    show(totals_text(progress, _now()))
    for name, kept in refreshed.freshness.items():
        declared = project.tables.get(name) or project.views[name]
        promise = declared.promise.strictest_seconds
        share = kept.share(promise)
        if promise is not None and share is not None and kept.lags:
            show(kept_line(name, promise, share, kept.worst))
    for name, warning in refreshed.warnings.items():
        line = Text.assemble(("warning: ", "bold yellow"), f"{name}: {warning}")
        console(stderr=True).print(line)
    for name, failure in refreshed.failures.items():
        problem = failure.problem.replace("\n", "\n  ")
        line = Text.assemble(("failing: ", "bold red"), f"{name}: {problem}")
        console(stderr=True).print(line)


def _now() -> Instant:
    return steady_clock()
