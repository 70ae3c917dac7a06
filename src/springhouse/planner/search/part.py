"""Which part of a workflow does a search look at?

A planner plans again and again, and usually the same few channels have to move. A `Part` holds the
facts that depend only on these channels and not on their blocks: which operators read which
channels, which kinds of blocks they make, and how inconsistent an output may be. These facts are
computed once.
"""

from collections.abc import Iterable, Mapping

from springhouse.planner.bounds import NO_LIMITS, ChannelBounds
from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG, Kind, accepted_kinds, fits
from springhouse.planner.search.converters import Converter
from springhouse.planner.search.operators import Base, Operator
from springhouse.planner.search.workflow import Workflow


class Socket:
    """One port of an operator, and the kinds of blocks that it reads."""

    __slots__ = ("kinds", "number", "port", "stands_without_base")

    def __init__(self, operator: Operator, number: int) -> None:
        self.number, self.port = number, operator.ports[number]
        self.kinds = accepted_kinds(self.port.deltas)
        if self.port.base is not Base.NONE:
            self.kinds |= {BASE}
        # If an operator reads only deltas of an input, the input may stand still at the end of any
        # of its blocks. This is useful only if another input moves.
        others = (port for other, port in enumerate(operator.ports) if other != number)
        self.stands_without_base = self.port.base is Base.NONE and any(p.moves for p in others)


class Outlet:
    """An operator: its input channels, and how inconsistent its output may be."""

    __slots__ = (
        "channel",
        "is_joining",
        "operator",
        "slack",
        "sockets",
        "sources",
        "untouched",
    )

    def __init__(self, operator: Operator, limits: Mapping[str, ChannelBounds]) -> None:
        self.operator = operator
        self.sources = tuple(port.channel for port in operator.ports)
        self.is_joining = len(self.sources) > 1
        self.channel = operator.outputs[0].channel
        loosest = max(limits.get(o.channel, NO_LIMITS).inconsistency for o in operator.outputs)
        self.slack = 0.0 if operator.synchronous else loosest
        ports = list(enumerate(operator.ports))
        self.untouched = [number for number, port in ports if port.untouched]
        self.sockets = [Socket(operator, number) for number, port in ports if not port.untouched]


class Part:
    """The channels on which blocks may be planned, and the channels that these read."""

    def __init__(
        self, workflow: Workflow, made: Iterable[str], limits: Mapping[str, ChannelBounds]
    ) -> None:
        made = tuple(made)
        read = (each for channel in made for each in workflow.reads[channel])
        # In the order of the workflow, so that ties of costs always give the same plan.
        self.channels = sorted({*made, *read}, key=workflow.position.__getitem__)
        self.limits = {channel: limits.get(channel, NO_LIMITS) for channel in self.channels}
        self.with_one_pathway = frozenset(
            channel for channel in self.channels if len(workflow.pathways(channel)) == 1
        )
        self.outlets = [Outlet(each, limits) for each in workflow.operators_into(made)]
        self.in_place = {each.channel for each in self.outlets if each.operator.in_place}
        self.reading_bases: dict[str, list[tuple[Operator, int]]] = {
            channel: [] for channel in self.channels
        }
        self.makes: dict[str, set[Kind]] = {channel: set() for channel in self.channels}
        self._sockets: dict[str, list[tuple[Outlet, Socket]]] = {
            channel: [] for channel in self.channels
        }
        self._readers: dict[tuple[str, Kind], list[tuple[Outlet, Socket]]] = {}
        self._converters: dict[tuple[str, Kind], list[Converter]] = {}
        self._workflow = workflow
        for outlet in self.outlets:
            self._note_kinds(outlet.operator)
            self._note_sockets(outlet)
        for channel in self.channels:
            self._note_converters(channel)

    def _note_kinds(self, operator: Operator) -> None:
        """Note which kinds of blocks an operator makes."""
        for output in operator.outputs:
            self.makes.setdefault(output.channel, set()).add(output.kind)
            if output.kind == STRONG and operator.keeps_monotone:
                self.makes[output.channel].add(MONOTONE)

    def _note_converters(self, channel: str) -> None:
        """Note which converters of a channel read its bases."""
        for converter in self._workflow.converters.get(channel, ()):
            if converter.reads_base:
                self.reading_bases[channel].append((converter.operator, 0))

    def _note_sockets(self, outlet: Outlet) -> None:
        """Note the channels that an operator reads."""
        for socket in outlet.sockets:
            self._sockets[socket.port.channel].append((outlet, socket))
            if socket.port.base is not Base.NONE:
                self.reading_bases[socket.port.channel].append((outlet.operator, socket.number))

    def readers(self, channel: str, kind: Kind) -> list[tuple[Outlet, Socket]]:
        """The sockets that read blocks of a kind, or may stand still at the end of such a block."""
        readers = self._readers.get((channel, kind))
        if readers is None:
            readers = self._readers[channel, kind] = [
                (outlet, socket)
                for outlet, socket in self._sockets[channel]
                if kind in socket.kinds or socket.stands_without_base
            ]
        return readers

    def converters(self, channel: str, kind: Kind) -> list[Converter]:
        """The converters that read a block of a kind: to convert it, or as the old base."""
        converters = self._converters.get((channel, kind))
        if converters is None:
            converters = self._converters[channel, kind] = [
                each
                for each in self._workflow.converters.get(channel, ())
                if (each.reads_base if kind == BASE else fits(kind, each.source))
            ]
        return converters
