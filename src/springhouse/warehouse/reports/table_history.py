"""Which commits does a table have, when were they made, and why?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from springhouse.lake.delta.commit_entry import Commit
from springhouse.lake.delta.note import Note
from springhouse.warehouse.reports.result import Result, utc
from springhouse.warehouse.watch import Watch

_REFRESHES = ("append", "replace", "merge")


@dataclass(frozen=True)
class ActivityRecord:
    """What one activity of a flow did: rows, time, and the most row packs that waited for it."""

    rows_in: int
    rows_out: int
    duration_seconds: float
    most_waiting_packs: int


@dataclass(frozen=True)
class CommitRecord(Result):
    """One commit of a table. Of a commit by another writer only the first four fields are known.

    `reason` says why the refresh was started, and `way_reason` why it went this way. `failure` is
    the error that kept it from being incremental. `together_with` are the tables that the same pass
    refreshed. `offsets` are [start, end] by source partition, and `reflects` are the versions of
    base tables that the rows reflect, by pathway.
    """

    version: int
    at: datetime
    kind: str
    by: str
    way: str = ""
    way_reason: str = ""
    failure: str = ""
    reason: str = ""
    rows: int | None = None
    rows_added: int | None = None
    rows_removed: int | None = None
    duration_seconds: float | None = None
    quarantined_rows: int = 0
    violations: Mapping[str, int] = field(default_factory=dict)
    together_with: tuple[str, ...] = ()
    activities: Mapping[str, ActivityRecord] = field(default_factory=dict)
    offsets: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    reflects: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def table_history(watch: Watch, name: str, limit: int | None = None) -> list[CommitRecord]:
    """The commits of a table, newest first."""
    commits = list(reversed(watch.lake.log(name).commits()))
    return [commit_record(commit) for commit in commits[:limit]]


def commit_record(commit: Commit) -> CommitRecord:
    """A commit as a record."""
    note = commit.note
    if note is None:
        kind = commit.operation.lower() or "unknown"
        return CommitRecord(commit.version, utc(commit.at), kind, "another writer")
    return CommitRecord(
        version=commit.version,
        at=utc(commit.at),
        kind=note.kind,
        by="springhouse",
        way=note.variant,
        way_reason=note.why,
        failure=note.failed.problem if note.failed is not None else "",
        reason=note.reason,
        rows=note.rows,
        rows_added=note.rows_added,
        rows_removed=note.rows_removed,
        duration_seconds=note.seconds,
        quarantined_rows=sum(flow.quarantined for flow in note.flows.values()),
        violations=dict(note.violations),
        together_with=tuple(note.together),
        activities={name: _activity(did) for name, did in note.activities.items()},
        offsets=_offsets(note),
        reflects={name: tuple(each) for name, each in note.after.as_json().items()},
    )


def last_refresh(commits: Sequence[Commit]) -> Commit | None:
    """The newest commit that is a refresh by Springhouse."""
    return next((c for c in reversed(commits) if c.note and c.note.kind in _REFRESHES), None)


def _activity(did: Mapping[str, Any]) -> ActivityRecord:
    # Commits of an earlier release may lack some of these.
    counts = (did.get(key, 0) for key in ("rows_in", "rows_out", "seconds", "most_waiting"))
    return ActivityRecord(*counts)


def _offsets(note: Note) -> dict[str, tuple[int, int]]:
    return {
        name: (offsets[0], offsets[1])
        for flow in note.flows.values()
        for name, offsets in flow.offsets.items()
    }
