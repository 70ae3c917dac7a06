"""The nodes of one cluster as processes on this machine: starting, killing and inspecting them.

Each node is in a session of its own, so that a kill ends its JVM too, and writes to its own log.
The ports are free ones; a node that is started again keeps its address.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TypeVar

from springhouse.cluster import wire
from springhouse.cluster.cluster_report import ClusterReport
from springhouse.cluster.network import PeerChannel
from springhouse.errors import SpringhouseError

SOURCE = Path(__file__).parents[1] / "src"
_END_SECONDS = 20.0
_ASK_SECONDS = 3.0
_Found = TypeVar("_Found")


class Nodes:
    """All nodes of a cluster: the processes that run, and the address of each node."""

    def __init__(self, cluster: str, names: Sequence[str], folder: Path) -> None:
        self.folder = folder
        self._cluster = cluster
        ports = free_ports(len(names))
        self.addresses = {
            name: f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def running(self) -> list[str]:
        """The nodes that were started, and neither killed nor asked to leave."""
        return list(self._processes)

    def start(self, name: str, *command: str, environment: Mapping[str, str] = {}) -> None:
        """Run a Python program as this node."""
        with self._log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, *command],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
            )

    def kill(self, name: str) -> None:
        """Send SIGKILL to the node, in the middle of its work."""
        _end(self._processes.pop(name))

    def leave(self, *names: str, seconds: float = 60.0) -> list[int]:
        """Ask these nodes to leave, and wait until they have left; return their exit codes."""
        leaving = [self._processes.pop(name) for name in names]
        for process in leaving:
            process.terminate()
        try:
            return [process.wait(timeout=seconds) for process in leaving]
        except subprocess.TimeoutExpired:
            raise SystemExit(f"{' or '.join(names)} does not leave in {seconds:g} s") from None
        finally:
            for process in leaving:
                _end(process)

    def end(self) -> None:
        """Kill all nodes that still run."""
        for name in self.running:
            self.kill(name)

    def report(self) -> ClusterReport | None:
        """The state of the cluster, from the first node that answers; None if none answers."""
        asked = wire.encode_question(self._cluster)
        for name in self.running:
            with closing(PeerChannel(self._cluster, self.addresses[name], None)) as line:
                try:
                    return wire.decode_cluster_report(line.call("Status", asked, _ASK_SECONDS))
                except SpringhouseError:
                    continue
        return None

    def last_words(self, characters: int = 4000) -> str:
        """The end of every log."""
        logs = [log for name in self.addresses if (log := self._log(name)).exists()]
        return "\n".join(f"== {log.stem}\n{log.read_text()[-characters:]}" for log in logs)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, if it still runs, and all processes of its session."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=_END_SECONDS)


def waited(look: Callable[[], _Found], what: str, seconds: float, every: float = 0.25) -> _Found:
    """The result of `look`, as soon as there is one."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise SystemExit(f"no {what} within {seconds:g} s")
        time.sleep(every)
    return found


def free_ports(count: int) -> list[int]:
    """This many different ports on which nobody listens."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in found]
