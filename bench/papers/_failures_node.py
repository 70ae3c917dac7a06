"""One node of the experiment in paper 003, section 5: `failures.py` starts and kills it.

No Spark: the events are those of the `SampleEventSource` (time, offset, node, whether it leads),
ten a second in each partition. Each partition goes to a positioned file on storage that all nodes
share. The cluster decides which partitions a node writes.
"""

import argparse
import json
import logging
import signal
import sys
import threading
import time
from pathlib import Path

from springhouse.cluster.members import Members, parse_peers
from springhouse.cluster.messages import Progressed, Released, UnitsDeclared
from springhouse.cluster.run import Agent
from springhouse.cluster.timing import Timing
from springhouse.errors import SinkError
from springhouse.lake.sinks.positioned_file import PositionedFile
from springhouse.units import Seconds

RATE = 10
LOOK_SECONDS = 0.2


def timing(pace: float) -> Timing:
    """The time-outs of section 5.1, divided by `pace`."""
    return Timing(Seconds(0.3 / pace), Seconds(3.0 / pace), Seconds(3.0 / pace))


class Writer:
    """Writes the events of the partitions that the node owns."""

    def __init__(self, folder: Path, name: str, anchor: float) -> None:
        self._folder, self._name, self._anchor = folder, name, anchor
        self._files: dict[str, PositionedFile | None] = {}
        self._lock = threading.Lock()
        self.agent: Agent | None = None

    def take(self, units: tuple[tuple[str, int], ...]) -> None:
        with self._lock:
            self._files.update((unit, None) for unit, _ in units)

    def let_go(self, units: tuple[str, ...], *, at_once: bool) -> None:
        # A write takes milliseconds, so a running write finishes; the lock waits for it.
        with self._lock:
            for unit in units:
                file = self._files.pop(unit, None)
                if file is not None:
                    file.close()
        assert self.agent is not None
        self.agent.notify(Released(units))

    def write(self) -> None:
        """Write all events up to now that their files lack."""
        assert self.agent is not None
        with self._lock:
            for unit in self._files:
                file = self._open(unit)
                end = int((time.time() - self._anchor) * RATE)
                if file is None or end <= file.offset or not self.agent.may_process:
                    continue
                start = file.offset
                file.write([self._line(unit, offset) for offset in range(start, end)], start, end)
                self.agent.notify(Progressed(unit, end))

    def _open(self, unit: str) -> PositionedFile | None:
        if self._files[unit] is None:
            try:
                self._files[unit] = PositionedFile(self._folder / f"{unit}.jsonl")
            except SinkError:
                return None  # The previous owner is about to close it; look again.
        return self._files[unit]

    def _line(self, unit: str, offset: int) -> str:
        assert self.agent is not None
        return json.dumps(
            {
                "time": round(time.time(), 3),
                "event_time": round(self._anchor + offset / RATE, 3),
                "partition": unit,
                "offset": offset,
                "node": self._name,
                "leader": self.agent.leads,
            }
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--listen", required=True)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--anchor", type=float, required=True)
    parser.add_argument("--pace", type=float, default=1.0)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: over.set())
    members = Members("experiment", given.name, given.listen, parse_peers(given.peers))
    writer = Writer(given.folder / "events", given.name, given.anchor)
    agent = Agent(members, timing(given.pace), given.folder / "memory" / given.name, writer)
    writer.agent = agent
    agent.notify(UnitsDeclared({f"partition-{n}": 1.0 for n in range(given.partitions)}))
    agent.start()
    while not over.wait(LOOK_SECONDS):
        writer.write()
        if agent.problem is not None:
            sys.exit(1)
    agent.stop()


if __name__ == "__main__":
    main()
