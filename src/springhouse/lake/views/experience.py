"""What have the refreshes of this warehouse taught, as its logs tell?

Each refresh of each view is heard once, and kept as what it teaches
(`planner.way.past_refreshes`). Only the log of the view that is asked about is looked at again: the
others are when it is their turn.
"""

import threading
from collections.abc import Iterable

from springhouse.lake.delta.note import Note
from springhouse.lake.lake import Lake
from springhouse.planner.way.past_refreshes import REMEMBERED, Learned, Past

_REFRESHES = ("replace", "merge")


def refreshes_of(lake: Lake, view: str) -> list[Note]:
    """What the last refreshes of a view say of themselves, the newest last."""
    return [note for _, note in _refreshes(lake, view)]


def past_of(lake: Lake, views: Iterable[str], view: str) -> Past:
    """What is known of a view, and of the machine that refreshes all these views."""
    heard: _Heard = lake.plans.setdefault(_Heard, _Heard())
    return heard.past(lake, views, view)


class _Heard:
    """What was learned, and up to which version of each view."""

    def __init__(self) -> None:
        self._learned = Learned()
        self._versions: dict[str, int] = {}
        self._lock = threading.Lock()

    def past(self, lake: Lake, views: Iterable[str], view: str) -> Past:
        with self._lock:
            new = {name for name in views if name not in self._versions}
            self._hear(lake, {*new, view})
            return self._learned.past(view)

    def _hear(self, lake: Lake, views: Iterable[str]) -> None:
        found = []
        for name in views:
            known = self._versions.get(name, -1)
            told = _refreshes(lake, name)
            state = lake.log(name).newest()
            newest = state.version if state is not None else -1
            if newest < known:
                # The view was deleted and made anew.
                self._learned.forget(name)
                known = -1
            self._versions[name] = newest
            found += [(name, note) for version, note in told if version > known]
        for name, note in sorted(found, key=lambda each: each[1].at):
            self._learned.take(name, note)


def _refreshes(lake: Lake, view: str) -> list[tuple[int, Note]]:
    commits = lake.log(view).commits()[-REMEMBERED:]
    return [(c.version, c.note) for c in commits if c.note and c.note.kind in _REFRESHES]
