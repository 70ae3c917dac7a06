"""How busy is a node, and should it get less of the work?

003 section 6.2.2. Nodes report their load with every answer to a heartbeat. A node that *stays*
overloaded, while another one has room, gets a smaller share of the units; one that stays idle
gets its share back, more slowly. Shares are part of the agreed state, and `balance` moves units
only as far as shares demand. What keeps this from swinging: a node is overloaded from above 85 %
until it is below 70 %, it must be so for a while, and after each change it is left alone until the
effect could be seen.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from springhouse.units import Instant, Seconds


class NodeLoad(NamedTuple):
    """What a node reports: three utilisations from 0 to 1, and the seconds of work that wait.

    One that is not `able` is there and votes, but can't work: its Spark still starts, or it leaves.
    """

    cpu: float = 0.0
    memory: float = 0.0
    tracks: float = 0.0
    backlog_seconds: float = 0.0
    able: bool = True


IDLE = NodeLoad()


@dataclass(frozen=True)
class Habits:
    """When a share changes, and by how much."""

    high: float = 0.85
    low: float = 0.7
    idle: float = 0.5
    backlog_seconds: Seconds = Seconds(60.0)
    stays_seconds: Seconds = Seconds(30.0)
    settles_seconds: Seconds = Seconds(60.0)
    recovers_seconds: Seconds = Seconds(300.0)
    step: float = 0.8
    least: float = 0.2


HABITS = Habits()


def pressure(load: NodeLoad, habits: Habits = HABITS) -> float:
    """How near to its limits a node is.

    Busy tracks are what tracks are for; they mean overload only together with work that waits.

    >>> pressure(NodeLoad(cpu=0.3, tracks=1.0))
    0.3
    >>> pressure(NodeLoad(tracks=1.0, backlog_seconds=90.0))
    1.0
    """
    waits = min(load.backlog_seconds / habits.backlog_seconds, 1.0)
    return max(load.cpu, load.memory, min(load.tracks, waits))


class _Watched:
    __slots__ = ("idle_since", "now_at", "over_since", "settled_at")

    def __init__(self, now: Instant) -> None:
        self.now_at = 0.0
        self.over_since: Instant | None = None
        self.idle_since: Instant | None = None
        self.settled_at = now


class LoadWatch:
    """What a leader remembers of the reports, to tell a busy moment from an overloaded node."""

    def __init__(self, habits: Habits = HABITS) -> None:
        self._habits = habits
        self._nodes: dict[str, _Watched] = {}

    def reported(self, node: str, load: NodeLoad, now: Instant) -> None:
        """A node told its load."""
        habits = self._habits
        watched = self._nodes.get(node)
        if watched is None:
            watched = self._nodes[node] = _Watched(now)
        now_at = watched.now_at = pressure(load, habits)
        if now_at > habits.high:
            watched.over_since = now if watched.over_since is None else watched.over_since
        elif now_at < habits.low:
            watched.over_since = None
        if now_at < habits.idle:
            watched.idle_since = now if watched.idle_since is None else watched.idle_since
        else:
            watched.idle_since = None

    def forget(self, node: str) -> None:
        """A node is gone."""
        self._nodes.pop(node, None)

    def shares(
        self,
        here: Iterable[str],
        shares: Mapping[str, float],
        bounding: Callable[[str], float],
        now: Instant,
    ) -> dict[str, float] | None:
        """The shares as they should be from now on, or None if they are well as they are.

        `bounding` tells the share of which what a node has is the most that is allowed: a fifth
        below that, a fifth of its units has to go. A drained node, whose share is 0, stays so.
        """
        habits = self._habits
        watched = [(name, self._nodes[name]) for name in here if name in self._nodes]
        room = any(each.now_at < habits.low for _, each in watched)
        made = dict(shares)
        for name, each in watched:
            share = made.get(name, 1.0)
            if share <= 0 or now < each.settled_at + habits.settles_seconds:
                continue
            if _since(each.over_since, now) >= habits.stays_seconds and room:
                share = max(min(share, bounding(name)) * habits.step, habits.least)
            elif _since(each.idle_since, now) >= habits.recovers_seconds:
                share = min(share / habits.step, 1.0)
            if share != made.get(name, 1.0):
                made[name] = share
                each.settled_at = now
        return made if made != shares else None


def _since(moment: Instant | None, now: Instant) -> float:
    return -1.0 if moment is None else now - moment
