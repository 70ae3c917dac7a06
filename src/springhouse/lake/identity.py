"""Is a source the one whose records the offsets count?

An offset is a number, and a number says nothing about what was counted. So each commit of a flow
writes down what its offsets count, per stream (`FlowNote.streams`):

    reads   what is read, spelled in one way: `read_files:data/orders`
    id      which one it was: the id of the Delta table, of the topic, of the list of files
    epoch   what its transactions are told apart by: springhouse/<name>~<epoch>/<partition>

The name of a stream is kept for as long as it reads the same: however the path is spelled, and
whatever the flow is called. When the id differs, the source was deleted and made anew. That is
refused, or read from its start under an epoch of its own ('springhouse.recreated' = 'read'): the
offsets of the old source are never used for the new one. When a flow reads something else than
before, that is refused, or read from its start ('springhouse.reread' = 'allow').

A commit of an older release says none of this: its source is taken for the right one, unless it is
gone.
"""

import hashlib
import os.path
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from springhouse.errors import SourceError
from springhouse.lake.log import Commit, TableLog
from springhouse.lake.storage import Storage
from springhouse.project.declaration import Flow, Project, Reading, Reference, Table

RECREATED = "springhouse.recreated"
REREAD = "springhouse.reread"
_PATHS = ("read_files", "read_delta")
_NAMED = {"read_files": "path", "read_delta": "path", "read_kafka": "topic"}
_NOT_STREAMS = ("once", "batch")


@dataclass(frozen=True)
class Policy:
    """What to do with a source that was made anew, and with a flow that reads something else."""

    read_recreated: bool = False
    reread: bool = False

    @staticmethod
    def of(project: Project, table: Table) -> "Policy":
        """As the table says, else as the project does."""
        said = {**project.configuration, **table.flow_settings}
        return Policy(said.get(RECREATED) == "read", said.get(REREAD) == "allow")


@dataclass(frozen=True)
class StreamNote:
    """What the offsets of one stream count."""

    reads: str
    id: str = ""
    epoch: str = ""

    def as_json(self) -> dict[str, str]:
        return {"reads": self.reads, "id": self.id, "epoch": self.epoch}

    @staticmethod
    def from_json(value: Mapping[str, str]) -> "StreamNote":
        return StreamNote(value.get("reads", ""), value.get("id", ""), value.get("epoch", ""))


@dataclass
class Settled:
    """Which source a stream was found to read when it was last looked at."""

    id: str | None = None
    epoch: str = ""

    def is_still(self, now: str | None) -> bool:
        """Whether it is the same one; what was not there before has just been made."""
        if self.id is None:
            self.id = now
        return self.id == now


@dataclass
class Recorded:
    """What the commits of a table say about the streams that were read into it."""

    log: TableLog | None = None
    declared: Sequence[Flow] = ()
    _read: tuple[Commit, ...] = ()
    _streams: dict[str, StreamNote] = field(default_factory=dict)
    _epochs: dict[tuple[str, str], str] = field(default_factory=dict)
    _memories: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _ends: dict[str, int] = field(default_factory=dict)
    # The streams of each flow: those of its last commit that names them.
    _of_flow: dict[str, list[str]] = field(default_factory=dict)
    # The loop and a refresh may ask at once.
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def stream(self, name: str) -> StreamNote | None:
        """What the last commit said that read the stream; None if it said nothing."""
        self._catch_up()
        return self._streams.get(name)

    def epoch(self, name: str, source: str) -> str | None:
        """The epoch under which a stream has read a source before; None if it has not."""
        self._catch_up()
        return self._epochs.get((name, source))

    def memory(self, name: str) -> Mapping[str, Any]:
        """What a source wanted to find again."""
        self._catch_up()
        return self._memories.get(name, {})

    def end(self, name: str) -> int:
        """How far a stream was read, in the partition that was read furthest."""
        self._catch_up()
        return self._ends.get(name, 0)

    def is_known(self, name: str) -> bool:
        self._catch_up()
        return name in self._owners

    def owner(self, name: str) -> str | None:
        """The flow that last read a stream."""
        self._catch_up()
        return self._owners.get(name)

    def reading(self, reads: str, flow: str | None) -> list[str]:
        """The streams of a flow that read this; with None, those of flows that are gone."""
        self._catch_up()
        return sorted(
            name
            for name, noted in self._streams.items()
            if noted.reads == reads and self._belongs(name, flow)
        )

    def left_behind(self) -> list[str]:
        """The streams of flows that are not declared any more."""
        self._catch_up()
        return sorted(name for name in self._owners if self._belongs(name, None))

    def replaced(self, flow: str, names: Iterable[str]) -> tuple[list[str], list[str]]:
        """Of a flow's streams, those that are new, and those in whose place they are."""
        self._catch_up()
        now = list(names)
        new = [name for name in now if name not in self._owners]
        own = [name for name in self._of_flow.get(flow, ()) if self._owners[name] == flow]
        gone = [name for name in own if name not in now and not name.endswith("/once")]
        return (new, gone) if new and gone else ([], [])

    def text(self, name: str) -> str:
        """What a stream reads, in words."""
        noted = self._streams.get(name)
        return in_words(noted.reads) if noted is not None else f'"{name.rpartition("/")[2]}"'

    def _belongs(self, name: str, flow: str | None) -> bool:
        owner = self._owners[name]
        if flow is not None:
            return owner == flow
        return owner not in {each.name for each in self.declared}

    def _catch_up(self) -> None:
        with self._lock:
            self._read_new()

    def _read_new(self) -> None:
        commits = tuple(self.log.commits()) if self.log is not None else ()
        count = len(self._read)
        if commits[:count] != self._read:
            # The table was made anew: it knows nothing of what the one before it has read.
            count = 0
            for known in (self._streams, self._epochs, self._memories, self._owners, self._ends):
                known.clear()
            self._of_flow.clear()
        for commit in commits[count:]:
            self._take(commit)
        self._read = commits

    def _take(self, commit: Commit) -> None:
        for transaction, end in commit.transactions.items():
            name = stream_of(transaction)
            if name is not None:
                self._ends[name] = max(self._ends.get(name, 0), end)
        for flow, noted in commit.note.flows.items() if commit.note is not None else ():
            older = [name for each in noted.offsets if (name := stream_of(each)) is not None]
            for name in older:
                self._owners[name] = flow
            for name, value in noted.streams.items():
                stream = StreamNote.from_json(value)
                self._streams[name], self._owners[name] = stream, flow
                self._epochs[name, stream.id] = stream.epoch
            for name, memory in noted.memory.items():
                self._memories[name] = memory
            known = [each for each in self._of_flow.get(flow, []) if each not in older]
            self._of_flow[flow] = list(noted.streams) or [*known, *older]


def stream_of(transaction: str) -> str | None:
    """The name of the stream that a transaction is of; None if it is of something else.

    >>> stream_of("springhouse/orders/read_files.data-1f2e~3a/0")
    'orders/read_files.data-1f2e'
    """
    name, _, partition = transaction.removeprefix("springhouse/").rpartition("/")
    if partition in _NOT_STREAMS or "/" not in name:
        return None
    return re.sub(r"~[^/]*$", "", name)


def canonical(path: str, folder: Path) -> str:
    """One spelling for a path: relative to the project's folder if it is inside it.

    >>> {canonical(each, Path("/p")) for each in ("a/b", "./a/b", "a/b/", "/p/a/b", "file:/p/a/b")}
    {'a/b'}
    >>> canonical("../x", Path("/p")), canonical("s3a://bucket/x/", Path("/p"))
    ('/x', 's3://bucket/x')
    """
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if "://" in path:
        return Storage.at(path).root
    whole = os.path.normpath(folder / path)
    inside = os.path.relpath(whole, folder)
    return whole if inside == ".." or inside.startswith("../") else inside


def reads_of(reference: Reference, folder: Path) -> str:
    """What a stream reads, spelled in one way."""
    call = reference.source
    if call is None:
        if reference.reading is Reading.DELTA_STREAM:
            return f"read_delta:{canonical(reference.name, folder)}"
        return f"table:{reference.name}"
    plugin = call.plugin.lower()
    first = _first_argument(reference)
    if plugin in _PATHS and first is not None:
        first = canonical(first, folder)
    return f"{plugin}:{first or ''}"


def in_words(reads: str) -> str:
    """What is read, as an error calls it."""
    plugin, _, what = reads.partition(":")
    kinds = {
        "table": f'the table "{what}"',
        "read_delta": f'the Delta table "{what}"',
        "read_files": f'the folder "{what}"',
        "read_kafka": f'the topic "{what}"',
    }
    return kinds.get(plugin, f"{plugin}({what!r})" if what else plugin)


def chosen_name(
    flow: Flow,
    reference: Reference,
    folder: Path,
    recorded: Recorded,
    taken: Sequence[str],
) -> str:
    """The name of a stream: the one that it has, else one that says what is read."""
    reads = reads_of(reference, folder)
    for owner in (flow.name, None):
        # What a flow that is gone has read, one with another name goes on with.
        known = [name for name in recorded.reading(reads, owner) if name not in taken]
        if known:
            return known[0]
        slugs = [_slug(spelling) for spelling in _spellings(reference, folder)]
        if owner is not None:
            older = [_unique(f"{owner}/{slug}", taken) for slug in slugs]
        else:
            older = [n for n in recorded.left_behind() if n.rpartition("/")[2] in slugs]
        for name in older:
            # Of a release that did not write down what is read.
            unsaid = recorded.stream(name) is None
            if unsaid and recorded.is_known(name) and name not in taken:
                return name
    others = [n for n in (*taken,) if n]
    fresh = _unique(f"{flow.name}/{_slug(_whole(reference, folder))}", others)
    while recorded.owner(fresh) not in (None, flow.name):
        others = [*others, fresh]
        fresh = _unique(f"{flow.name}/{_slug(_whole(reference, folder))}", others)
    return fresh


def epoch_of(
    flow: Flow, name: str, reads: str, recorded: Recorded, now: str | None, policy: Policy
) -> str:
    """The epoch of a stream whose source is `now` (None: not there); an error if it may not be."""
    noted = recorded.stream(name)
    if noted is None or not noted.id or now is None or now == noted.id:
        return noted.epoch if noted is not None else ""
    if not policy.read_recreated:
        raise refused_source(flow, reads)
    before = recorded.epoch(name, now)
    return before if before is not None else hashlib.sha256(now.encode()).hexdigest()[:8]


def refused_source(flow: Flow, reads: str) -> SourceError:
    """A source is not the one whose records a flow has read."""
    what = in_words(reads)
    problem = f'{what} was deleted and made anew after the flow "{flow.name}" had read it'
    back = "Or put back the one that was read."
    if reads.startswith("read_files:"):
        problem = f'the list of the files that the flow "{flow.name}" has read from {what} is gone'
        back = "Or put back the folder `files` of the storage."
    return SourceError(
        problem,
        where=str(flow.place),
        hint=f'To have the table "{flow.target}" made anew from what is there now: delete its '
        f"folder (tables/{flow.target} in the storage). To keep its rows and read everything that "
        f"is there after them: '{RECREATED}' = 'read' in its TBLPROPERTIES. {back}",
    )


def refused_change(flow: Flow, new: Sequence[str], old: Sequence[str]) -> SourceError:
    """A flow reads something else than it has read until now."""
    return SourceError(
        f'the flow "{flow.name}" reads {" and ".join(new)} now, and has read {" and ".join(old)} '
        f"until now: it would read {' and '.join(new)} from the start, and keep the rows that "
        f'are in "{flow.target}"',
        where=str(flow.place),
        hint=f"If that is meant: `springhouse run --yes`, or '{REREAD}' = 'allow' in TBLPROPERTIES "
        "or in `configuration:`.",
    )


def _first_argument(reference: Reference) -> str | None:
    call = reference.source
    if call is None:
        return None
    if call.arguments:
        return call.arguments[0]
    named = _NAMED.get(call.plugin.lower(), "")
    return next((text for key, text in call.options.items() if key.lower() == named), None)


def _whole(reference: Reference, folder: Path) -> str:
    """What is read as one text, of which a name is made."""
    if reference.source is None:
        if reference.reading is Reading.DELTA_STREAM:
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
    is_path = call.plugin.lower() in _PATHS if call else reference.reading is Reading.DELTA_STREAM
    if is_path and raw:
        one = canonical(raw, folder)
        whole = one if "://" in one else os.path.normpath(folder / one)
        texts = (one, f"./{one}", f"{one}/", f"./{one}/", whole, f"{whole}/")
        found += [f"{head}{text}" for text in texts]
    return list(dict.fromkeys(found))


def _slug(whole: str) -> str:
    """What is read, as a name that a folder may have, and that nothing else has.

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
