"""How do the changes of tables and views get to their sinks?

A courier delivers them in a thread of its own, beside the tracks, so a sink that is slow or down
delays no refresh. The courier looks at the Delta logs and writes to every sink the changes that the
sink lacks. After a failure it tries again, with a pause that doubles. `lake/sinks/delivery.py`
explains why a delivery is safe.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from springhouse.errors import CommitConflict, error_text
from springhouse.lake.lake import Lake
from springhouse.lake.sinks.delivery import deliver, warehouse_id
from springhouse.lake.sinks.sink import Sink, SinkContext
from springhouse.lake.sinks.sink_registry import open_sink
from springhouse.project.declarations.declaration import Project, SinkCall
from springhouse.refresh.retry import Failure, add_failure
from springhouse.units import Instant, Seconds
from springhouse.warehouse.running.refresh_events import Failed, Listener

_TICK = 0.25


class Courier:
    """Delivers changes for one warehouse; `owns` says which tables this node delivers."""

    def __init__(
        self,
        project: Project,
        lake: Lake,
        clock: Callable[[], Instant],
        retry: Seconds,
        *,
        node: str = "local",
        owns: Callable[[str], bool] = lambda table: True,
        listener: Listener = lambda event: None,
    ) -> None:
        self.failures: dict[str, Failure] = {}
        self._project = project
        self._lake = lake
        self._clock = clock
        self._retry = retry
        self._node = node
        self._owns = owns
        self._listener = listener
        self._opened: dict[tuple[str, str], Sink] = {}
        self._seen: dict[tuple[str, str], tuple[str | None, int]] = {}
        self._sinks = [
            (table, sink)
            for table in (*project.tables, *project.views)
            for sink in project.sinks_of(table)
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Deliver changes while the block runs, and the remaining changes at its end."""
        if not self._sinks:
            yield
            return
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(stop,), name="courier")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            self.round(hurry=True)
            self.close()

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(_TICK):
            self.round()

    def round(self, *, hurry: bool = False) -> None:
        """Deliver the changes that each sink lacks; `hurry` ignores the pauses after failures."""
        for table, sink in self._sinks:
            key = f"{table} > {sink.name}"
            failure = self.failures.get(key)
            if failure is not None and not hurry and failure.retry_at > self._clock():
                continue
            if not self._owns(table):
                self._close(table, sink)
                continue
            try:
                self._catch_up(table, sink)
                self.failures.pop(key, None)
            except CommitConflict:
                continue  # Another node delivers the same changes; the next round looks again.
            except Exception as error:  # noqa: BLE001  a sink may be anybody's code
                self._close(table, sink)
                self.failures[key] = add_failure(
                    failure, error_text(error), self._clock(), self._retry
                )
                self._listener(Failed(key, 0, self.failures[key]))

    def close(self) -> None:
        """Close all sinks."""
        for table, sink in self._sinks:
            self._close(table, sink)

    def _catch_up(self, table: str, sink: SinkCall) -> None:
        key = table, sink.name
        newest = self._lake.log(table).newest()
        own = self._lake.log(table).table_id()
        if newest is None or self._seen.get(key) == (own, newest.made):
            return
        if key not in self._opened:
            self._opened[key] = open_sink(sink, self._project.sinks, self._context(table, sink))
        while (given := deliver(self._lake, table, sink, self._opened[key])) is not None:
            self._listener(given)
        self._seen[key] = own, newest.made

    def _close(self, table: str, sink: SinkCall) -> None:
        """Close a sink; the next delivery opens it again, on this node or another."""
        self._seen.pop((table, sink.name), None)
        opened = self._opened.pop((table, sink.name), None)
        if opened is not None:
            opened.close()

    def _context(self, table: str, sink: SinkCall) -> SinkContext:
        return SinkContext(
            table,
            sink.name,
            self._project.name,
            self._lake.folder,
            self._clock,
            self._node,
            warehouse_id(self._lake),
            self._lake.log(table).table_id() or "",
        )
