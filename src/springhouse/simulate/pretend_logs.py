"""What is a Delta log in a pretend world?

A `PretendLog` answers the planner's questions to a Delta log, from the commits of a pretend world.
A commit has a version, a moment, and a note of what it did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from springhouse.planner.provenance import Channel, Provenance
from springhouse.units import Instant


@dataclass(frozen=True)
class PretendNote:
    """The note of a pretend refresh: a `planner.logs.PastRefresh`."""

    kind: str
    variant: str
    at: Instant = Instant(0.0)
    since: Instant | None = None
    after: Provenance = Provenance()
    definition: str = ""
    read: Mapping[str, int] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    stateful: bool = True
    rows: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    seconds: float = 0.0
    saved: float = 0.0
    expected: float = 0.0
    foreseen: float = 0.0
    missed: float = 0.0


@dataclass(frozen=True)
class PretendCommit:
    """A commit and the snapshot that it makes; every pretend commit changes its table."""

    version: int
    at: Instant
    provenance: Provenance
    note: PretendNote
    changes_data: bool = True
    size: int = 0

    @property
    def appends_only(self) -> bool:
        return self.note.kind == "append"

    @property
    def made(self) -> int:
        return self.version


class PretendLog:
    """The commits of one table."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._commits: list[PretendCommit] = []
        self._versions: list[int] = []
        self._times: list[Instant] = []
        self._channel: Channel | None = None

    def commit(self, at: Instant, note: PretendNote, *, is_channel: bool) -> None:
        """Add a commit; an input channel reflects its own version."""
        version = len(self._commits)
        own = Provenance({self.name: frozenset({version})})
        provenance = own if is_channel else note.after
        self._commits.append(PretendCommit(version, at, provenance, note))
        self._versions.append(version)
        self._times.append(at)
        self._channel = None

    def newest(self) -> PretendCommit | None:
        return self._commits[-1] if self._commits else None

    def snapshots(self) -> Sequence[PretendCommit]:
        return self._commits

    def commits(self) -> Sequence[PretendCommit]:
        return self._commits

    def channel(self) -> Channel:
        if self._channel is None:
            self._channel = Channel(tuple(self._versions), tuple(self._times))
        return self._channel

    def table_id(self) -> str | None:
        return self.name if self._commits else None

    def has_id(self, table_id: str) -> bool:
        return bool(self._commits) and table_id == self.name

    def mark(self, version: int) -> str | None:
        return None

    def has_mark(self, mark: str) -> bool:
        return True

    def damage(self) -> None:
        return None


class PretendLogs:
    """The logs of all tables; the first use of a table makes its log."""

    def __init__(self) -> None:
        self._logs: dict[str, PretendLog] = {}

    def log(self, key: str) -> PretendLog:
        if key not in self._logs:
            self._logs[key] = PretendLog(key)
        return self._logs[key]
