"""Which part of a workflow does a search look at?

A planner is asked again and again, and mostly the same few channels have to move. What follows from
which channels those are, and not from what lies on them, is worked out once: who reads where, who
makes which kinds of blocks, and how inconsistent an output may be.
"""

from collections.abc import Iterable, Mapping

from springhouse.planner.blocks import BASE, MONOTONE, STRONG, Kind
from springhouse.planner.bounds import NO_LIMITS, Limits
from springhouse.planner.operators import Base, Operator
from springhouse.planner.workflow import Workflow


class Socket:
    """One port of an operator, and what may be read there."""

    __slots__ = ("kinds", "number", "port", "stands_without_base")

    def __init__(self, operator: Operator, number: int) -> None:
        self.number, self.port = number, operator.ports[number]
        self.kinds = {*self.port.deltas}
        if STRONG in self.kinds:
            self.kinds.add(MONOTONE)
        if self.port.base is not Base.NONE:
            self.kinds.add(BASE)
        # A side of which only deltas are read may stand still wherever any block of it ends, but
        # that is of use only if another one moves.
        self.stands_without_base = self.port.base is Base.NONE and len(operator.ports) > 1


class Outlet:
    """An operator: where it reads, and how inconsistent what it makes may be."""

    __slots__ = ("channel", "operator", "slack", "sockets", "untouched")

    def __init__(self, operator: Operator, limits: Mapping[str, Limits]) -> None:
        self.operator = operator
        self.channel = operator.outputs[0].channel
        loosest = max(limits.get(o.channel, NO_LIMITS).inconsistency for o in operator.outputs)
        self.slack = 0.0 if operator.synchronous else loosest
        ports = list(enumerate(operator.ports))
        self.untouched = [number for number, port in ports if port.untouched]
        self.sockets = [Socket(operator, number) for number, port in ports if not port.untouched]


class Part:
    """The channels that may be made, and those that these are made from."""

    def __init__(
        self, workflow: Workflow, made: Iterable[str], limits: Mapping[str, Limits]
    ) -> None:
        made = tuple(made)
        read = (each for channel in made for each in workflow.reads[channel])
        # In the order of the workflow, so that equal costs are always decided in the same way.
        self.channels = sorted({*made, *read}, key=workflow.position.__getitem__)
        self.outlets = [Outlet(each, limits) for each in workflow.operators_into(made)]
        self.in_place = {each.channel for each in self.outlets if each.operator.in_place}
        self.reading_bases: dict[str, list[tuple[Operator, int]]] = {
            channel: [] for channel in self.channels
        }
        self.makes: dict[str, set[Kind]] = {channel: set() for channel in self.channels}
        for outlet in self.outlets:
            operator = outlet.operator
            for output in operator.outputs:
                self.makes.setdefault(output.channel, set()).add(output.kind)
                if output.kind == STRONG and operator.keeps_monotone:
                    self.makes[output.channel].add(MONOTONE)
            for socket in outlet.sockets:
                if socket.port.base is not Base.NONE:
                    self.reading_bases[socket.port.channel].append((operator, socket.number))
        for channel in self.channels:
            for converter in workflow.converters.get(channel, ()):
                if converter.reads_base:
                    self.reading_bases[channel].append((converter.operator, 0))
