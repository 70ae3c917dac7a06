"""How far has each flow read, and what is there to read?

A `Feed` is the sources behind one flow, opened once and kept. Where a flow stands is not kept here:
it is the version of a transaction in the Delta log of the flow's target, one per source partition,
written in the same commit as the rows. So it can't disagree with the rows, whoever wrote them last.

The name of a transaction comes from what is read, not from where it stands in the query: a user may
reorder a UNION without reading everything again. `lake.identity` says which name that is, and what
happens when a source is another one than the one that the offsets count.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from springhouse.errors import CommitConflict, SpringhouseError
from springhouse.lake.delta.requirements import Requirement
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.ingest.identity import (
    IdentityPolicy,
    RecordedStreams,
    Settled,
    StreamNote,
    epoch_of,
    in_words,
    refused_change,
    refused_copy,
    refused_doubt,
    refused_source,
)
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
class Stream:
    """One stream that a flow reads: where the query names it, and the source behind it."""

    named: Named
    source: Source
    # Which source the offsets count: settled whenever its end is asked for.
    settled: Settled = field(default_factory=Settled, compare=False)

    @property
    def name(self) -> str:
        return self.named.name

    @property
    def reference(self) -> Reference:
        return self.named.claim.reference

    @property
    def reads(self) -> str:
        return self.named.claim.reads

    def transaction(self, partition: str) -> str:
        epoch = f"~{self.settled.epoch}" if self.settled.epoch else ""
        return f"springhouse/{self.name}{epoch}/{partition}"

    def partition(self, transaction: str) -> str | None:
        """The partition that a transaction of this stream is of, whatever its epoch; else None."""
        found = re.fullmatch(rf"springhouse/{re.escape(self.name)}(~[^/]*)?/(.*)", transaction)
        return found[2] if found else None


@dataclass(frozen=True)
class Feed:
    """The streams of one flow."""

    flow: Flow
    streams: tuple[Stream, ...]
    # Which of their partitions are ours to read: all of them, unless nodes share the work.
    is_ours: Callable[[str], bool] = lambda partition: True
    recorded: RecordedStreams = field(default_factory=RecordedStreams)
    policy: IdentityPolicy = field(default_factory=IdentityPolicy)

    def latest(self) -> dict[str, int]:
        """The end of what can be read now, by transaction; an error if it is not what it was."""
        self._settle()
        once = {self._once: 1} if self.flow.once else {}
        return once | {
            stream.transaction(partition): end
            for stream in self.streams
            for partition, end in stream.source.latest().items()
        }

    def admit(self, requires: Sequence[Requirement] = ()) -> None:
        """Give what was found its offsets for good: done by who refreshes, not by who asks."""
        for stream in self.streams:
            stream.source.admit_under(requires)

    @property
    def _once(self) -> str:
        return f"springhouse/{self.flow.name}/once"

    def _has_run(self, table: TableVersion) -> bool:
        """Whether a flow that runs once did, perhaps under another name."""
        return bool(table.offset(self._once) or self.recorded.reading(self._once_reads, None))

    @property
    def _once_reads(self) -> str:
        """What a flow that runs once does, whatever it is called."""
        query = self.flow.query if isinstance(self.flow, AppendFlow) else None
        text = query.text if isinstance(query, SqlQuery) else getattr(query, "fingerprint", "")
        return f"once:{hashlib.sha256(' '.join(text.split()).encode()).hexdigest()[:16]}"

    def horizon(self) -> dict[str, int]:
        """The ends of what comes from outside the warehouse: what is inside still moves with it."""
        outside = [s for s in self.streams if s.reference.reading is ReadMode.SOURCE]
        return {
            name: end
            for name, end in self.latest().items()
            if any(stream.partition(name) is not None for stream in outside)
        }

    def unread(self) -> list[str]:
        """What the flow would read from the start, though it has read something else until now."""
        new, _ = self.recorded.replaced(self.flow.name, [stream.name for stream in self.streams])
        return [
            in_words(stream.reads)
            for stream in self.streams
            if stream.name in new or self._is_doubtful(stream)
        ]

    def _is_doubtful(self, stream: Stream) -> bool:
        return bool(stream.named.doubtful) and not self.recorded.is_known(stream.name)

    def _settle(self) -> None:
        """Find out whether each source is the one that the offsets count."""
        names = [stream.name for stream in self.streams]
        _, gone = self.recorded.replaced(self.flow.name, names)
        if gone and not self.policy.reread:
            raise refused_change(self.flow, self.unread(), list(map(self.recorded.text, gone)))
        for stream in self.streams:
            if self._is_doubtful(stream) and not self.policy.reread:
                raise refused_doubt(self.flow, stream.reads, stream.named.doubtful)
            self._settle_one(stream)

    def _settle_one(self, stream: Stream) -> None:
        source, policy = stream.source, self.policy
        if source.reads_recreated:
            policy = replace(policy, read_recreated=True)
        now = source.incarnation()
        lost = now is None and source.must_be_there
        if lost and self.recorded.end(stream.name):
            if not policy.read_recreated:
                raise refused_source(self.flow, stream.reads)
            source.begin_anew()
            now = source.incarnation()
        epoch = epoch_of(self.flow, stream.name, stream.reads, self.recorded, now, policy)
        noted = self.recorded.stream(stream.name)
        if noted is not None and noted.id and now != noted.id:
            source.begin_anew()
        stream.settled.id, stream.settled.epoch = now, epoch
        for mark in self._marks(stream).values():
            if now is not None and not source.has_mark(mark):
                raise refused_copy(self.flow, stream.reads, str(self.flow.place))

    def astray(self) -> Iterator[str]:
        """In what the sources are not those that the offsets count; nothing is changed."""
        for stream in self.streams:
            try:
                yield from self._astray(stream)
            except SpringhouseError as error:
                yield error.problem

    def _astray(self, stream: Stream) -> Iterator[str]:
        source, noted = stream.source, self.recorded.stream(stream.name)
        if self.policy.read_recreated:
            return
        now = source.incarnation()
        lost = now is None and source.must_be_there
        other = noted is not None and noted.id and now is not None and now != noted.id
        if other or (lost and self.recorded.end(stream.name)):
            yield refused_source(self.flow, stream.reads).problem
        elif now is not None and noted is not None and noted.id and noted.marks:
            missing = [m for m in json.loads(noted.marks).values() if not source.has_mark(m)]
            if missing:
                yield refused_copy(self.flow, stream.reads, "").problem

    def _marks(self, stream: Stream) -> dict[str, str]:
        """What the last record that was read of each partition is known by."""
        noted = self.recorded.stream(stream.name)
        if noted is None or not noted.marks or noted.id != (stream.settled.id or ""):
            return {}
        return dict(json.loads(noted.marks))

    def _marks_with(self, stream: Stream, ranges: Mapping[str, Range]) -> dict[str, str]:
        """The same, once these ranges are read."""
        own = {p: stream.source.mark(r.end) for p, r in self._own(stream, ranges).items()}
        return self._marks(stream) | {p: each for p, each in own.items() if each is not None}

    def noted(self, ranges: Mapping[str, Range]) -> dict[str, Mapping[str, str]]:
        """Which sources the offsets of these ranges count; an error if they changed meanwhile."""
        for stream in self.streams:
            own = self._own(stream, ranges)
            if not own:
                continue
            if not stream.settled.is_still(stream.source.incarnation()):
                raise CommitConflict(
                    "the source was made anew while it was read", where=stream.reads
                )
            stream.source.sync(own)
        once: dict[str, Mapping[str, str]] = {}
        if self.flow.once:
            once[f"{self.flow.name}/once"] = StreamNote(self._once_reads).as_json()
        return once | {
            stream.name: stream.named.note(
                stream.settled.id, stream.settled.epoch, self._marks_with(stream, ranges)
            ).as_json()
            for stream in self.streams
        }

    def behind(
        self, table: TableVersion | None, until: Mapping[str, int] | None = None
    ) -> dict[str, Range]:
        """What can be read, up to `until`, and is not in the table yet, by transaction."""
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
        """Whether any of what `behind` told is all that one commit may take in of what waits."""
        return any(
            given.end - given.start >= self._largest_range(transaction)
            for transaction, given in ranges.items()
        )

    def read(
        self,
        session: "SparkSession",
        ranges: Mapping[str, Range],
        scans: RemoteScans | None = None,
    ) -> "dict[Reference, DataFrame]":
        """The rows of these ranges, by where the query names them; none for other streams.

        Bad ones need not say why (`read_why` does), if the source can spare itself that. `scans`
        remembers the files of Delta tables that a remote engine reads.
        """
        rows: dict[Reference, DataFrame] = {}
        for stream in self.streams:
            source, own = stream.source, self._own(stream, ranges)
            if isinstance(source, DeltaSource):
                rows[stream.reference] = source.read(session, own, scans)
            else:
                rows[stream.reference] = source.glance(session, own)
        return rows

    def read_why(
        self, session: "SparkSession", reference: Reference, ranges: Mapping[str, Range]
    ) -> "DataFrame":
        """The rows of one stream once more, where every bad one says why it is bad."""
        stream = next(stream for stream in self.streams if stream.reference == reference)
        return stream.source.read(session, self._own(stream, ranges))

    def size(self, ranges: Mapping[str, Range]) -> int:
        """How many bytes the ranges hold, as far as the sources know."""
        own = [(stream.source, self._own(stream, ranges)) for stream in self.streams]
        return sum(int(source.size(given)) for source, given in own if given)

    def partition_of(self, transaction: str) -> str:
        """The partition of the one stream that a transaction is of."""
        (stream,) = self.streams
        partition = stream.partition(transaction)
        assert partition is not None
        return partition

    def transaction_of(self, partition: str) -> str:
        """The transaction of a partition of the one stream."""
        (stream,) = self.streams
        return stream.transaction(partition)

    def identity(self, ranges: Mapping[str, Range]) -> object | None:
        """What is equal for two feeds of one source exactly if the records are; None: who knows."""
        (stream,) = self.streams
        own = self._own(stream, ranges)
        identity = stream.source.identity(own)
        return None if identity is None else (own.keys(), identity)

    def learn_from(self, other: "Feed") -> None:
        """Remember what another feed of the same source learned when it read for both."""
        (own,), (read,) = self.streams, other.streams
        if read.source.memory is not None and own.source.memory is not None:
            own.source.memory.update(read.source.memory)

    def warnings(self) -> list[str]:
        """What the sources say that looks wrong, and is no error."""
        return [text for stream in self.streams if (text := stream.source.warning)]

    @contextmanager
    def keeping_memory(self) -> Iterator[None]:
        """What the sources learn inside is forgotten again if it fails: no commit has it."""
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
        """What the sources want to find again next time."""
        memories = {stream.name: stream.source.memory for stream in self.streams}
        return {name: dict(memory) for name, memory in memories.items() if memory}

    def inputs(self, ranges: Mapping[str, Range]) -> dict[str, int]:
        """The versions of tables that are reflected once these ranges are read, by input."""
        reflected = {}
        for stream in self.streams:
            if stream.reference.reading is ReadMode.SOURCE:
                continue
            own = self._own(stream, ranges)
            if own:
                reflected[reference_key(stream.reference)] = max(r.end for r in own.values()) - 1
        return reflected

    def _largest_range(self, transaction: str) -> int:
        """How many offsets one commit may take in: a source that says nothing sets no limit."""
        for stream in self.streams:
            if stream.partition(transaction) is not None:
                return int(stream.source.largest_range or sys.maxsize)
        return sys.maxsize

    def _own(self, stream: Stream, ranges: Mapping[str, Range]) -> dict[str, Range]:
        return {
            partition: given
            for transaction, given in ranges.items()
            if (partition := stream.partition(transaction)) is not None
        }

    def _prove_not_back(self, transaction: str, start: int, latest: int) -> None:
        """An error if a source that never forgets ends before what was read of it."""
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
    """Open the sources of a flow, with what its last commit remembered."""
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
        stream.settled.epoch = noted.epoch if noted is not None else ""
        streams.append(stream)
    policy = IdentityPolicy.of(project, project.tables[flow.target])
    return Feed(flow, tuple(streams), is_ours, recorded, policy)


def _named(lake: Lake, project: Project, flow: Flow, recorded: RecordedStreams) -> list[Named]:
    """The streams of a flow with the names that all flows into its table are given together."""
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
