"""What does a warehouse learn from its past refreshes?

It reads each refresh in the logs once, and keeps only the lesson (`planner.way.past_refreshes`). A
question about a view reads only the log of that view again. The other logs follow when their views
are in question.
"""

import threading
from collections.abc import Iterable

from springhouse.lake.delta.note import Note
from springhouse.lake.lake import Lake
from springhouse.planner.way.past_refreshes import REMEMBERED, Learned, Past

_REFRESHES = ("replace", "merge")


def refreshes_of(lake: Lake, view: str) -> list[Note]:
    """The notes of a view's last refreshes, the newest last."""
    return [note for _, note in _refreshes(lake, view)]


def past_of(lake: Lake, views: Iterable[str], view: str) -> Past:
    """The experience with a view, and with the machine that refreshes all these views."""
    heard: _Heard = lake.plans.setdefault(_Heard, _Heard())
    return heard.past(lake, views, view)


class _Heard:
    """The lessons so far, and the last version of each view that they cover."""

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
                # The view was deleted and created again.
                self._learned.forget(name)
                known = -1
            self._versions[name] = newest
            found += [(name, note) for version, note in told if version > known]
        for name, note in sorted(found, key=lambda each: each[1].at):
            self._learned.take(name, note)


def _refreshes(lake: Lake, view: str) -> list[tuple[int, Note]]:
    commits = lake.log(view).commits()[-REMEMBERED:]
    return [(c.version, c.note) for c in commits if c.note and c.note.kind in _REFRESHES]
