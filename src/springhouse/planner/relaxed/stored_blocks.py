"""Which blocks in the logs of tables does a plan need?

A table in a warehouse keeps its versions: each version is a base, and each commit is the delta from
the version before. There may be thousands. Of a channel X a plan needs

* the newest version, to which readers can move,
* for each reader, the version that it reflects, from which it moves,
* for each other input Y of a reader, the version of X that was right when Y's newest version began:
  a consistent reader can move there if Y is not refreshed,

and the deltas between these versions. No delta crosses a commit with unknown changed rows (the
table was created again, or another program rewrote it).
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from springhouse.planner.bounds import Times
from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG, Block, Kind
from springhouse.planner.search.workflow import Workflow
from springhouse.units import Instant

_MOST_LOOKED_BACK = 64
"""How many versions of a view the search for a right one at some moment looks at."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A version of a table: what it reflects, its rows, and the rows that it changed.

    `change` is the kind of the delta from the version before; None if the delta is unknown.
    """

    version: int
    provenance: Provenance
    rows: float
    changed_rows: float = 0.0
    change: Kind | None = STRONG


Logs = Mapping[str, Sequence[Stored]]
"""The versions of each table that changed data, oldest first."""


def blocks_in_logs(
    workflow: Workflow,
    logs: Logs,
    read: Mapping[str, Mapping[str, int]],
    channels: Mapping[str, Channel],
    now: Instant,
    among: Iterable[str] | None = None,
) -> dict[str, list[Block]]:
    """The blocks that a plan may need, of all channels or only those `among` them.

    `read` says, for each table, the version of each of its inputs that was read last.
    """
    times = Times(channels, now)
    blocks = {}
    for channel in workflow.order if among is None else among:
        log = logs.get(channel, ())
        places = _places(workflow, channel, logs, read, channels, times) if log else []
        blocks[channel] = _blocks(channel, log, places)
    return blocks


def held_in_logs(workflow: Workflow, logs: Logs) -> dict[str, Provenance]:
    """For each derived table, the provenance that its consumers hold: its newest version."""
    inputs = frozenset(workflow.inputs)
    derived = {channel: log for channel, log in logs.items() if log and channel not in inputs}
    return {channel: log[-1].provenance for channel, log in derived.items()}


def _places(
    workflow: Workflow,
    channel: str,
    logs: Logs,
    read: Mapping[str, Mapping[str, int]],
    channels: Mapping[str, Channel],
    times: Times,
) -> list[int]:
    """The positions in its log of the versions that a plan may need, in order."""
    log = logs[channel]
    places = {len(log) - 1}
    moments: dict[float, None] = {}
    for reader in workflow.readers[channel]:
        version = read.get(reader, {}).get(channel)
        if version is not None:
            places.add(_at_version(log, version))
        for other in workflow.reads[reader]:
            if other != channel and logs.get(other):
                moments[times.interval(logs[other][-1].provenance)[0]] = None
    for moment in moments:
        place = _at_moment(log, channels.get(channel), times, moment)
        if place is not None:
            places.add(place)
    return sorted(place for place in places if place >= 0)


def _at_version(log: Sequence[Stored], version: int) -> int:
    return bisect_right(log, version, key=lambda each: each.version) - 1


def _at_moment(
    log: Sequence[Stored], channel: Channel | None, times: Times, moment: float
) -> int | None:
    if channel is not None:
        version = channel.at(Instant(moment))
        return None if version is None else _at_version(log, version)
    for place in range(len(log) - 1, max(len(log) - 1 - _MOST_LOOKED_BACK, -1), -1):
        left, right = times.interval(log[place].provenance)
        if left <= moment < right:
            return place
    return None


def _blocks(channel: str, log: Sequence[Stored], places: Sequence[int]) -> list[Block]:
    blocks = []
    last: int | None = None
    for place in places:
        state = log[place]
        blocks.append(
            Block(channel, BASE, state.provenance, None, state.rows, (state.version, state.version))
        )
        if last is not None:
            between = log[last + 1 : place + 1]
            kind = _kind(between)
            before = log[last]
            if kind is not None and before.provenance.precedes(state.provenance):
                rows = sum(each.changed_rows for each in between)
                versions = (before.version, state.version)
                blocks.append(
                    Block(channel, kind, state.provenance, before.provenance, rows, versions)
                )
        last = place
    return blocks


def _kind(between: Sequence[Stored]) -> Kind | None:
    kinds = {each.change for each in between}
    if None in kinds:
        return None
    return MONOTONE if kinds == {MONOTONE} else STRONG
