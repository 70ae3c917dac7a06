"""Which records wait for a flow?

A `Feed` holds the sources of one flow, opened once and kept. It does not hold the flow's position.
The position is the version of a transaction in the Delta log of the flow's target, one per source
partition, written in the same commit as the rows. So it always agrees with the rows, whichever
process wrote them last.

The name of a transaction comes from the source, and not from the source's place in the query: a
user may reorder a UNION, and the flow does not read everything again. `stream_names` chooses the
name, and `source_stream` checks whether the source is the one that the offsets count.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from springhouse.errors import SpringhouseError
from springhouse.lake.delta.requirements import Requirement
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.ingest.identity import (
    IdentityPolicy,
    RecordedStreams,
    StreamNote,
    doubtful_flow_error,
    in_words,
    other_source_error,
)
from springhouse.lake.ingest.source_stream import Stream
from springhouse.lake.ingest.stream_names import Named, named_streams
from springhouse.lake.lake import Lake
from springhouse.lake.sources.delta_source import DeltaSource
from springhouse.lake.sources.source import Range, Source, SourceContext
from springhouse.lake.sources.source_registry import SourceSignature, open_source, signature_of
from springhouse.lake.storage.presence import RemoteScans
from springhouse.project.declarations.declaration import (
    AppendFlow,
    Flow,
    Project,
    ReadMode,
    Reference,
    SqlQuery,
)
from springhouse.project.lineage.channels import stream_references
from springhouse.project.lineage.keys import reference_key
from springhouse.units import Instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Feed:
    """The streams of one flow."""

    flow: Flow
    streams: tuple[Stream, ...]
    # Which partitions this node reads: all of them, unless several nodes share the work.
    is_ours: Callable[[str], bool] = lambda partition: True
    recorded: RecordedStreams = field(default_factory=RecordedStreams)
    policy: IdentityPolicy = field(default_factory=IdentityPolicy)

    def latest(self) -> dict[str, int]:
        """The readable end now, by transaction; an error if the flow may not read a source."""
        self._identify()
        once = {self._once: 1} if self.flow.once else {}
        return once | {
            stream.transaction(partition): end
            for stream in self.streams
            for partition, end in stream.source.latest().items()
        }

    def admit(self, requires: Sequence[Requirement] = ()) -> None:
        """Fix the offsets of all records that `latest` has counted; only a refresh does this."""
        for stream in self.streams:
            stream.source.admit_under(requires)

    @property
    def _once(self) -> str:
        return f"springhouse/{self.flow.name}/once"

    def _has_run(self, table: TableVersion) -> bool:
        """Whether a flow that runs only once has run, perhaps under another name."""
        return bool(table.offset(self._once) or self.recorded.reading(self._once_reads, None))

    @property
    def _once_reads(self) -> str:
        """The hash of the query of a flow that runs only once; the flow's name is not in it."""
        query = self.flow.query if isinstance(self.flow, AppendFlow) else None
        text = "" if query is None else query.fingerprint
        if isinstance(query, SqlQuery):
            text = query.text
        return f"once:{hashlib.sha256(' '.join(text.split()).encode()).hexdigest()[:16]}"

    def horizon(self) -> dict[str, int]:
        """The ends of the sources outside the warehouse; tables inside grow meanwhile."""
        outside = [s for s in self.streams if s.reference.reading is ReadMode.SOURCE]
        return {
            name: end
            for name, end in self.latest().items()
            if any(stream.partition(name) is not None for stream in outside)
        }

    def unread(self) -> list[str]:
        """The sources that the flow would read from the start, although it has read others."""
        new, _ = self.recorded.replaced(self.flow.name, [stream.name for stream in self.streams])
        return [
            in_words(stream.reads)
            for stream in self.streams
            if stream.name in new or self._is_doubtful(stream)
        ]

    def _is_doubtful(self, stream: Stream) -> bool:
        return bool(stream.named.doubtful) and not self.recorded.is_known(stream.name)

    def _identify(self) -> None:
        """Look up the identity of each source; an error if the flow may not read one."""
        names = [stream.name for stream in self.streams]
        _, gone = self.recorded.replaced(self.flow.name, names)
        if gone and not self.policy.reread:
            raise other_source_error(self.flow, self.unread(), list(map(self.recorded.text, gone)))
        for stream in self.streams:
            if self._is_doubtful(stream) and not self.policy.reread:
                raise doubtful_flow_error(self.flow, stream.reads, stream.named.doubtful)
            stream.identify(self.flow, self.recorded, self.policy)

    def identity_problems(self) -> Iterator[str]:
        """The reasons why the offsets count other sources; this check changes nothing."""
        if self.policy.read_recreated:
            return
        for stream in self.streams:
            try:
                yield from stream.identity_problems(self.flow, self.recorded)
            except SpringhouseError as error:
                yield error.problem

    def stream_notes(self, ranges: Mapping[str, Range]) -> dict[str, Mapping[str, str]]:
        """The sources that the offsets of these ranges count; an error if one was replaced."""
        for stream in self.streams:
            own = stream.ranges_of(ranges)
            if own:
                stream.prove_same()
                stream.source.sync(own)
        once: dict[str, Mapping[str, str]] = {}
        if self.flow.once:
            once[f"{self.flow.name}/once"] = StreamNote(self._once_reads).as_json()
        return once | {
            stream.name: stream.note(self.recorded, ranges).as_json() for stream in self.streams
        }

    def behind(
        self, table: TableVersion | None, until: Mapping[str, int] | None = None
    ) -> dict[str, Range]:
        """The readable ranges, up to `until`, that are not in the table yet."""
        ranges: dict[str, Range] = {}
        if self.flow.once and table is not None and self._has_run(table):
            return ranges
        for transaction, latest in self.latest().items():
            if not self.is_ours(transaction.rpartition("/")[2]):
                continue
            start = table.offset(transaction) if table else 0
            self._prove_not_back(transaction, start, latest)
            end = latest if until is None else min(latest, until.get(transaction, latest))
            end = min(end, start + self._largest_range(transaction))
            if end > start:
                ranges[transaction] = Range(start, end)
        return ranges

    def is_cut(self, ranges: Mapping[str, Range]) -> bool:
        """Whether one of these ranges has the largest size for a commit, so that more may wait."""
        return any(
            offsets.end - offsets.start >= self._largest_range(transaction)
            for transaction, offsets in ranges.items()
        )

    def read(
        self,
        session: "SparkSession",
        ranges: Mapping[str, Range],
        scans: RemoteScans | None = None,
    ) -> "dict[Reference, DataFrame]":
        """The rows of these ranges, by the place in the query that names their stream.

        Bad rows may lack their reasons: `read_with_reasons` gives them. `scans` remembers the files
        of Delta tables that a remote engine reads.
        """
        rows: dict[Reference, DataFrame] = {}
        for stream in self.streams:
            source, own = stream.source, stream.ranges_of(ranges)
            if isinstance(source, DeltaSource):
                rows[stream.reference] = source.read(session, own, scans)
            else:
                rows[stream.reference] = source.glance(session, own)
        return rows

    def read_with_reasons(
        self, session: "SparkSession", reference: Reference, ranges: Mapping[str, Range]
    ) -> "DataFrame":
        """The rows of one stream again, with a reason for every bad row."""
        stream = next(stream for stream in self.streams if stream.reference == reference)
        return stream.source.read(session, stream.ranges_of(ranges))

    def size(self, ranges: Mapping[str, Range]) -> int:
        """The approximate number of bytes in the ranges, as far as the sources know."""
        own = [(stream.source, stream.ranges_of(ranges)) for stream in self.streams]
        return sum(int(source.size(given)) for source, given in own if given)

    def partition_of(self, transaction: str) -> str:
        """The partition that a transaction counts, of the only stream."""
        (stream,) = self.streams
        partition = stream.partition(transaction)
        assert partition is not None
        return partition

    def transaction_of(self, partition: str) -> str:
        """The transaction of a partition of the only stream."""
        (stream,) = self.streams
        return stream.transaction(partition)

    def identity(self, ranges: Mapping[str, Range]) -> object | None:
        """A value that is equal for two feeds iff their records are equal; None if unknown."""
        (stream,) = self.streams
        own = stream.ranges_of(ranges)
        identity = stream.source.identity(own)
        return None if identity is None else (own.keys(), identity)

    def learn_from(self, other: "Feed") -> None:
        """Take over the memory of another feed of the same source that read for both."""
        (own,), (read,) = self.streams, other.streams
        if read.source.memory is not None and own.source.memory is not None:
            own.source.memory.update(read.source.memory)

    def warnings(self) -> list[str]:
        """Problems of the sources that are no errors."""
        return [text for stream in self.streams if (text := stream.source.warning)]

    @contextmanager
    def keeping_memory(self) -> Iterator[None]:
        """If the block fails, reset the sources' memory: no commit holds their new memory."""
        before = [
            (stream.source, dict(stream.source.memory))
            for stream in self.streams
            if stream.source.memory is not None
        ]
        try:
            yield
        except BaseException:
            for source, memory in before:
                source.memory = memory
            raise

    def memory(self) -> dict[str, Any]:
        """The memory of the sources, by stream."""
        memories = {stream.name: stream.source.memory for stream in self.streams}
        return {name: dict(memory) for name, memory in memories.items() if memory}

    def inputs(self, ranges: Mapping[str, Range]) -> dict[str, int]:
        """The versions of tables that the rows reflect after these ranges, by input."""
        reflected = {}
        for stream in self.streams:
            if stream.reference.reading is ReadMode.SOURCE:
                continue
            own = stream.ranges_of(ranges)
            if own:
                reflected[reference_key(stream.reference)] = max(r.end for r in own.values()) - 1
        return reflected

    def _largest_range(self, transaction: str) -> int:
        """How many offsets of a partition one commit may take in."""
        for stream in self.streams:
            if stream.partition(transaction) is not None:
                return int(stream.source.largest_range or sys.maxsize)
        return sys.maxsize

    def _prove_not_back(self, transaction: str, start: int, latest: int) -> None:
        """Raise an error if a source that never forgets now ends before the offset already read."""
        if start <= latest:
            return
        for stream in self.streams:
            if stream.partition(transaction) is not None:
                problem = stream.source.stepped_back(start, latest)
                if problem is not None:
                    raise problem


def open_feed(
    lake: Lake,
    project: Project,
    flow: Flow,
    now: Callable[[], Instant],
    node: str,
    is_ours: Callable[[str], bool] = lambda partition: True,
) -> Feed:
    """Open the sources of a flow, with the memory in its last commit."""
    recorded = RecordedStreams(lake.log(flow.target), project.flows_into(flow.target))
    streams: list[Stream] = []
    for named in _named(lake, project, flow, recorded):
        name = named.name
        context = SourceContext(
            flow=name,
            folder=lake.folder,
            storage=lake.storage.inside("files", name.replace("/", ".")),
            now=now,
            node=node,
            memory=recorded.memory(name),
        )
        stream = Stream(named, _source(lake, project, named.claim.reference, context))
        noted = recorded.stream(name)
        stream.identity.epoch = noted.epoch if noted is not None else ""
        streams.append(stream)
    policy = IdentityPolicy.of(project, project.tables[flow.target])
    return Feed(flow, tuple(streams), is_ours, recorded, policy)


def _named(lake: Lake, project: Project, flow: Flow, recorded: RecordedStreams) -> list[Named]:
    """The streams of a flow with their names; all flows into a table are named together."""
    flows = [
        (
            each,
            [r for r in stream_references(project, each) if r.reading is not ReadMode.OTHER],
        )
        for each in project.flows_into(flow.target)
    ]
    return named_streams(flows, lake.folder, recorded, lambda r: _signature(project, r))[flow.name]


def _signature(project: Project, reference: Reference) -> SourceSignature:
    call = reference.source
    return SourceSignature() if call is None else signature_of(call, project.sources)


def _source(lake: Lake, project: Project, reference: Reference, context: SourceContext) -> Source:
    if reference.reading is ReadMode.SOURCE:
        assert reference.source is not None
        return open_source(reference.source, project.sources, context)
    return DeltaSource(lake.log(reference_key(reference)))
