"""A warehouse in a process of its own, for tests that kill it.

The process reads commands from stdin, one per line: `open FOLDER`, `refresh`, `run`, `arm POINT`.
It writes events to stdout, one JSON object each. A POINT makes something happen to the process,
once. With `commit:before:orders:die` it ends by SIGKILL, with all processes that it started, just
before the commit of the table `orders`. With `hold` it waits there for a line on stdin.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import springhouse
from springhouse.errors import CommitConflict
from springhouse.lake.delta import commits
from springhouse.lake.ingest import cdc, flow_commit, refresh_table, target_columns
from springhouse.lake.landing import quarantine
from springhouse.lake.sinks import delivery
from springhouse.lake.sources import file_log
from springhouse.lake.upkeep import compaction
from springhouse.lake.views import recompute, refresh_view
from springhouse.warehouse import Event, Failed, Finished, Refreshed, Started, Warehouse

WRITERS = (
    cdc,
    commits,
    delivery,
    file_log,
    flow_commit,
    quarantine,
    recompute,
    refresh_table,
    refresh_view,
    compaction,
    target_columns,
)
CALLS = ("commit", "create", "ensure")

armed: list[str] = []
_telling = threading.Lock()


def tell(event: str, **told: Any) -> None:
    """Write one complete event before anything else can happen."""
    line = json.dumps({"event": event, **told}) + "\n"
    with _telling:
        sys.stdout.write(line)
        sys.stdout.flush()


def die() -> None:
    """End this process and its JVM, now."""
    os.killpg(0, signal.SIGKILL)


def hold() -> None:
    """Stand still until the test says go."""
    tell("holding")
    sys.stdin.readline()


ACTIONS: dict[str, Callable[[], None]] = {"die": die, "hold": hold}


def reach(point: str) -> None:
    """Perform the armed action of this point, if it has one."""
    for action, do in ACTIONS.items():
        if f"{point}:{action}" in armed:
            armed.remove(f"{point}:{action}")
            do()


def watch_commits() -> None:
    """Put points around the functions that write to Delta, in every module that uses them."""

    def watched(call: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def called(place: Any, *others: Any) -> Any:
            # `place` is the storage of a table, or a version of a table with a `place`.
            root = Path(place.storage.root if hasattr(place, "storage") else place.root)
            # The list of `read_files` is in files/<flow>.<more>.
            logs_files = root.parent.name == "files"
            table = f"files/{root.name.split('.')[0]}" if logs_files else root.name
            reach(f"{call}:before:{table}")
            tell("writing", table=table)
            try:
                returned = original(place, *others)
            except CommitConflict:
                tell("conflict", table=table)
                raise
            reach(f"{call}:after:{table}")
            return returned

        return called

    for call in CALLS:
        replacement = watched(call, getattr(commits, call))
        for module in WRITERS:
            if hasattr(module, call):
                setattr(module, call, replacement)


def on_event(event: Event) -> None:
    match event:
        case Started():
            tell("started", table=event.table, track=event.track)
        case Finished():
            rows = None if event.done is None else event.done.rows
            tell("finished", table=event.table, track=event.track, rows=rows)
        case Failed():
            tell("failed", table=event.table, track=event.track, problem=event.failure.problem)
        case _:
            tell("spark")


def told(refreshed: Refreshed) -> dict[str, Any]:
    return {
        "failures": {name: failure.problem for name, failure in refreshed.failures.items()},
        "done": [done.table for done in refreshed.done],
    }


def main() -> None:
    watch_commits()
    warehouse: Warehouse | None = None
    tell("ready")
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "open":
            warehouse = springhouse.open(argument, listener=on_event)
            tell("opened")
            continue
        if command == "arm":
            armed.append(argument)
            tell("armed")
            continue
        assert warehouse is not None, "open a warehouse first"
        tell("refreshed", **told(warehouse.refresh() if command == "refresh" else warehouse.run()))


if __name__ == "__main__":
    main()
