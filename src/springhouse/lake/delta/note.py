"""What does a commit say about itself?

Every commit that Springhouse writes carries a `Note`: one JSON value in the Delta log, under the
key `springhouse`. The warehouse rebuilds its state from the notes alone. So a note holds all that
the warehouse has to remember: the offsets of each flow, the provenance of the snapshot, the files
that hold the change, the cost of the commit and the reason for it.

Own channel: a commit learns its version only when it is written. So the note of a base table leaves
out the table's own channel and says `channel: true`; the reader of the note adds the channel.

Releases: every note states its `format`. A release may add fields without a new format; an older
release ignores these fields and keeps them (`unknown`). A change that an older release would
misread needs a new format, which older releases refuse.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from springhouse.planner.provenance import Provenance
from springhouse.planner.way.failed_statement import FailedStatement
from springhouse.units import Instant

KEY = "springhouse"

FORMAT = 1
"""The format of the notes that this release writes, and the newest format that it reads."""

_LARGEST = 1e300
"""The largest number in a note. JSON allows numbers that no float can hold."""


class GarbledNote(ValueError):
    """The JSON value is not a note; the message says why."""


class NewerNote(ValueError):
    """The note has a format that this release does not know."""

    def __init__(self, found: int) -> None:
        super().__init__(f"the note has format {found}, and this release reads {FORMAT}")
        self.format = found


@dataclass(frozen=True)
class FlowNote:
    """What one flow did in a commit: its offsets per partition, as (from, to), and its memory.

    `reflects` gives the versions of the other tables whose rows the flow has passed on so far.
    `aside` is the file in the table's quarantine that holds the records that the flow set aside.
    """

    offsets: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    rows_in: int = 0
    quarantined: int = 0
    reflects: Mapping[str, list[int]] = field(default_factory=dict)
    aside: str = ""
    # What the offsets count, by stream: the source, its identity and its epoch (`StreamNote` of
    # `lake.feeds`).
    streams: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Note:
    """The JSON value in a commit. `kind` is one of append, replace, merge, schema, compaction."""

    kind: str
    at: Instant
    before: Provenance = Provenance()
    after: Provenance = Provenance()
    channel: bool = False
    # Further commits bring the rest of the same input versions: the table is not consistent yet.
    partial: bool = False
    freshness: Instant | None = None
    variant: str = ""
    reason: str = ""
    # When the oldest data that this commit takes in arrived.
    since: Instant | None = None
    # Why the planner chose this variant.
    why: str = ""
    rows: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    seconds: float = 0.0
    # The estimated seconds, if the planner chose by them; before experience corrects the estimate.
    expected: float = 0.0
    # The estimate before any data was read, if it differs from `expected`.
    foreseen: float = 0.0
    # The seconds that state to build on would have saved.
    missed: float = 0.0
    # The variants that were not chosen, with the estimated seconds of each.
    others: Mapping[str, float] = field(default_factory=dict)
    definition: str = ""
    # None: the files that the commit adds are the change. Otherwise the change is in these files
    # under `_changes/`, whose rows carry a weight; an empty tuple says that nothing changed.
    changes: tuple[str, ...] | None = None
    # The input versions that a view was computed from, by input. The view's files do not say them.
    read: Mapping[str, int] = field(default_factory=dict)
    # The table ids of these inputs, and of the tables that the inputs read in turn.
    ids: Mapping[str, str] = field(default_factory=dict)
    # Marks that distinguish these versions from others with the same numbers (`TableLog.mark`).
    marks: Mapping[str, str] = field(default_factory=dict)
    # Inputs of which the view reflects several versions: only a recomputation makes it consistent.
    mixed: tuple[str, ...] = ()
    # The files of hidden tables, by name; and whether the table's own files have hidden columns.
    state: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stateful: bool = False
    # Why a full refresh replaced the view's last incremental refresh, while that is remembered.
    failed: FailedStatement | None = None
    flows: Mapping[str, FlowNote] = field(default_factory=dict)
    violations: Mapping[str, int] = field(default_factory=dict)
    # The other tables that got their rows in the same pass or read the same scan; and the seconds
    # that sharing should have saved this table.
    together: tuple[str, ...] = ()
    saved: float = 0.0
    # For each activity of a flow: rows in and out, seconds, the largest number of waiting packs.
    activities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    # The least number of actions of each kind ("add", "remove", "txn") in the commit. A commit
    # whose end was cut off has fewer.
    holds: Mapping[str, int] = field(default_factory=dict)
    # Fields of a newer release, as the log has them.
    unknown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changes_data(self) -> bool:
        """Whether the commit changes the rows of the table."""
        if self.kind in ("schema", "compaction"):
            return False
        return self.changes is None or bool(self.changes)

    def as_json(self) -> dict[str, Any]:
        """The note as JSON, without its empty fields."""
        value = _fields_of(self)
        value |= {
            "before": self.before.as_json(),
            "after": self.after.as_json(),
            "flows": {name: _fields_of(flow) for name, flow in self.flows.items()},
            "state": {name: list(files) for name, files in self.state.items()},
            "failed": _fields_of(self.failed) if self.failed is not None else None,
            "seconds": round(self.seconds, 4),
        }
        silent: tuple[Any, ...] = (None, "", {}, False)
        return {"format": FORMAT} | {
            key: list(item) if isinstance(item, tuple) else item
            for key, item in value.items()
            if not any(item is nothing or item == nothing for nothing in silent)
            or isinstance(item, (int, float))
        }

    @staticmethod
    def from_json(value: Any) -> "Note":
        """The note that a commit carries; raises `NewerNote` or `GarbledNote` if unreadable."""
        found = value.get("format", 1) if isinstance(value, dict) else None
        if not isinstance(found, int) or isinstance(found, bool) or found < 1:
            raise GarbledNote("it has no format")
        if found > FORMAT:
            raise NewerNote(found)
        note: Note = _record(Note, {k: v for k, v in value.items() if k != "format"}, KEY)
        return note


def _fields_of(noted: Note | FlowNote | FailedStatement) -> dict[str, Any]:
    """The fields of a note by name, and those that this release does not know."""
    known = {f.name: getattr(noted, f.name) for f in fields(noted) if f.name != "unknown"}
    return {**noted.unknown, **known}


def _record(kind: type, value: Any, where: str) -> Any:
    """A note, or a part of a note, from its JSON; every field gets its declared type."""
    if not isinstance(value, dict):
        raise GarbledNote(f'"{where}" is no object')
    types = _types(kind)
    known = {
        name: _typed(types[name], item, f"{where}.{name}")
        for name, item in value.items()
        if name in types
    }
    unknown = {name: item for name, item in value.items() if name not in types}
    try:
        return kind(**known, unknown=unknown)
    except TypeError as error:
        raise GarbledNote(f'"{where}" lacks a field: {error}') from error


@cache
def _types(kind: type) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if name != "unknown"}


def _typed(kind: Any, value: Any, where: str) -> Any:
    """A JSON value, converted to the type of its field."""
    kind = getattr(kind, "__supertype__", kind)
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if NoneType in inner:
        (some,) = (each for each in inner if each is not NoneType)
        return None if value is None else _typed(some, value, where)
    if kind in (bool, str, int, float):
        return _plain(kind, value, where)
    if kind in (FlowNote, FailedStatement):
        return _record(kind, value, where)
    if kind is Provenance and isinstance(value, dict):
        return Provenance.from_json(_typed(Mapping[str, list[int]], value, where))
    return _typed_items(origin, inner, value, where)


def _typed_items(origin: Any, inner: tuple[Any, ...], value: Any, where: str) -> Any:
    """A JSON array or object as a list, tuple or mapping of items of the `inner` types."""
    if origin is list and isinstance(value, list):
        return [_typed(inner[0], item, where) for item in value]
    if origin is tuple and isinstance(value, list | tuple):
        kinds = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        if len(kinds) == len(value):
            pairs = zip(kinds, value, strict=True)
            return tuple(_typed(kind, item, where) for kind, item in pairs)
    elif origin is Mapping and isinstance(value, dict):
        return {key: _typed(inner[1], item, where) for key, item in value.items()}
    raise _garbled(value, where)


def _plain(kind: type, value: Any, where: str) -> Any:
    if kind is float and type(value) in (int, float) and abs(value) <= _LARGEST:
        return float(value)
    if type(value) is kind and kind is not float:
        return value
    raise _garbled(value, where)


def _garbled(value: Any, where: str) -> GarbledNote:
    return GarbledNote(f'"{where}" is {repr(value)[:60]}, which this field can\'t be')
