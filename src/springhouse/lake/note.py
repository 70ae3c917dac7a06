"""What does a commit say about itself?

Every commit of ours carries one JSON value, `springhouse`, in the Delta log: a `Note`. State is
rebuilt from these notes alone, so a note is everything that the warehouse has to remember: where
each flow stands, what a snapshot reflects, which files hold the change, what it cost and why it
was made.

Own channel: the version that a commit will get is not known before it is written, so a base
table's note leaves its own channel out and says `channel: true` instead; the reader adds it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from springhouse.planner.provenance import Provenance
from springhouse.units import Instant

KEY = "springhouse"


@dataclass(frozen=True)
class FlowNote:
    """What one flow did in a commit: offsets per partition as (from, to), and what to remember.

    `reflects` are the versions of other tables whose rows it has passed on by then.
    """

    offsets: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    rows_in: int = 0
    quarantined: int = 0
    reflects: Mapping[str, list[int]] = field(default_factory=dict)
    # What the offsets count, by stream: what is read, which one it was, and its epoch
    # (`StreamNote` of `lake.feeds`).
    streams: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


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
    definition: str = ""
    # None: the commit's own added files are the change. Otherwise files under `_changes/`, whose
    # rows carry a weight; an empty tuple says that nothing changed.
    changes: tuple[str, ...] | None = None
    # The versions that a view was computed from, by input: its own files do not tell its inputs.
    read: Mapping[str, int] = field(default_factory=dict)
    # The ids of the tables that those versions count, and of the tables behind them.
    ids: Mapping[str, str] = field(default_factory=dict)
    # Inputs of which it reflects several versions: only a recomputation makes it consistent again.
    mixed: tuple[str, ...] = ()
    # The files of hidden tables, by name; and whether the table's own files have hidden columns.
    state: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stateful: bool = False
    flows: Mapping[str, FlowNote] = field(default_factory=dict)
    violations: Mapping[str, int] = field(default_factory=dict)
    # The other tables that were given their rows in the same pass.
    together: tuple[str, ...] = ()
    # What each activity of a flow did: rows in and out, seconds, the most packs that waited.
    activities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def changes_data(self) -> bool:
        """Whether the snapshot holds other rows than the one before it."""
        if self.kind in ("schema", "compaction"):
            return False
        return self.changes is None or bool(self.changes)

    def as_json(self) -> dict[str, Any]:
        """The note as JSON, without what says nothing."""
        value = {f.name: getattr(self, f.name) for f in fields(self)}
        value |= {
            "before": self.before.as_json(),
            "after": self.after.as_json(),
            "flows": {name: asdict(flow) for name, flow in self.flows.items()},
            "state": {name: list(files) for name, files in self.state.items()},
            "seconds": round(self.seconds, 4),
        }
        silent: tuple[Any, ...] = (None, "", {}, False)
        return {
            key: list(item) if isinstance(item, tuple) else item
            for key, item in value.items()
            if not any(item is nothing or item == nothing for nothing in silent)
            or isinstance(item, (int, float))
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Note":
        known = {f.name for f in fields(Note)}
        parts = {key: item for key, item in value.items() if key in known}
        changes = parts.get("changes")
        return Note(
            **parts
            | {
                "before": Provenance.from_json(parts.get("before", {})),
                "after": Provenance.from_json(parts.get("after", {})),
                "changes": None if changes is None else tuple(changes),
                "mixed": tuple(parts.get("mixed", ())),
                "together": tuple(parts.get("together", ())),
                "state": {k: tuple(v) for k, v in parts.get("state", {}).items()},
                "flows": {k: _flow(v) for k, v in parts.get("flows", {}).items()},
            }
        )


def _flow(value: Mapping[str, Any]) -> FlowNote:
    offsets = {name: (int(a), int(b)) for name, (a, b) in value.get("offsets", {}).items()}
    return FlowNote(**{**value, "offsets": offsets})
