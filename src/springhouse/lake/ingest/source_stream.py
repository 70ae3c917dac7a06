"""Is the source of a stream still the one whose records the offsets count?

A `Stream` is one source that the query of a flow reads. Each look-up of its end compares the
identity of the source with the identity in the last commit (`identity`). A source that was deleted
and created again is refused, or read from its start under an epoch of its own. An older copy in the
place of the source lacks the record with the last mark, and is refused.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from springhouse.errors import CommitConflict
from springhouse.lake.ingest.identity import (
    IdentityPolicy,
    RecordedStreams,
    SourceIdentity,
    StreamNote,
    epoch_of,
    older_copy_error,
    recreated_error,
)
from springhouse.lake.ingest.stream_names import Named
from springhouse.lake.sources.source import Range, Source
from springhouse.project.declarations.declaration import Flow, Reference


@dataclass(frozen=True)
class Stream:
    """One stream that a flow reads: its name and place in the query, and the source behind it."""

    named: Named
    source: Source
    # The source that the offsets count; each look-up of the stream's end looks it up again.
    identity: SourceIdentity = field(default_factory=SourceIdentity, compare=False)

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
        epoch = f"~{self.identity.epoch}" if self.identity.epoch else ""
        return f"springhouse/{self.name}{epoch}/{partition}"

    def partition(self, transaction: str) -> str | None:
        """The partition of a transaction of this stream, in any epoch; else None."""
        match = re.fullmatch(rf"springhouse/{re.escape(self.name)}(~[^/]*)?/(.*)", transaction)
        return match[2] if match else None

    def ranges_of(self, ranges: Mapping[str, Range]) -> dict[str, Range]:
        """This stream's part of the ranges by transaction, as ranges by partition."""
        return {
            partition: offsets
            for transaction, offsets in ranges.items()
            if (partition := self.partition(transaction)) is not None
        }

    def identify(self, flow: Flow, recorded: RecordedStreams, policy: IdentityPolicy) -> None:
        """Look up the identity of the source; an error if the flow may not read it."""
        source = self.source
        if source.reads_recreated:
            policy = replace(policy, read_recreated=True)
        now = source.incarnation()
        is_lost = now is None and source.must_be_there
        if is_lost and recorded.end(self.name):
            if not policy.read_recreated:
                raise recreated_error(flow, self.reads)
            source.begin_anew()
            now = source.incarnation()
        epoch = epoch_of(flow, self.name, self.reads, recorded, now, policy)
        noted = recorded.stream(self.name)
        if noted is not None and noted.id and now != noted.id:
            source.begin_anew()
        self.identity.id, self.identity.epoch = now, epoch
        marks = self._marks(recorded).values()
        if now is not None and not all(map(source.has_mark, marks)):
            raise older_copy_error(flow, self.reads, str(flow.place))

    def identity_problems(self, flow: Flow, recorded: RecordedStreams) -> Iterator[str]:
        """The reasons why the offsets count another source; this check changes nothing."""
        noted, now = recorded.stream(self.name), self.source.incarnation()
        if now is None:
            if self.source.must_be_there and recorded.end(self.name):
                yield recreated_error(flow, self.reads).problem
        elif noted is not None and noted.id:
            if now != noted.id:
                yield recreated_error(flow, self.reads).problem
            elif not all(map(self.source.has_mark, noted.last_marks.values())):
                yield older_copy_error(flow, self.reads, "").problem

    def prove_same(self) -> None:
        """Raise an error if the source was created again since its identity was looked up."""
        if not self.identity.is_still(self.source.incarnation()):
            raise CommitConflict("the source was created again while it was read", where=self.reads)

    def note(self, recorded: RecordedStreams, ranges: Mapping[str, Range]) -> StreamNote:
        """The note about the stream in the commit of these ranges."""
        marks = {p: self.source.mark(offsets.end) for p, offsets in self.ranges_of(ranges).items()}
        known = {partition: mark for partition, mark in marks.items() if mark is not None}
        return self.named.note(self.identity.id, self.identity.epoch, self._marks(recorded) | known)

    def _marks(self, recorded: RecordedStreams) -> dict[str, str]:
        """The fingerprint of the last record that was read, by partition."""
        noted = recorded.stream(self.name)
        if noted is None or noted.id != (self.identity.id or ""):
            return {}
        return noted.last_marks
