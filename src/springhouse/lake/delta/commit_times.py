"""When was a commit made, if the clock of its writer was wrong?

An entry with a date in the future comes from a wrong clock. It gets the date of the next entry with
a believable date. If there is none, it gets the time when it was first seen. An entry with an
earlier date than the entry before it gets the date of that entry. So

    at of a commit  <=  at of the next commit  <=  now, or a minute later
"""

from collections.abc import Sequence
from dataclasses import replace

from springhouse.lake.delta.commit_entry import Commit
from springhouse.lake.storage.clock import CLOCK_TOLERANCE
from springhouse.units import Instant


def believable_commits(commits: Sequence[Commit], now: Instant) -> list[Commit]:
    """The commits with corrected dates, none of them later than now."""
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
        # If its records have no dates, a table is as fresh as its commit.
        fresh = note.freshness
        if fresh is not None and (fresh == note.at or fresh > at):
            fresh = at
        note = replace(note, at=at, freshness=fresh)
    return replace(commit, at=at, note=note)
