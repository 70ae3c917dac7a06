"""Which stream of a flow is which, when names, queries and options change?

A stream keeps its name, and so its offsets, as long as it reads the same source. Often several
streams into one table read the same source: two arms of a UNION read files of one folder by
different patterns, or two flows split one topic. So each commit also notes the differences between
these streams (`StreamNote`):

    given   the arguments and options of the call, hashed
    query   the query of the flow, hashed

All streams into a table are named together, so that no two streams continue at the same offsets. A
declared stream gets the name of the first stream in this list that exists:

    1. the flow's own stream, if query and call have not changed
    2. the stream with this query and call, of a flow that was removed or has changed places
    3. the flow's own stream with the most similar call
    4. the only stream of removed flows, if no other stream can be its successor
    5. a new stream

If rule 4 has several answers, the flow is refused, or reads from the start if the user allows that.
"""

import hashlib
import json
import os.path
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from springhouse.lake.ingest.identity import (
    PATHS,
    RecordedStreams,
    StreamNote,
    canonical,
    first_argument,
    reads_of,
)
from springhouse.lake.sources.source_registry import SourceSignature
from springhouse.project.declarations.declaration import (
    CdcFlow,
    Flow,
    ReadMode,
    Reference,
    SqlQuery,
)


@dataclass(frozen=True, eq=False)
class Claim:
    """A declared stream without a name yet."""

    flow: str
    reference: Reference
    reads: str
    given: Mapping[str, str]
    query: str
    # The arguments that identify the source; None: all of them.
    fixed: tuple[str, ...] | None = ()

    def may_be(self, noted: StreamNote) -> bool:
        """Whether the note can be about the same source; older releases noted less."""
        if noted.reads != self.reads or not noted.given:
            return noted.reads == self.reads
        before = _parts(noted.given)
        if self.fixed is None:
            return before == self.given
        return all(before.get(name) == self.given.get(name) for name in self.fixed)

    def is_exactly(self, noted: StreamNote) -> bool:
        """Whether source, call and query have not changed."""
        same = noted.reads == self.reads and noted.query == self.query
        return same and bool(self.query) and _parts(noted.given) == self.given

    def likeness(self, noted: StreamNote) -> int:
        """The number of unchanged arguments, minus the number of changed ones."""
        before, now = set(_parts(noted.given).items()), set(self.given.items())
        return 2 * len(before & now) - len(before ^ now)


@dataclass(frozen=True)
class Named:
    """The name of a stream. It may continue one of the `doubtful` flows, which were removed."""

    name: str
    claim: Claim
    doubtful: tuple[str, ...] = ()

    def note(self, id: str | None, epoch: str, marks: Mapping[str, str]) -> StreamNote:
        """The note of a commit about the stream."""
        given, marked = (json.dumps(each) if each else "" for each in (self.claim.given, marks))
        return StreamNote(self.claim.reads, id or "", epoch, given, self.claim.query, marked)


def named_streams(
    flows: Sequence[tuple[Flow, Sequence[Reference]]],
    folder: Path,
    recorded: RecordedStreams,
    signature_of: Callable[[Reference], SourceSignature] = lambda reference: SourceSignature(),
) -> dict[str, list[Named]]:
    """The streams into a table with their names, by flow, in the order of the query."""
    naming = _Naming(
        [claim for each in flows for claim in _claims(*each, folder, signature_of)],
        folder,
        recorded,
    )
    naming.run()
    found: dict[str, list[Named]] = {flow.name: [] for flow, _ in flows}
    for claim in naming.claims:
        found[claim.flow].append(naming.named[claim])
    return found


@dataclass
class _Naming:
    """Assigns names, the most certain first; each name is assigned once."""

    claims: Sequence[Claim]
    folder: Path
    recorded: RecordedStreams
    named: dict[Claim, Named] = field(default_factory=dict)

    def run(self) -> None:
        self._unchanged()
        self._moved()
        self._most_alike()
        self._of_older_releases(self._own_of_older_releases)
        doubtful = dict(self._left_behind())
        self._of_older_releases(self._left_by_older_releases)
        for claim in self._unnamed():
            self._take(claim, self._fresh(claim), doubtful.get(claim, ()))

    def _unnamed(self) -> list[Claim]:
        return [claim for claim in self.claims if claim not in self.named]

    def _take(self, claim: Claim, name: str, doubtful: tuple[str, ...] = ()) -> None:
        self.named[claim] = Named(name, claim, doubtful)

    def _free(self, names: Iterable[str]) -> list[str]:
        taken = {each.name for each in self.named.values()}
        return [name for name in names if name not in taken]

    def _own(self, claim: Claim) -> dict[str, StreamNote]:
        """The flow's own streams that may be this one."""
        return self._noted(claim, self.recorded.reading(claim.reads, claim.flow))

    def _noted(self, claim: Claim, names: Iterable[str]) -> dict[str, StreamNote]:
        found = {name: self.recorded.stream(name) for name in self._free(names)}
        return {name: each for name, each in found.items() if each and claim.may_be(each)}

    def _unchanged(self) -> None:
        for claim in self.claims:
            same = [name for name, each in self._own(claim).items() if claim.is_exactly(each)]
            if same:
                self._take(claim, same[0])

    def _moved(self) -> None:
        """Continue streams of removed flows, and of flows that continue other flows' streams."""
        unnamed = {claim: self._with_this_query(claim) for claim in self._unnamed()}
        for claim, names in unnamed.items():
            for name in self._free(names):
                owner = self.recorded.owner(name)
                its = [each for each in self.claims if each.flow == owner]
                if all(unnamed.get(each) for each in its if each.reads == claim.reads):
                    self._take(claim, name)
                    break

    def _with_this_query(self, claim: Claim) -> list[str]:
        """The streams of other flows with exactly this query and this call."""
        noted = self._noted(claim, self.recorded.reading_at_all(claim.reads))
        return [
            name
            for name, each in noted.items()
            if claim.is_exactly(each) and self.recorded.owner(name) != claim.flow
        ]

    def _most_alike(self) -> None:
        unnamed = self._unnamed()
        pairs = [
            (-claim.likeness(noted), place, name, claim)
            for place, claim in enumerate(unnamed)
            for name, noted in self._own(claim).items()
        ]
        for _, _, name, claim in sorted(pairs, key=lambda pair: pair[:3]):
            if claim not in self.named and self._free([name]):
                self._take(claim, name)

    def _left_behind(self) -> Iterator[tuple[Claim, tuple[str, ...]]]:
        """Continue a removed flow, if only one is possible; else return the possible flows."""
        wanted: dict[Claim, list[str]] = {}
        for claim in self._unnamed():
            left = list(self._noted(claim, self.recorded.reading(claim.reads, None)))
            if left:
                wanted[claim] = left
        for claim, left in wanted.items():
            rivals = [each for each, its in wanted.items() if set(its) & set(left)]
            if len(left) == 1 and len(rivals) == 1:
                self._take(claim, left[0])
            else:
                yield claim, tuple(sorted({self.recorded.owner(name) or "" for name in left}))

    def _of_older_releases(self, candidates: Callable[[Claim], Iterable[str]]) -> None:
        """Continue streams of a release that did not note the source, by the stream's name."""
        for claim in self._unnamed():
            for name in self._free(candidates(claim)):
                if self.recorded.stream(name) is None and self.recorded.is_known(name):
                    self._take(claim, name)
                    break

    def _own_of_older_releases(self, claim: Claim) -> Iterator[str]:
        taken = [each.name for each in self.named.values()]
        for spelling in _spellings(claim.reference, self.folder):
            yield _unique(f"{claim.flow}/{_slug(spelling)}", taken)

    def _left_by_older_releases(self, claim: Claim) -> list[str]:
        slugs = [_slug(spelling) for spelling in _spellings(claim.reference, self.folder)]
        left = self.recorded.left_behind()
        return [name for name in left if name.rpartition("/")[2] in slugs]

    def _fresh(self, claim: Claim) -> str:
        wanted = f"{claim.flow}/{_slug(_whole(claim.reference, self.folder))}"
        others = [each.name for each in self.named.values()]
        while self.recorded.is_known(fresh := _unique(wanted, others)):
            others.append(fresh)
        return fresh


def _claims(
    flow: Flow,
    references: Sequence[Reference],
    folder: Path,
    signature_of: Callable[[Reference], SourceSignature],
) -> Iterator[Claim]:
    query = ""
    if isinstance(flow, CdcFlow):
        query = _mark(f"{flow.source.name} {flow.keys} {flow.scd_type}")
    elif isinstance(flow.query, SqlQuery):
        # The fingerprint of a function changes with every change to its file.
        query = _mark(" ".join(flow.query.text.split()))
    for reference in references:
        signature = signature_of(reference)
        given = _given(reference, signature.parameters)
        reads = reads_of(reference, folder)
        yield Claim(flow.name, reference, reads, given, query, signature.fixed)


def _given(reference: Reference, parameters: Sequence[str]) -> dict[str, str]:
    """The arguments of a call by name or position, hashed: an option may be a password."""
    call = reference.source
    if call is None:
        return {}
    first = first_argument(reference)
    is_path = call.plugin.lower() in PATHS
    names = [*parameters, *map(str, range(len(parameters), len(call.arguments)))]
    texts = dict(zip(names, call.arguments, strict=False))
    texts |= {name.lower(): text for name, text in call.options.items()}
    # A path has many spellings; `reads` already has it in one spelling.
    return {n: _mark(text) for n, text in sorted(texts.items()) if not (is_path and text == first)}


def _parts(given: str) -> dict[str, str]:
    return dict(json.loads(given)) if given else {}


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _whole(reference: Reference, folder: Path) -> str:
    """The source as one text, the basis of a name."""
    if reference.source is None:
        if reference.reading is ReadMode.DELTA_STREAM:
            return canonical(reference.name, folder)
        return reference.name
    plugin, _, what = reads_of(reference, folder).partition(":")
    del plugin
    return ".".join([reference.source.plugin, what] if what else [reference.source.plugin])


def _spellings(reference: Reference, folder: Path) -> list[str]:
    """The texts from which older releases may have made the name of the stream."""
    call = reference.source
    if call is None:
        head, raw = "", reference.name
    else:
        head, raw = f"{call.plugin}.", (call.arguments[0] if call.arguments else "")
    found = [f"{head}{raw}" if raw else head.rstrip("."), _whole(reference, folder)]
    is_path = call.plugin.lower() in PATHS if call else reference.reading is ReadMode.DELTA_STREAM
    if is_path and raw:
        one = canonical(raw, folder)
        whole = one if "://" in one else os.path.normpath(folder / one)
        texts = (one, f"./{one}", f"{one}/", f"./{one}/", whole, f"{whole}/")
        found += [f"{head}{text}" for text in texts]
    return list(dict.fromkeys(found))


def _slug(whole: str) -> str:
    """A unique name for a source that is also a valid folder name.

    >>> _slug("read_files.data/orders")
    'read_files.data.orders-42a0'
    """
    readable = re.sub(r"[^A-Za-z0-9_]+", ".", whole).strip(".").lower()[:60]
    return f"{readable}-{hashlib.sha256(whole.encode()).hexdigest()[:4]}"


def _unique(name: str, taken: Sequence[str]) -> str:
    if name not in taken:
        return name
    count = 2
    while f"{name}.{count}" in taken:
        count += 1
    return f"{name}.{count}"
