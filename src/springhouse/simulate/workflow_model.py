"""Where does the data of a simulated workflow come from, and what does its work cost?

This is a standard cost model, as 004 assumes one. An invocation reads and writes a number of bytes,
and one CPU handles a number of them per second. Some work takes more time per byte, and every
invocation takes a fixed time to start. Costs are in CPU hours. The number of output rows is a share
of the input rows.
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
"""20 MB/s: the rate of one core of a map-reduce cluster of the paper's time."""

START_CPU_HOURS = 0.001
"""3.6 s of CPU time to start an operator."""


@dataclass(frozen=True)
class SimulatedSource:
    """Data from outside: a batch of so many rows each period."""

    channel: str
    period_seconds: float
    rows: float
    kind: Kind


@dataclass(frozen=True)
class Yields:
    """The output rows of an operator for each row of each input, per block that it makes.

    `most` is the limit of the output rows, `effort` the work per byte. `skimmed` is the part of
    each input row that the operator looks at. An output that only points to rows is not `written`.
    """

    rows: tuple[tuple[float, ...], ...] = ((1.0,),)
    most: float = inf
    effort: float = 1.0
    skimmed: float = 1.0
    written: bool = True


_AS_MANY = Yields()


@dataclass(frozen=True)
class Model:
    """A workflow, its sources, and the sizes of its channels."""

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
    """`widths` are the bytes per row and `history` the rows at the beginning, by channel. `grows`
    is the number of rows that a base gains per row of a delta, `changes` the share of the rows of a
    new base that differ from the old one. `start_cpu_hours` is the fixed cost of an invocation."""

    def estimate(self, operator: Operator, readings: Sequence[InputRead]) -> Estimate:
        """The cost of an invocation, and its output rows: the planner's `Costs`."""
        if operator.variant is WidgetVariant.CONVERT:
            return self._conversion(operator, readings[0])
        yields = self.yields.get(operator.name, _AS_MANY)
        read = 0.0
        moves = operator.moves
        rows_out = [0.0] * len(operator.outputs)
        for number, (port, each) in enumerate(zip(operator.ports, readings, strict=True)):
            read += (each.base_rows + each.delta_rows) * self.widths[port.channel]
            rows = each.delta_rows if moves else each.base_rows
            for place in range(len(rows_out)):
                shares = yields.rows[min(place, len(yields.rows) - 1)]
                rows_out[place] += rows * shares[min(number, len(shares) - 1)]
        bytes_worked = read * yields.skimmed
        for place, output in enumerate(operator.outputs):
            rows_out[place] = min(rows_out[place], yields.most)
            if yields.written:
                bytes_worked += rows_out[place] * self.widths[output.channel]
        return Estimate(self._cpu_hours(bytes_worked * yields.effort), tuple(rows_out))

    def _conversion(self, operator: Operator, reading: InputRead) -> Estimate:
        """A converter reads the blocks that it converts, and the old base if it needs that."""
        (output,) = operator.outputs
        channel = output.channel
        (source,) = operator.ports[0].deltas
        if output.kind == BASE:
            rows = reading.base_rows + self.grows.get(channel, 1.0) * reading.delta_rows
        elif source == BASE:
            rows = self.changes.get(channel, 0.1) * reading.delta_rows
        elif is_weak(source):
            # The old rows go, and the new rows come.
            rows = 2.0 * reading.delta_rows
        else:
            rows = reading.delta_rows
        bytes_worked = (reading.base_rows + reading.delta_rows + rows) * self.widths[channel]
        return Estimate(self._cpu_hours(bytes_worked), (rows,))

    def _cpu_hours(self, worked_bytes: float) -> float:
        return self.start_cpu_hours + worked_bytes / BYTES_PER_CPU_HOUR
