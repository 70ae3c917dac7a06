"""What does a commit say about itself?

Every commit of ours carries one JSON value, `springhouse`, in the Delta log: a `Note`. State is
rebuilt from these notes alone, so a note is everything that the warehouse has to remember: where
each flow stands, what a snapshot reflects, which files hold the change, what it cost and why it
was made.

Own channel: the version that a commit will get is not known before it is written, so a base
table's note leaves its own channel out and says `channel: true` instead; the reader adds it.

Releases: every note says its `format`. A release may add fields without a new format; an older one
keeps and ignores them (`unknown`). A change that an older release would misread is a new format:
older releases refuse it.
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
"""The format of the notes that this release writes, and the newest that it reads."""

_LARGEST = 1e300
"""No number in a note is larger; JSON also has ones that no float can hold."""


class GarbledNote(ValueError):
    """The JSON value is no note: it says what is wrong with it."""


class NewerNote(ValueError):
    """The note has a format that this release does not know."""

    def __init__(self, found: int) -> None:
        super().__init__(f"the note has format {found}, and this release reads {FORMAT}")
        self.format = found


@dataclass(frozen=True)
class FlowNote:
    """What one flow did in a commit: offsets per partition as (from, to), and what to remember.

    `reflects` are the versions of other tables whose rows it has passed on by then; `aside` is the
    file in the table's quarantine that holds what was set aside.
    """

    offsets: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    rows_in: int = 0
    quarantined: int = 0
    reflects: Mapping[str, list[int]] = field(default_factory=dict)
    aside: str = ""
    # What the offsets count, by stream: what is read, which one it was, and its epoch
    # (`StreamNote` of `lake.feeds`).
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
    # More of the same versions of its inputs follows: the table is in no state of its own yet.
    partial: bool = False
    freshness: Instant | None = None
    variant: str = ""
    reason: str = ""
    # When the oldest of the data came that it takes in.
    since: Instant | None = None
    # Why this variant, and not another one.
    why: str = ""
    rows: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    seconds: float = 0.0
    # What they were expected to be, if the way was chosen by that, before the past corrected it.
    expected: float = 0.0
    # The same as far as it could be told before anything was read, if that is another number.
    foreseen: float = 0.0
    # How many of them would not have been needed, had there been state to build on.
    missed: float = 0.0
    # The ways that it was chosen against, and what each should have taken.
    others: Mapping[str, float] = field(default_factory=dict)
    definition: str = ""
    # None: the commit's own added files are the change. Otherwise files under `_changes/`, whose
    # rows carry a weight; an empty tuple says that nothing changed.
    changes: tuple[str, ...] | None = None
    # The versions that a view was computed from, by input: its own files do not tell its inputs.
    read: Mapping[str, int] = field(default_factory=dict)
    # The ids of the tables that those versions count, and of the tables behind them.
    ids: Mapping[str, str] = field(default_factory=dict)
    # What tells those versions from others with the same numbers (`TableLog.mark`).
    marks: Mapping[str, str] = field(default_factory=dict)
    # Inputs of which it reflects several versions: only a recomputation makes it consistent again.
    mixed: tuple[str, ...] = ()
    # The files of hidden tables, by name; and whether the table's own files have hidden columns.
    state: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stateful: bool = False
    # Why the last incremental refresh of a view was done in full, as long as that is remembered.
    failed: FailedStatement | None = None
    flows: Mapping[str, FlowNote] = field(default_factory=dict)
    violations: Mapping[str, int] = field(default_factory=dict)
    # The other tables that were given their rows in the same pass, or that read the same scan; and
    # the seconds that it should have saved this one.
    together: tuple[str, ...] = ()
    saved: float = 0.0
    # What each activity of a flow did: rows in and out, seconds, the most packs that waited.
    activities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    # How many actions of each kind ("add", "remove", "txn") the commit has, at least: one whose end
    # was cut off has fewer.
    holds: Mapping[str, int] = field(default_factory=dict)
    # Fields of a newer release, as they stand in the log.
    unknown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changes_data(self) -> bool:
        """Whether the snapshot holds other rows than the one before it."""
        if self.kind in ("schema", "compaction"):
            return False
        return self.changes is None or bool(self.changes)

    def as_json(self) -> dict[str, Any]:
        """The note as JSON, without what says nothing."""
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
        """The note that a commit carries; `NewerNote` or `GarbledNote` if it can't be read."""
        found = value.get("format", 1) if isinstance(value, dict) else None
        if not isinstance(found, int) or isinstance(found, bool) or found < 1:
            raise GarbledNote("it has no format")
        if found > FORMAT:
            raise NewerNote(found)
        note: Note = _record(Note, {k: v for k, v in value.items() if k != "format"}, KEY)
        return note


def _fields_of(noted: Note | FlowNote | FailedStatement) -> dict[str, Any]:
    """The fields of a note by name, with those that this release does not know."""
    known = {f.name: getattr(noted, f.name) for f in fields(noted) if f.name != "unknown"}
    return {**noted.unknown, **known}


def _record(kind: type, value: Any, where: str) -> Any:
    """A note, or a part of one, from its JSON: every field of the type that it is declared with."""
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
    """A JSON value as the type of its field."""
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
