"""What is known of a workflow that is simulated: where data comes from, and what work costs?

A standard cost model, as 004 assumes one: an invocation reads and writes so many bytes, and one CPU
handles so many per second; some work is heavier per byte than others, and every invocation has a
start. Costs are in CPU hours. The number of rows that come out is a share of those that go in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from springhouse.planner.bounds import Bound
from springhouse.planner.search.blocks import BASE, Kind, is_weak
from springhouse.planner.search.invocation_costs import Estimate, InputRead
from springhouse.planner.search.operators import Operator, WidgetVariant
from springhouse.planner.search.workflow import Workflow

BYTES_PER_CPU_HOUR = 20e6 * 3600.0
"""20 MB/s: what one core of a map-reduce cluster of the paper's time parses or writes."""

START_CPU_HOURS = 0.001
"""3.6 s of CPU time to start an operator, whatever it reads."""


@dataclass(frozen=True)
class SimulatedSource:
    """Data that comes from outside: a batch of so many rows each period."""

    channel: str
    period_seconds: float
    rows: float
    kind: Kind


@dataclass(frozen=True)
class Yields:
    """How many rows come out of an operator for each row of each input, per block that it makes.

    `most` is the most that can come out, `effort` how heavy a byte is to work on. Inputs of which
    only a small part of each row is looked at are `skimmed`, and a part that is only pointed to is
    not `written`.
    """

    rows: tuple[tuple[float, ...], ...] = ((1.0,),)
    most: float = inf
    effort: float = 1.0
    skimmed: float = 1.0
    written: bool = True


_AS_MANY = Yields()


@dataclass(frozen=True)
class Model:
    """A workflow in its world."""

    name: str
    workflow: Workflow
    bounds: tuple[Bound, ...]
    outputs: Mapping[str, tuple[Kind, ...]]
    sources: tuple[SimulatedSource, ...]
    widths: Mapping[str, float]
    history: Mapping[str, float]
    yields: Mapping[str, Yields] = field(default_factory=dict)
    grows: Mapping[str, float] = field(default_factory=dict)
    changes: Mapping[str, float] = field(default_factory=dict)
    start_cpu_hours: float = START_CPU_HOURS
    """`widths` are bytes per row and `history` rows at the beginning, by channel; `grows` is how
    many rows a base gains per row of a delta, `changes` which share of the rows of a new base
    differs from the old one. `start_cpu_hours` is what an invocation takes, whatever it reads."""

    def estimate(self, operator: Operator, readings: Sequence[InputRead]) -> Estimate:
        """What an invocation costs, and what comes out: the planner's `Costs`."""
        if operator.variant is WidgetVariant.CONVERT:
            return self._conversion(operator, readings[0])
        yields = self.yields.get(operator.name, _AS_MANY)
        read = 0.0
        moves = operator.moves
        made = [0.0] * len(operator.outputs)
        for number, (port, each) in enumerate(zip(operator.ports, readings, strict=True)):
            read += (each.base_rows + each.delta_rows) * self.widths[port.channel]
            rows = each.delta_rows if moves else each.base_rows
            for place in range(len(made)):
                shares = yields.rows[min(place, len(yields.rows) - 1)]
                made[place] += rows * shares[min(number, len(shares) - 1)]
        worked = read * yields.skimmed
        for place, output in enumerate(operator.outputs):
            made[place] = min(made[place], yields.most)
            if yields.written:
                worked += made[place] * self.widths[output.channel]
        return Estimate(self._cpu_hours(worked * yields.effort), tuple(made))

    def _conversion(self, operator: Operator, reading: InputRead) -> Estimate:
        """A converter reads the old base where it needs it, and what is converted."""
        (output,) = operator.outputs
        channel = output.channel
        (source,) = operator.ports[0].deltas
        if output.kind == BASE:
            rows = reading.base_rows + self.grows.get(channel, 1.0) * reading.delta_rows
        elif source == BASE:
            rows = self.changes.get(channel, 0.1) * reading.delta_rows
        elif is_weak(source):
            # What is superseded goes, what supersedes it comes.
            rows = 2.0 * reading.delta_rows
        else:
            rows = reading.delta_rows
        worked = (reading.base_rows + reading.delta_rows + rows) * self.widths[channel]
        return Estimate(self._cpu_hours(worked), (rows,))

    def _cpu_hours(self, worked_bytes: float) -> float:
        return self.start_cpu_hours + worked_bytes / BYTES_PER_CPU_HOUR
