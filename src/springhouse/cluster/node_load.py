"""How busy is a node, and should it get less of the work?

003 section 6.2.2. Nodes report their load with every answer to a heartbeat. A node that *stays*
overloaded while another one has room gets a smaller share of the units. A node that stays idle gets
its share back, more slowly. Shares are part of the agreed state, and `balance` moves units only as
far as the shares demand. Three rules keep shares from swinging. A node is overloaded from above
85 % until it is below 70 %. It must be so for a while. After each change of its share it is left
alone until the effect shows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from springhouse.units import Instant, Seconds


class NodeLoad(NamedTuple):
    """A node's report: three utilisations from 0 to 1, and the seconds of work that wait.

    A node that is not `able` is present and votes, but can't work: its Spark is still starting, or
    the node is leaving.
    """

    cpu: float = 0.0
    memory: float = 0.0
    tracks: float = 0.0
    backlog_seconds: float = 0.0
    able: bool = True


IDLE = NodeLoad()


@dataclass(frozen=True)
class ShareRules:
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


SHARE_RULES = ShareRules()


def pressure(load: NodeLoad, rules: ShareRules = SHARE_RULES) -> float:
    """How near to its limits a node is.

    Tracks are there to be busy; they mean overload only together with work that waits.

    >>> pressure(NodeLoad(cpu=0.3, tracks=1.0))
    0.3
    >>> pressure(NodeLoad(tracks=1.0, backlog_seconds=90.0))
    1.0
    """
    backlog = min(load.backlog_seconds / rules.backlog_seconds, 1.0)
    return max(load.cpu, load.memory, min(load.tracks, backlog))


class _LoadHistory:
    __slots__ = ("changed_at", "idle_since", "over_since", "pressure")

    def __init__(self, now: Instant) -> None:
        self.pressure = 0.0
        self.over_since: Instant | None = None
        self.idle_since: Instant | None = None
        self.changed_at = now


class LoadWatch:
    """What a leader remembers of the reports, to tell a busy moment from an overloaded node."""

    def __init__(self, rules: ShareRules = SHARE_RULES) -> None:
        self._rules = rules
        self._nodes: dict[str, _LoadHistory] = {}

    def record(self, node: str, load: NodeLoad, now: Instant) -> None:
        """A node reported its load."""
        rules = self._rules
        history = self._nodes.get(node)
        if history is None:
            history = self._nodes[node] = _LoadHistory(now)
        history.pressure = pressure(load, rules)
        if history.pressure > rules.high:
            history.over_since = now if history.over_since is None else history.over_since
        elif history.pressure < rules.low:
            history.over_since = None
        if history.pressure < rules.idle:
            history.idle_since = now if history.idle_since is None else history.idle_since
        else:
            history.idle_since = None

    def forget(self, node: str) -> None:
        """A node is gone."""
        self._nodes.pop(node, None)

    def next_shares(
        self,
        present: Iterable[str],
        shares: Mapping[str, float],
        limiting_share: Callable[[str], float],
        now: Instant,
    ) -> dict[str, float] | None:
        """The shares from now on, or None if they stay as they are.

        `limiting_share` gives the share for which a node's present units are the most that is
        allowed: a fifth below that, a fifth of its units must go. A drained node stays drained.
        """
        rules = self._rules
        histories = [(name, self._nodes[name]) for name in present if name in self._nodes]
        room = any(each.pressure < rules.low for _, each in histories)
        changed = dict(shares)
        for name, history in histories:
            share = changed.get(name, 1.0)
            if share <= 0 or now < history.changed_at + rules.settles_seconds:
                continue
            if _since(history.over_since, now) >= rules.stays_seconds and room:
                share = max(min(share, limiting_share(name)) * rules.step, rules.least)
            elif _since(history.idle_since, now) >= rules.recovers_seconds:
                share = min(share / rules.step, 1.0)
            if share != changed.get(name, 1.0):
                changed[name] = share
                history.changed_at = now
        return changed if changed != shares else None


def _since(moment: Instant | None, now: Instant) -> float:
    return -1.0 if moment is None else now - moment
