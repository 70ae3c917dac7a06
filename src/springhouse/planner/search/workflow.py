"""Which operators lie between which channels, and along which pathways does data come?

Section 2 of 004: a workflow is an acyclic graph of channels and operators, and every channel may
have converters between the kinds of its blocks.

Pathways. Provenance has a set of versions for each path from an input, and n diamonds in a row have
2^n paths. So paths from one source count as one pathway if no difference between them matters. The
union of their sets keeps T+, T- and so consistency exact. Only two things could differ: the
staleness of single paths, and the states to which a delta can be applied. At a channel C that
reads X:

1. X is an input: the path is `X`.
2. Otherwise a path p of X is `p>X`. If X is only written in place, all its deltas lead from one
   whole state of it to the next, so data that came to X along several paths moves as one from X on:
   the paths of a source through X are one, `source>X`. If a bound on staleness names a table on the
   way, paths through this table differ from other paths: they are `source>table>X`.
3. If only consistent snapshots of C may exist (its inconsistency bound is 0), and C reads only
   inputs and channels written in place, then all paths of a source reflect the same version. They
   are one pathway, named like the source. For other channels this would not be exact, because
   asynchronous deltas leave the paths empty that they don't move.

So paths stay separate if an asynchronous refresh may move one path and not the other. A channel has
at most as many pathways as direct inputs times sources. Two states of X may have equal unions but
different paths. Provenance alone can't distinguish them, so a refresh notes which version it read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from springhouse.errors import SpringhouseError
from springhouse.planner.provenance import Provenance, along, source_of, through
from springhouse.planner.search.converters import Converter
from springhouse.planner.search.operators import Operator

Course = tuple[str, ...]
"""The tables that data passes on its way, beginning with its source."""


@dataclass(frozen=True)
class Workflow:
    """Inputs and operators, and the converters of each channel.

    `strict` are the channels that hold only consistent snapshots. `named` are the channels that a
    bound on a pathway names. Both decide which paths are one pathway.
    """

    inputs: tuple[str, ...]
    operators: tuple[Operator, ...]
    converters: Mapping[str, tuple[Converter, ...]] = field(default_factory=dict)
    strict: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All channels, each after the channels that it is made from."""
        above: dict[str, set[str]] = {each: set() for each in self.inputs}
        for operator in self.operators:
            for output in operator.outputs:
                above.setdefault(output.channel, set()).update(p.channel for p in operator.ports)
        unknown = {each for read in above.values() for each in read} - set(above)
        if unknown:
            raise SpringhouseError(f'nothing makes the channel "{min(unknown)}"')
        try:
            return tuple(TopologicalSorter(above).static_order())
        except CycleError as error:
            raise SpringhouseError(
                f"channels read each other in a circle: {error.args[1]}"
            ) from None

    @cached_property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """For each channel, the channels that it is made from."""
        reads: dict[str, dict[str, None]] = {each: {} for each in self.order}
        for operator in self.operators:
            for output in operator.outputs:
                reads[output.channel].update(dict.fromkeys(p.channel for p in operator.ports))
        return {channel: tuple(each) for channel, each in reads.items()}

    @cached_property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """For each channel, the channels that are made from it."""
        readers: dict[str, dict[str, None]] = {each: {} for each in self.order}
        for channel, read in self.reads.items():
            for each in read:
                readers[each][channel] = None
        return {channel: tuple(each) for channel, each in readers.items()}

    @cached_property
    def whole(self) -> frozenset[str]:
        """The channels all of whose deltas lead from one whole state to the next."""
        piecewise = {
            output.channel
            for operator in self.operators
            if not operator.in_place
            for output in operator.outputs
        }
        return frozenset(self.order) - piecewise

    def above(self, channels: Iterable[str]) -> set[str]:
        """These channels and all channels that they are made from, directly or not."""
        above: set[str] = set()
        waiting = list(channels)
        while waiting:
            channel = waiting.pop()
            if channel not in above:
                above.add(channel)
                waiting.extend(self.reads[channel])
        return above

    @cached_property
    def position(self) -> dict[str, int]:
        """The position of each channel in the order."""
        return {channel: number for number, channel in enumerate(self.order)}

    @cached_property
    def _writers(self) -> dict[str, list[Operator]]:
        writers: dict[str, list[Operator]] = {}
        for operator in self.operators:
            for output in operator.outputs:
                writers.setdefault(output.channel, []).append(operator)
        return writers

    def operators_into(self, channels: Iterable[str]) -> list[Operator]:
        """The operators that make blocks on one of these channels."""
        operators = {id(o): o for each in channels for o in self._writers.get(each, ())}
        return list(operators.values())

    @cached_property
    def _keys(self) -> dict[str, dict[str, dict[str, str]]]:
        """For each channel and each channel read by it, its own pathway per pathway of that one."""
        maps: dict[str, dict[str, dict[str, str]]] = {}
        own: dict[str, tuple[str, ...]] = {each: (each,) for each in self.inputs}
        for channel in self.order:
            read = self.reads[channel]
            by_source = channel in self.strict and all(each in self.whole for each in read)
            keys = {each: {p: self._key(p, each, by_source) for p in own[each]} for each in read}
            maps[channel] = keys
            own.setdefault(
                channel, tuple(dict.fromkeys(k for each in keys.values() for k in each.values()))
            )
        return maps

    def _key(self, pathway: str, channel: str, by_source: bool) -> str:
        if by_source:
            return source_of(pathway)
        if channel in self.inputs:
            return channel
        if channel in self.whole:
            pathway = along(pathway, self.named)
        return through(pathway, channel)

    def key_map(self, channel: str, read: str) -> Mapping[str, str]:
        """Which pathway of `read` becomes which pathway of `channel`."""
        return self._keys[channel][read]

    def pathways(self, channel: str) -> tuple[str, ...]:
        """The keys that provenance on a channel has."""
        return self._pathways[channel]

    @cached_property
    def _pathways(self) -> dict[str, tuple[str, ...]]:
        pathways: dict[str, tuple[str, ...]] = {each: (each,) for each in self.inputs}
        for channel, maps in self._keys.items():
            keys = (key for each in maps.values() for key in each.values())
            pathways.setdefault(channel, tuple(dict.fromkeys(keys)))
        return pathways

    def through_input(self, channel: str, read: str) -> tuple[str, ...]:
        """The pathways of `channel` that come through a direct input."""
        return tuple(dict.fromkeys(self._keys[channel][read].values()))

    @cached_property
    def courses(self) -> dict[str, dict[str, frozenset[Course]]]:
        """For each channel, the courses that each of its pathways stands for.

        A course has the source, the tables on the way that a bound names, and the direct input.
        """
        courses_of: dict[str, dict[str, frozenset[Course]]] = {}
        for channel in self.order:
            courses: dict[str, set[Course]] = {}
            for read, keys in self._keys[channel].items():
                for pathway, key in keys.items():
                    before = courses_of[read].get(pathway) or [()]
                    courses.setdefault(key, set()).update((*self._kept(c), read) for c in before)
            courses_of[channel] = {key: frozenset(each) for key, each in courses.items()}
        return courses_of

    def _kept(self, course: Course) -> Course:
        """A course for readers downstream: it has its direct input only if a bound names it."""
        return course if len(course) < 2 or course[-1] in self.named else course[:-1]

    @cached_property
    def _alike(self) -> frozenset[tuple[str, str]]:
        """Pairs of a channel and one that it reads, if both have the same names for pathways."""
        return frozenset(
            (channel, read)
            for channel, maps in self._keys.items()
            for read, keys in maps.items()
            if all(pathway == key for pathway, key in keys.items())
            and keys.keys() == set(self.pathways(channel))
        )

    def composed(self, channel: str, parts: Sequence[tuple[str, Provenance]]) -> Provenance:
        """The provenance of a block on `channel` made from blocks with these provenances."""
        if len(parts) == 1 and (channel, parts[0][0]) in self._alike:
            return parts[0][1]
        reflected: dict[str, frozenset[int]] = {}
        maps = self._keys[channel]
        for read, provenance in parts:
            keys = maps[read]
            for pathway, versions in provenance.reflected.items():
                key = keys[pathway]
                known = reflected.get(key)
                reflected[key] = versions if known is None else known | versions
        return Provenance(reflected)

    def projected(self, channel: str, read: str, provenance: Provenance) -> Provenance:
        """The part of a snapshot's provenance that comes from `read`, in the pathways of `read`."""
        if (channel, read) in self._alike:
            return provenance
        held = provenance.reflected
        return Provenance(
            {
                pathway: held[key]
                for pathway, key in self._keys[channel][read].items()
                if key in held
            }
        )

    def recast(self, channel: str, provenance: Provenance) -> Provenance:
        """A snapshot's provenance in the present pathways; it may have been made with other ones.

        A pathway that was then one with others gets the versions that all of them reflected. So no
        pathway counts as fresher than it is.
        """
        reflected: dict[str, frozenset[int]] = {}
        today, held = self.pathways(channel), self._told_today(provenance).reflected
        for source in {source_of(key) for key in today}:
            keys = {key for key in today if source_of(key) == source}
            then = {key for key in held if source_of(key) == source}
            together = frozenset[int]().union(*(held[key] for key in then))
            reflected |= {key: held[key] if then == keys else together for key in keys}
        return Provenance({key: versions for key, versions in reflected.items() if versions})

    def _told_today(self, provenance: Provenance) -> Provenance:
        """A provenance without those tables on the way that no bound in this workflow names."""
        held = provenance.reflected
        if all(pathway.count(">") < 2 for pathway in held):
            return provenance
        reflected: dict[str, frozenset[int]] = {}
        for pathway, versions in held.items():
            before, _, read = pathway.rpartition(">")
            key = through(along(before, self.named), read) if before else read
            reflected[key] = reflected.get(key, frozenset()) | versions
        return Provenance(reflected)
