"""Which promises can be kept, and which share of the tracks does each table get?

A table asks for the share `E(I) / I` of a track, where I is the data of one refresh: that of a
period, or, with a promise, of the time for which the table may wait. If the tracks have room for
all requests, every table gets its request. Otherwise its share depends on its priority:

    share = min(asked, priority × level)        with the one level at which Σ share = tracks

So a table that asks for little gets all of it, and the rest goes to the others. A promise can be
kept under two conditions. Its refreshes, one after the other from the base tables on, take less
time than the promise leaves. And the share of each of these tables is enough for one refresh per
wait. For a promise that can't be kept, the finding names the shortest bound that could be. Short
blocks (a long refresh on every track) do not count: the question is which promises can never be
kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from springhouse.refresh.table.load_cost import LoadCost
from springhouse.units import Seconds

_LOOSER = 1.25
_MOST_TRIES = 64
_HALVINGS = 5


@dataclass(frozen=True)
class TableLoad:
    """The data of one usual refresh of a table, and the cost of loading it.

    `upstream` names the tables that it reads; `promise_seconds` bounds how long data waits.
    """

    name: str
    upstream: tuple[str, ...]
    interval_seconds: float
    priority: float
    promise_seconds: float | None
    cost: LoadCost

    def use(self, wait: float | None) -> float:
        """The share of a track that it takes to load the data of a wait, again and again."""
        interval = max(self.interval_seconds, wait or 0.0)
        return self.cost.seconds(interval) / interval


@dataclass(frozen=True)
class UnkeepablePromise:
    """A promise that can't be kept, why, and the shortest one that could be (None: none could)."""

    table: str
    promise_seconds: Seconds
    possible_seconds: Seconds | None
    why: str


def shares(tables: Sequence[TableLoad], tracks: int) -> dict[str, float]:
    """The share of each table, as a number of tracks.

    >>> often = TableLoad("often", (), 1.0, 3.0, None, LoadCost(9.0, 0.0))
    >>> seldom = TableLoad("seldom", (), 60.0, 1.0, None, LoadCost(6.0, 0.0))
    >>> shares([often, seldom], 1)
    {'seldom': 0.1, 'often': 0.9}
    """
    use_of = {each.name: min(each.use(each.promise_seconds), 1.0) for each in tables}
    weights = {each.name: max(each.priority, 1e-9) for each in tables}
    left, weight = float(tracks), sum(weights.values())
    share_of: dict[str, float] = {}
    for name in sorted(use_of, key=lambda each: use_of[each] / weights[each]):
        share_of[name] = min(use_of[name], max(left, 0.0) * weights[name] / weight)
        left -= share_of[name]
        weight = max(weight - weights[name], 1e-12)
    return share_of


def unkeepable(tables: Sequence[TableLoad], tracks: int) -> list[UnkeepablePromise]:
    """The promises that so many tracks can't keep; each of `tables` comes after its inputs."""
    by_name = {each.name: each for each in tables}
    share = shares(_inherited(tables), tracks)
    reached: dict[str, float] = {}
    findings = []
    for table in tables:
        before = max((reached.get(name, 0.0) for name in table.upstream), default=0.0)
        reached[table.name] = before + table.cost.seconds(table.interval_seconds)
        if table.promise_seconds is None:
            continue
        wish = _PromiseDemand(table, tuple(_made_of(table, by_name)), before, share)
        why = wish.broken(table.promise_seconds)
        if why:
            possible = wish.possible(table.promise_seconds)
            findings.append(
                UnkeepablePromise(table.name, Seconds(table.promise_seconds), possible, why)
            )
    return findings


def _inherited(tables: Sequence[TableLoad]) -> list[TableLoad]:
    """The same tables with the priorities and promises that they inherit from their readers."""
    inheriting: dict[str, TableLoad] = {}
    readers: dict[str, list[TableLoad]] = {}
    for each in reversed(tables):
        own_readers = readers.get(each.name, [])
        bounds = [r.promise_seconds for r in own_readers if r.promise_seconds is not None]
        own = each.promise_seconds
        bound = own if own is None else min([own, *bounds])
        priority = max([each.priority, *(r.priority for r in own_readers)])
        inheriting[each.name] = replace(each, priority=priority, promise_seconds=bound)
        for name in each.upstream:
            readers.setdefault(name, []).append(inheriting[each.name])
    return [*inheriting.values()]


def _made_of(table: TableLoad, by_name: Mapping[str, TableLoad]) -> Iterable[TableLoad]:
    """A table and all tables above it, each once."""
    tables, left = {table.name: table}, [table]
    while left:
        for name in left.pop().upstream:
            if name in by_name and name not in tables:
                tables[name] = by_name[name]
                left.append(by_name[name])
    return tables.values()


@dataclass(frozen=True)
class _PromiseDemand:
    """A promise of a table; `before` are the seconds of the refreshes upstream."""

    table: TableLoad
    made_of: tuple[TableLoad, ...]
    before: float
    share: Mapping[str, float]

    def broken(self, promise: float) -> str:
        """Why the promise can't be kept; empty if it can."""
        interval = max(self.table.interval_seconds, promise)
        seconds = self.before + self.table.cost.seconds(interval)
        if seconds > promise:
            return f"its refreshes take {seconds:.3g} s one after the other"
        for each in self.made_of:
            needs, share = each.use(promise), self.share[each.name]
            if needs > share + 1e-9:
                needing = "it needs" if each is self.table else f'"{each.name}" needs'
                return f"{needing} {needs:.1%} of a track, and its share is {share:.1%}"
        return ""

    def possible(self, promise: float) -> Seconds | None:
        """The shortest bound that could be kept, within a few percent."""
        low, high = promise, promise * _LOOSER
        for _ in range(_MOST_TRIES):
            if not self.broken(high):
                break
            low, high = high, high * _LOOSER
        else:
            return None
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.broken(middle) else (low, middle)
        return Seconds(high)
