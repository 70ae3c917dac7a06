"""How far has each flow read, and what is there to read?

A `Feed` is the sources behind one flow, opened once and kept. Where a flow stands is not kept here:
it is the version of a transaction in the Delta log of the flow's target, one per source partition,
written in the same commit as the rows. So it can't disagree with the rows, whoever wrote them last.

The name of a transaction comes from what is read, not from where it stands in the query: a user may
reorder a UNION without reading everything again.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

from springhouse.lake.lake import Lake, key_of
from springhouse.lake.log import TableLog
from springhouse.lake.sources.contract import Range, Source, SourceContext
from springhouse.lake.sources.delta import DeltaSource
from springhouse.lake.sources.registry import open_source
from springhouse.lake.tables import TableVersion
from springhouse.project.declaration import (
    CdcFlow,
    Flow,
    Place,
    Project,
    Query,
    Reading,
    Reference,
)
from springhouse.units import Instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAMS = (Reading.STREAM, Reading.SOURCE, Reading.DELTA_STREAM, Reading.OTHER)
_NOTHING = Reference(0, 0, Reading.OTHER, "", Place("", 0))


@dataclass(frozen=True)
class Stream:
    """One stream that a flow reads: where the query names it, and the source behind it."""

    name: str
    reference: Reference
    source: Source

    def transaction(self, partition: str) -> str:
        return f"springhouse/{self.name}/{partition}"


@dataclass(frozen=True)
class Feed:
    """The streams of one flow."""

    flow: Flow
    streams: tuple[Stream, ...]
    # Which of their partitions are ours to read: all of them, unless nodes share the work.
    is_ours: Callable[[str], bool] = lambda partition: True

    def latest(self) -> dict[str, int]:
        """The end of what can be read now, by transaction."""
        once = {self._once: 1} if self.flow.once else {}
        return once | {
            stream.transaction(partition): end
            for stream in self.streams
            for partition, end in stream.source.latest().items()
        }

    def admit(self) -> None:
        """Give what was found its offsets for good: done by who refreshes, not by who asks."""
        for stream in self.streams:
            getattr(stream.source, "admit", lambda: None)()

    @property
    def _once(self) -> str:
        return f"springhouse/{self.flow.name}/once"

    def horizon(self) -> dict[str, int]:
        """The ends of what comes from outside the warehouse: what is inside still moves with it."""
        outside = {s.transaction("") for s in self.streams if s.reference.reading is Reading.SOURCE}
        return {name: end for name, end in self.latest().items() if name.startswith(tuple(outside))}

    def behind(
        self, table: TableVersion | None, until: Mapping[str, int] | None = None
    ) -> dict[str, Range]:
        """What can be read, up to `until`, and is not in the table yet, by transaction."""
        ranges: dict[str, Range] = {}
        if self.flow.once and table is not None and table.offset(self._once):
            return ranges
        for transaction, latest in self.latest().items():
            if not self.is_ours(transaction.rpartition("/")[2]):
                continue
            start = table.offset(transaction) if table else 0
            end = latest if until is None else min(latest, until.get(transaction, latest))
            end = min(end, start + self._largest_range(transaction))
            if end > start:
                ranges[transaction] = Range(start, end)
        return ranges

    def is_cut(self, ranges: Mapping[str, Range]) -> bool:
        """Whether any of what `behind` told is all that one commit may take in of what waits."""
        return any(
            given.end - given.start >= self._largest_range(transaction)
            for transaction, given in ranges.items()
        )

    def read(
        self, session: "SparkSession", ranges: Mapping[str, Range]
    ) -> "dict[Reference, DataFrame]":
        """The rows of these ranges, by where the query names them; none for other streams.

        Bad ones need not say why (`read_why` does), if the source can spare itself that.
        """
        return {
            stream.reference: getattr(stream.source, "glance", stream.source.read)(
                session, self._own(stream, ranges)
            )
            for stream in self.streams
        }

    def read_why(
        self, session: "SparkSession", reference: Reference, ranges: Mapping[str, Range]
    ) -> "DataFrame":
        """The rows of one stream once more, where every bad one says why it is bad."""
        stream = next(stream for stream in self.streams if stream.reference == reference)
        return stream.source.read(session, self._own(stream, ranges))

    def size(self, ranges: Mapping[str, Range]) -> int:
        """How many bytes the ranges hold, as far as the sources know."""
        total = 0
        for stream in self.streams:
            measure = getattr(stream.source, "size", None)
            own = self._own(stream, ranges)
            if measure is not None and own:
                total += int(measure(own))
        return total

    def partition_of(self, transaction: str) -> str:
        """The partition of the one stream that a transaction is of."""
        (stream,) = self.streams
        return transaction.removeprefix(stream.transaction(""))

    def transaction_of(self, partition: str) -> str:
        """The transaction of a partition of the one stream."""
        (stream,) = self.streams
        return stream.transaction(partition)

    def identity(self, ranges: Mapping[str, Range]) -> object | None:
        """What is equal for two feeds of one source exactly if the records are; None: who knows."""
        (stream,) = self.streams
        own = self._own(stream, ranges)
        told = getattr(stream.source, "identity", None)
        if told is not None:
            return own.keys(), told(own)
        source = type(stream.source)
        if hasattr(stream.source, "memory") or "context" in signature(source).parameters:
            return None
        return own

    def learn_from(self, other: "Feed") -> None:
        """Remember what another feed of the same source learned when it read for both."""
        (own,), (read,) = self.streams, other.streams
        learned = getattr(read.source, "memory", None)
        if learned is not None:
            getattr(own.source, "memory", {}).update(learned)

    def warnings(self) -> list[str]:
        """What the sources say that looks wrong, and is no error."""
        told = [getattr(stream.source, "warning", None) for stream in self.streams]
        return [text for text in told if text]

    @contextmanager
    def keeping_memory(self) -> Iterator[None]:
        """What the sources learn inside is forgotten again if it fails: no commit has it."""
        sources = [s.source for s in self.streams if hasattr(s.source, "memory")]
        before = [dict(source.memory) for source in sources]
        try:
            yield
        except BaseException:
            for source, memory in zip(sources, before, strict=True):
                source.memory = memory
            raise

    def memory(self) -> dict[str, Any]:
        """What the sources want to find again next time."""
        kept = {stream.name: getattr(stream.source, "memory", None) for stream in self.streams}
        return {name: dict(memory) for name, memory in kept.items() if memory}

    def inputs(self, ranges: Mapping[str, Range]) -> dict[str, int]:
        """The versions of tables that are reflected once these ranges are read, by input."""
        reflected = {}
        for stream in self.streams:
            if stream.reference.reading is Reading.SOURCE:
                continue
            own = self._own(stream, ranges)
            if own:
                reflected[key_of(stream.reference)] = max(r.end for r in own.values()) - 1
        return reflected

    def _largest_range(self, transaction: str) -> int:
        """How many offsets one commit may take in: a source that says nothing sets no limit."""
        for stream in self.streams:
            if transaction.startswith(stream.transaction("")):
                return int(getattr(stream.source, "largest_range", None) or sys.maxsize)
        return sys.maxsize

    def _own(self, stream: Stream, ranges: Mapping[str, Range]) -> dict[str, Range]:
        prefix = stream.transaction("")
        return {
            transaction.removeprefix(prefix): given
            for transaction, given in ranges.items()
            if transaction.startswith(prefix)
        }


def open_feed(
    lake: Lake,
    project: Project,
    flow: Flow,
    now: Callable[[], Instant],
    node: str,
    is_ours: Callable[[str], bool] = lambda partition: True,
) -> Feed:
    """Open the sources of a flow, with what its last commit remembered."""
    remembered = _remembered(lake.log(flow.target), flow.name)
    streams: list[Stream] = []
    references = [r for r in stream_references(project, flow) if r.reading is not Reading.OTHER]
    for reference in references:
        name = _unique(f"{flow.name}/{_slug(reference)}", [stream.name for stream in streams])
        context = SourceContext(
            flow=name,
            folder=lake.folder,
            storage=lake.storage.inside("files", name.replace("/", ".")),
            now=now,
            node=node,
            memory=remembered.get(name, {}),
        )
        streams.append(Stream(name, reference, _source(lake, project, reference, context)))
    return Feed(flow, tuple(streams), is_ours)


def stream_references(project: Project, flow: Flow) -> list[Reference]:
    """The streams that a flow reads, also through temporary views."""
    if isinstance(flow, CdcFlow):
        temporary = project.temporary_views.get(flow.source.name)
        return list(_streams_in(project, temporary.query)) if temporary else [flow.source]
    return list(_streams_in(project, flow.query))


def is_channel(project: Project, table: str) -> bool:
    """Whether something outside the warehouse flows into a table: it is an input channel then.

    A table that is fed by other tables alone is derived from them, and reflects their versions.
    """
    readings = {
        reference.reading
        for flow in project.flows_into(table)
        for reference in (stream_references(project, flow) or [_NOTHING])
    }
    return not readings <= {Reading.STREAM, Reading.DELTA_STREAM}


def _streams_in(project: Project, query: Query) -> Iterator[Reference]:
    for reference in query.references:
        temporary = project.temporary_views.get(reference.name)
        if temporary is not None and reference.reading is not Reading.SOURCE:
            yield from _streams_in(project, temporary.query)
        elif reference.reading in STREAMS:
            yield reference


def _source(lake: Lake, project: Project, reference: Reference, context: SourceContext) -> Source:
    if reference.reading is Reading.SOURCE:
        assert reference.source is not None
        return open_source(reference.source, project.sources, context)
    return DeltaSource(lake.log(key_of(reference)))


def _remembered(log: TableLog, flow: str) -> Mapping[str, Any]:
    for commit in reversed(log.commits()):
        noted = commit.note.flows.get(flow) if commit.note else None
        if noted is not None:
            return noted.memory
    return {}


def _slug(reference: Reference) -> str:
    """What is read, as a name that a folder may have, and that nothing else has.

    `read_files('data/orders')` is `read_files.data.orders-3f2a`, whatever its other options are.
    """
    parts = [reference.name]
    if reference.source is not None:
        parts = [reference.source.plugin, *reference.source.arguments[:1]]
    whole = ".".join(parts)
    readable = re.sub(r"[^A-Za-z0-9_]+", ".", whole).strip(".").lower()[:60]
    return f"{readable}-{hashlib.sha256(whole.encode()).hexdigest()[:4]}"


def _unique(name: str, taken: list[str]) -> str:
    if name not in taken:
        return name
    count = 2
    while f"{name}.{count}" in taken:
        count += 1
    return f"{name}.{count}"
