"""Is a source the one whose records the offsets count?

An offset is a number, and does not name its source. So each commit of a flow notes, for each
stream, the source that its offsets count (`FlowNote.streams`):

    reads   the source, spelled in one way: `read_files:data/orders`
    id      the incarnation: the id of the Delta table, of the topic, of the list of files
    epoch   a part of the names of its transactions: springhouse/<name>~<epoch>/<partition>

A stream keeps its name as long as it reads the same source. The spelling of the path and the name
of the flow do not matter. If the id differs, the source was deleted and created again. Such a
source is refused, or read from its start under an epoch of its own ('springhouse.recreated' =
'read'): the offsets of the old source never count for the new one. If a flow reads another source
than before, the flow is refused, or reads that source from its start ('springhouse.reread' =
'allow').

A commit of an older release has no such notes: its source counts as the right one, unless it is
gone.
"""

import hashlib
import json
import os.path
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from springhouse.errors import SourceError
from springhouse.lake.delta.commit_entry import Commit
from springhouse.lake.delta.log import TableLog
from springhouse.lake.storage.storage import Storage
from springhouse.project.declarations.declaration import Flow, Project, ReadMode, Reference, Table
from springhouse.project.settings import RECREATED, REREAD

PATHS = ("read_files", "read_delta")
_NAMED = {"read_files": "path", "read_delta": "path", "read_kafka": "topic"}
_NOT_STREAMS = ("once", "batch")
_ALWAYS = ("reads", "id", "epoch")


@dataclass(frozen=True)
class IdentityPolicy:
    """Whether a flow may read a source that was created again, or another source than before."""

    read_recreated: bool = False
    reread: bool = False

    @staticmethod
    def of(project: Project, table: Table) -> "IdentityPolicy":
        """The settings of the table, or else of the project."""
        said = {**project.configuration, **table.flow_settings}
        return IdentityPolicy(RECREATED.read(said) == "read", REREAD.read(said) == "allow")


@dataclass(frozen=True)
class StreamNote:
    """The source that the offsets of one stream count."""

    reads: str
    id: str = ""
    epoch: str = ""
    # These distinguish streams that read the same source (`stream_names`).
    given: str = ""
    query: str = ""
    # The fingerprint of the last record, by partition, as JSON.
    marks: str = ""

    @property
    def last_marks(self) -> dict[str, str]:
        """The fingerprint of the last record, by partition."""
        return dict(json.loads(self.marks)) if self.marks else {}

    def as_json(self) -> dict[str, str]:
        return {name: text for name, text in vars(self).items() if text or name in _ALWAYS}

    @staticmethod
    def from_json(value: Mapping[str, str]) -> "StreamNote":
        known = {field.name for field in fields(StreamNote)}
        return StreamNote(**{"reads": "", **{k: v for k, v in value.items() if k in known}})


@dataclass
class SourceIdentity:
    """The source of a stream at the last look-up: its incarnation, and the epoch."""

    id: str | None = None
    epoch: str = ""

    def is_still(self, now: str | None) -> bool:
        """Whether it is the same source; a source that did not exist before was just created."""
        if self.id is None:
            self.id = now
        return self.id == now


@dataclass
class RecordedStreams:
    """The notes in the commits of a table about the streams that were read into it."""

    log: TableLog | None = None
    declared: Sequence[Flow] = ()
    _read: tuple[Commit, ...] = ()
    _streams: dict[str, StreamNote] = field(default_factory=dict)
    _epochs: dict[tuple[str, str], str] = field(default_factory=dict)
    _memories: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _ends: dict[str, int] = field(default_factory=dict)
    # The streams of each flow, from its last commit that names them.
    _of_flow: dict[str, list[str]] = field(default_factory=dict)
    # The loop and a refresh may call at the same time.
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def stream(self, name: str) -> StreamNote | None:
        """The note of the last commit that read the stream; None if it has none."""
        self._catch_up()
        return self._streams.get(name)

    def epoch(self, name: str, source: str) -> str | None:
        """The epoch under which a stream read the source with this id before; None if never."""
        self._catch_up()
        return self._epochs.get((name, source))

    def memory(self, name: str) -> Mapping[str, Any]:
        """The memory of a source (`Source.memory`)."""
        self._catch_up()
        return self._memories.get(name, {})

    def end(self, name: str) -> int:
        """The highest offset that was read of a stream, over all its partitions."""
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
        """The streams of a flow that read this source; with None, streams of removed flows."""
        self._catch_up()
        return sorted(
            name
            for name, noted in self._streams.items()
            if noted.reads == reads and self._belongs(name, flow)
        )

    def reading_at_all(self, reads: str) -> list[str]:
        """The streams of all flows that read this source, including removed flows."""
        self._catch_up()
        return sorted(name for name, noted in self._streams.items() if noted.reads == reads)

    def left_behind(self) -> list[str]:
        """The streams of flows that are no longer declared."""
        self._catch_up()
        return sorted(name for name in self._owners if self._belongs(name, None))

    def replaced(self, flow: str, names: Iterable[str]) -> tuple[list[str], list[str]]:
        """The new streams of a flow, and its old streams that they replace."""
        self._catch_up()
        now = list(names)
        new = [name for name in now if name not in self._owners]
        own = [name for name in self._of_flow.get(flow, ()) if self._owners[name] == flow]
        gone = [name for name in own if name not in now and not name.endswith("/once")]
        return (new, gone) if new and gone else ([], [])

    def text(self, name: str) -> str:
        """The source of a stream, in the words of an error."""
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
            # The table was created again: the streams of the old table are not its own.
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
            older = [name for app in noted.offsets if (name := stream_of(app)) is not None]
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
    """The name of the stream that a transaction counts; None if it counts no stream.

    >>> stream_of("springhouse/orders/read_files.data-1f2e~3a/0")
    'orders/read_files.data-1f2e'
    """
    name, _, partition = transaction.removeprefix("springhouse/").rpartition("/")
    if partition in _NOT_STREAMS or "/" not in name:
        return None
    return re.sub(r"~[^/]*$", "", name)


def canonical(path: str, folder: Path) -> str:
    """One spelling for a path: relative to the project's folder if the path is inside it.

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
    """The source of a stream, in one spelling."""
    call = reference.source
    if call is None:
        if reference.reading is ReadMode.DELTA_STREAM:
            return f"read_delta:{canonical(reference.name, folder)}"
        return f"table:{reference.name}"
    plugin = call.plugin.lower()
    first = first_argument(reference)
    if plugin in PATHS and first is not None:
        first = canonical(first, folder)
    return f"{plugin}:{first or ''}"


def in_words(reads: str) -> str:
    """A source, in the words of an error."""
    plugin, _, what = reads.partition(":")
    kinds = {
        "table": f'the table "{what}"',
        "read_delta": f'the Delta table "{what}"',
        "read_files": f'the folder "{what}"',
        "read_kafka": f'the topic "{what}"',
    }
    return kinds.get(plugin, f"{plugin}({what!r})" if what else plugin)


def epoch_of(
    flow: Flow,
    name: str,
    reads: str,
    recorded: RecordedStreams,
    now: str | None,
    policy: IdentityPolicy,
) -> str:
    """The epoch of a stream whose source has the id `now` (None: no source), or an error."""
    noted = recorded.stream(name)
    if noted is None or not noted.id or now is None or now == noted.id:
        return noted.epoch if noted is not None else ""
    if not policy.read_recreated:
        raise recreated_error(flow, reads)
    before = recorded.epoch(name, now)
    return before if before is not None else hashlib.sha256(now.encode()).hexdigest()[:8]


def recreated_error(flow: Flow, reads: str) -> SourceError:
    """The error for a source that was deleted and created again."""
    what = in_words(reads)
    problem = f'{what} was deleted and created again after the flow "{flow.name}" had read it'
    back = "Or put back the one that was read."
    if reads.startswith("read_files:"):
        problem = f'the list of the files that the flow "{flow.name}" has read from {what} is gone'
        back = "Or put back the folder `files` of the storage."
    return SourceError(
        problem,
        where=str(flow.place),
        hint=f'To create the table "{flow.target}" again from the present source: delete its '
        f"folder (tables/{flow.target} in the storage). To keep its rows and add all rows of the "
        f"present source: '{RECREATED.key}' = 'read' in its TBLPROPERTIES. {back}",
    )


def older_copy_error(flow: Flow, reads: str, where: str) -> SourceError:
    """The error for an older copy of the source that a flow has read."""
    what = in_words(reads)
    if reads.startswith("read_files:"):
        what = f"the list of the files that were read from {what}"
    return SourceError(
        f'{what} does not have the last record that the flow "{flow.name}" has read: an older copy '
        "of it was put in its place",
        where=where,
        hint=f'Put back the newer one; or delete the folder of the table "{flow.target}" '
        f"(tables/{flow.target} in the storage): the next run creates the table again.",
    )


def other_source_error(flow: Flow, new: Sequence[str], old: Sequence[str]) -> SourceError:
    """The error for a flow that reads another source than before."""
    old = [f"{each} with other arguments" if each in new else each for each in old]
    return SourceError(
        f'the flow "{flow.name}" reads {" and ".join(new)} now, and has read {" and ".join(old)} '
        f"until now: it would read {' and '.join(new)} from the start, and keep the rows that "
        f'are in "{flow.target}"',
        where=str(flow.place),
        hint=f"If you want that: `springhouse run --yes`, or '{REREAD.key}' = 'allow' in "
        "TBLPROPERTIES or in `configuration:`.",
    )


def doubtful_flow_error(flow: Flow, reads: str, others: Sequence[str]) -> SourceError:
    """The error for a flow that may continue one of several removed flows."""
    what, names = in_words(reads), " or ".join(f'"{name}"' for name in others)
    return SourceError(
        f'the flow "{flow.name}" reads {what}, as the flow {names} did, which this project does '
        "not declare any more: the offset from which it continues is not clear",
        where=str(flow.place),
        hint="If flows were renamed: rename one at a time, or leave their queries as they were, "
        f"and run in between. To read {what} from the start: `springhouse run --yes`, or "
        f"'{REREAD.key}' = 'allow' in TBLPROPERTIES or in `configuration:`.",
    )


def first_argument(reference: Reference) -> str | None:
    """The first argument of a call: for a built-in source, its path or topic."""
    call = reference.source
    if call is None:
        return None
    if call.arguments:
        return call.arguments[0]
    named = _NAMED.get(call.plugin.lower(), "")
    return next((text for key, text in call.options.items() if key.lower() == named), None)
