"""Which units can the nodes of a cluster share?

Every view is a unit. A base table is a unit, too, unless its flows only append rows, from
partitions that are independent of each other. Then each partition is a unit, and several nodes
ingest one table side by side. Their commits do not conflict, because each partition has
transactions of its own.
"""

import logging
from collections.abc import Mapping

from springhouse.logged_errors import passing
from springhouse.project.declarations.declaration import AppendFlow, ReadMode
from springhouse.project.lineage.channels import stream_references
from springhouse.warehouse.node.permits import Permits, unit_of
from springhouse.warehouse.watch import Watch, is_streaming_function

LOG = logging.getLogger("springhouse.cluster")


class Survey:
    """Lists the units, and remembers the partitions that it saw last."""

    def __init__(self, watch: Watch, permits: Permits) -> None:
        self._watch = watch
        self._permits = permits
        self._partitions: dict[str, tuple[str, ...]] = {}
        self._begun: set[str] = set()
        self._told: Mapping[str, float] | None = None

    def units(self) -> Mapping[str, float] | None:
        """All units with their weights; None if they have not changed since the last call."""
        units = dict.fromkeys(map(unit_of, self._watch.project.views), 1.0)
        for table in self._watch.project.tables:
            if self._is_divisible(table):
                with passing(LOG, "the partitions seen before still count", Exception):
                    self._partitions[table] = self._look(table)
            found = self._partitions.get(table, ())
            names = [unit_of(table, each) for each in found] if len(found) > 1 else [table]
            units |= dict.fromkeys(names, 1.0)
        self.note_beginnings()
        if units == self._told:
            return None
        self._told = units
        return units

    def note_beginnings(self) -> None:
        """Note the tables with a first commit, because nodes can share their partitions."""
        several = {table: found for table, found in self._partitions.items() if len(found) > 1}
        for table in several.keys() - self._begun:
            self._note_beginning(table)
        self._permits.surveyed({table: found[0] for table, found in several.items()}, self._begun)

    def _is_divisible(self, table: str) -> bool:
        """Whether partitions are independent: flows only append rows, which come from outside."""
        project = self._watch.project
        flows = project.flows_into(table)
        return bool(flows) and all(
            isinstance(flow, AppendFlow)
            and not flow.once
            and not is_streaming_function(flow)
            and all(r.reading is ReadMode.SOURCE for r in stream_references(project, flow))
            for flow in flows
        )

    def _look(self, table: str) -> tuple[str, ...]:
        found = {
            transaction.rpartition("/")[2]
            for feed in self._watch.feeds(table)
            for transaction in feed.latest()
        }
        return tuple(sorted(found, key=lambda name: (len(name), name)))

    def _note_beginning(self, table: str) -> None:
        """Open the sources again after the first commit, which fixes what they remember."""
        commits = self._watch.lake.log(table).commits()
        if any(commit.note is not None and commit.note.flows for commit in commits):
            self._watch.forget(table)
            self._begun.add(table)
