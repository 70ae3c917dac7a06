"""Which states have the rows of a table been in?

A commit makes a new state, a `Snapshot`, if it changes the rows of the table or the input versions
that they reflect. A compaction or a new column makes no new state: the version to read for the
newest snapshot changes.
"""

from dataclasses import dataclass, replace

from springhouse.lake.delta.commit_entry import Commit
from springhouse.lake.delta.note import Note
from springhouse.planner.provenance import Provenance, join_provenances
from springhouse.units import Instant


@dataclass(frozen=True)
class Snapshot:
    """A state of a table's rows: the version to read, the time it began, and its provenance.

    `version` is the newest version with these rows; `made` is the first. A compaction changes
    `version` and nothing else.
    """

    version: int
    made: int
    at: Instant
    provenance: Provenance
    note: Note | None


def add_to_snapshots(snapshots: list[Snapshot], commit: Commit, channel: str) -> None:
    """Add a new commit to the snapshots of a table; `channel` is the table's own channel."""
    last = snapshots[-1] if snapshots else None
    if commit.note is not None and commit.note.partial:
        return
    if last is not None and not _makes_a_state(commit, last):
        maintenance = commit.note is None or commit.note.kind in ("schema", "compaction")
        note = last.note if maintenance else commit.note
        snapshots[-1] = replace(last, version=commit.version, note=note)
        return
    if last is None and _only_made(commit):
        return
    # Timestamps of one channel never step back, even if a clock does.
    at = Instant(max(commit.at, last.at)) if last else commit.at
    provenance = _provenance(commit, channel)
    snapshots.append(Snapshot(commit.version, commit.version, at, provenance, commit.note))


def _makes_a_state(commit: Commit, before: Snapshot) -> bool:
    """Whether the commit makes a new state: other rows, or other reflected versions."""
    note, noted_before = commit.note, before.note
    if commit.changes_data or note is None or noted_before is None:
        return commit.changes_data
    return note.kind not in ("schema", "compaction") and note.after != noted_before.after


def _only_made(commit: Commit) -> bool:
    """Whether the commit creates a table that other tables will fill, and that reflects none yet.

    That is no state: with an empty provenance it would count as correct at every moment.
    """
    return commit.note is not None and commit.note.kind == "schema" and not commit.note.channel


def _provenance(commit: Commit, channel: str) -> Provenance:
    own = Provenance({channel: frozenset({commit.version})})
    if commit.note is None:
        return own
    return join_provenances([commit.note.after, own]) if commit.note.channel else commit.note.after
