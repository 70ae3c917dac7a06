"""When was a commit made, if the clock of its writer was wrong?

An entry that is dated ahead of now was written under a wrong clock. It counts as made before the
next entry with a believable date, or when it was first seen; nobody waits for the date. An entry
that is dated before the one below it counts as made with that. So

    at of a commit  <=  at of the next commit  <=  now, or a minute later
"""

from collections.abc import Sequence
from dataclasses import replace

from springhouse.lake.delta.commit_entry import Commit
from springhouse.lake.storage.clock import CLOCK_TOLERANCE
from springhouse.units import Instant


def believable_commits(commits: Sequence[Commit], now: Instant) -> list[Commit]:
    """The commits, none of them made later than now."""
    found: list[Commit] = []
    latest = now
    for commit in reversed(commits):
        if commit.dated > now + CLOCK_TOLERANCE:
            found.append(made_at(commit, latest))
        else:
            latest = min(latest, commit.dated)
            found.append(commit)
    return found[::-1]


def made_at(commit: Commit, at: Instant) -> Commit:
    note = commit.note
    if note is not None:
        # A table whose records have no date is as fresh as its commit.
        fresh = note.freshness
        if fresh is not None and (fresh == note.at or fresh > at):
            fresh = at
        note = replace(note, at=at, freshness=fresh)
    return replace(commit, at=at, note=note)
