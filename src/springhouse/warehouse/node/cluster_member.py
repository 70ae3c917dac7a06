"""How is a warehouse one node of a cluster?

The warehouse runs as it would alone, with permits that the cluster gives and takes. A second thread
reports to the cluster: which units exist, how busy this node is, and whether it can work. The node
can't work before its Spark has started, nor after `stop`. Then the leader gives its
units to other nodes as they become free, and no node waits for a time-out.

The node votes much sooner than it can work. This module imports neither Arrow nor Spark nor a SQL
parser, so a node that restarts answers within a second.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from springhouse.cluster.members import Members
from springhouse.cluster.messages import LoadMeasured, UnitsDeclared
from springhouse.cluster.node_load import NodeLoad
from springhouse.cluster.run import Agent
from springhouse.errors import SpringhouseError, error_text
from springhouse.warehouse.machine import Machine
from springhouse.warehouse.node.cluster_settings import Joining
from springhouse.warehouse.node.permits import Permits

if TYPE_CHECKING:
    from springhouse.warehouse import Refreshed, Warehouse
    from springhouse.warehouse.node.unit_survey import Survey

LOG = logging.getLogger("springhouse.cluster")

_PULSE_SECONDS = 0.5
_SURVEY_SECONDS = 10.0
_SPARK_PAUSES = (5.0, 60.0)
"""The first and the longest pause between two attempts to start Spark, in seconds."""

_LEAVING_TIMEOUTS = 3
"""A node that leaves waits for others to take its units, for so many keep-alive times at most."""


class ClusterMember:
    """A warehouse, and the agent that gives it permits inside `joined`."""

    def __init__(self, members: Members, joining: Joining) -> None:
        self.permits = Permits(everything=False)
        timing = joining.timing
        self._patience = _LEAVING_TIMEOUTS * timing.keep_alive_seconds
        self.agent = Agent(members, timing, joining.memory(members.name), self.permits)
        self.permits.report_to(self.agent.notify, lambda: self.agent.may_process)
        self._warehouse: Warehouse | None = None
        self._machine = Machine()
        self._ready = threading.Event()
        self._leaving = threading.Event()
        self._over = threading.Event()

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Be a node that votes: a quorum may need its vote before it has a warehouse."""
        self._measure()
        self.agent.start()
        try:
            yield
        finally:
            self._over.set()
            self.agent.stop()

    def run(self, warehouse: "Warehouse", seconds: float | None = None) -> "Refreshed":
        """Work as a node, for so many seconds or until `stop`; raises if the agent failed."""
        from springhouse.warehouse.node.unit_survey import Survey

        self._warehouse = warehouse
        survey = Survey(warehouse.internals.watch, self.permits)
        threads = [
            threading.Thread(
                target=self._pulse, args=(warehouse, survey), name="pulse", daemon=True
            ),
            threading.Thread(target=self._warm_up, args=(warehouse,), name="warm-up", daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            refreshed = warehouse.run(seconds)
        finally:
            self._over.set()
            for thread in threads:
                thread.join(timeout=5.0)
        if self.agent.problem is not None:
            raise SpringhouseError(
                f"this node can't go on: {self.agent.problem}",
                hint="Its log says where that came from; the other nodes take its units.",
            ) from self.agent.problem
        return refreshed

    def stop(self) -> None:
        """Hand all units over, then end; a second call ends at once."""
        if self._leaving.is_set() and self._warehouse is not None:
            self._warehouse.stop()
        self._leaving.set()

    def _warm_up(self, warehouse: "Warehouse") -> None:
        """Let Spark compute something, so that the first refresh does not wait for its start."""
        pause, longest = _SPARK_PAUSES
        while not self._over.is_set():
            try:
                spark = warehouse.internals.lake.spark
                spark.session().range(1).count()
                spark.quick().range(1).count()
            except Exception as error:  # noqa: BLE001  whatever it is, others can work
                if self._over.is_set():
                    return  # Its warehouse was closed, and Spark with it.
                if self.agent.members.peers:
                    what = "Spark does not start, and this node gets no units until it does"
                    LOG.warning("%s: %s", what, error_text(error))
                    self._over.wait(pause)
                    pause = min(2 * pause, longest)
                    continue
                # No other node can work. So this node takes units, and its first refresh reports
                # the error.
                LOG.warning("Spark does not start: %s", error_text(error))
            self._ready.set()
            self._measure()  # At once, because other nodes wait until this one can work.
            return

    def _pulse(self, warehouse: "Warehouse", survey: "Survey") -> None:
        """Report to the cluster until this node ends."""
        surveyed_at, left_at = float("-inf"), float("inf")
        while not self._over.wait(_PULSE_SECONDS):
            now = time.monotonic()
            if self.agent.problem is not None:
                warehouse.stop()
                return
            if self._leaving.is_set():
                left_at = min(left_at, now)
                alone = not self.agent.members.peers
                if alone or not self.permits.units or now > left_at + self._patience:
                    warehouse.stop()
            survey.note_beginnings()
            if now >= surveyed_at + _SURVEY_SECONDS:
                surveyed_at = now
                units = survey.units()
                if units is not None:
                    self.agent.notify(UnitsDeclared(units))
            self._measure()

    def _measure(self) -> None:
        permits, machine = self.permits, self._machine
        able = self._ready.is_set() and not self._leaving.is_set()
        self.agent.notify(
            LoadMeasured(
                NodeLoad(
                    machine.cpu(),
                    machine.memory(),
                    permits.tracks_busy,
                    permits.backlog_seconds,
                    able,
                )
            )
        )
