"""How fresh would a workflow be, and what would it cost?

This is a pretend world for the planner (004 section 7). Batches of data arrive. Whenever an arrival
or time breaks a bound on the staleness of an output, the run asks the planner and carries its plan
out, on an elastic cluster, where a plan of c CPU hours takes c / machines hours. The planner's
expectations are not exact: the true cost of an invocation, and the true number of rows that it puts
out, are the expected ones times a number from a normal distribution that is 50 % off on average.
Converters only write rows differently, so their numbers of rows are exact, unless the conditions
say otherwise. The lag of a repair lasts from when the bound broke until the output is within it
again. It is in CPU hours, too: the hours that it took, times the machines.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from heapq import heapify, heappop, heappush
from math import inf, pi, sqrt
from statistics import median

from springhouse.planner.bounds import NO_LIMITS, Bound, BoundInconsistency, Times
from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.search.blocks import BASE, Block, apply_block
from springhouse.planner.search.invocation_costs import InputRead
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.planner import Planner
from springhouse.planner.search.pruning import Switches
from springhouse.planner.search.workflow import Workflow
from springhouse.planner.search.workflow_plan import PlanStep, Situation, WorkflowPlan
from springhouse.simulate.baseline_planners import greedy, plan_one_step, random
from springhouse.simulate.cached_costs import CachedCosts
from springhouse.simulate.workflow_checker import Checker
from springhouse.simulate.workflow_model import Model
from springhouse.units import Dice, Instant

_DEVIATION = 0.5 * sqrt(pi / 2)
"""The standard deviation of a normal distribution whose mean absolute deviation is one half."""

_LEAST = 0.01
_FORGET_EVERY = 4


class Method(Enum):
    """The permitted kind of processing (004 section 7.2)."""

    ASYNC_INCR = "Async/Incr"
    SYNC_INCR = "Sync/Incr"
    ASYNC_BATCH = "Async/Batch"
    SYNC_BATCH = "Sync/Batch"


class Algorithm(Enum):
    """The planning algorithm."""

    DYNAMIC = "DYN. PROG."
    GREEDY = "GREEDY"
    RANDOM = "RANDOM"


@dataclass(frozen=True)
class WorkflowConditions:
    """The world: its duration, the size of the cluster, and the error of expectations.

    With `noisy_converters` the rows of converters are off by 50 %, too. A base that takes in every
    batch is then off again with each of them, and its size wanders.

    The run asks the planner when a bound breaks, and then again until the bound holds. Or, as one
    may read section 6.1, only `on_arrival` of data: a planner of single steps then needs as many
    arrivals as steps.

    A simple planner does not make a block again, even if the block is part of a chain by now. With
    `makes_again` it does, which the paper does not rule out.

    For the first `warm_hours` dynamic programming plans, without measures, whatever the algorithm
    is. So a short run may begin in the middle of a day or a week.
    """

    hours: float = 70 * 24.0
    machines: float = 1_000.0
    noise: bool = True
    seed: int = 1
    noisy_converters: bool = False
    on_arrival: bool = False
    warm_hours: float = 0.0
    makes_again: bool = False


@dataclass(frozen=True)
class Repair:
    """The repair of a broken bound, and its lag."""

    at: Instant
    pathway: str
    lag_cpu_hours: float


@dataclass(frozen=True)
class WorkflowOutcome:
    """The outcome of one run. `variants` counts invocations by operator."""

    workflow: str
    method: Method
    algorithm: Algorithm
    hours: float
    repairs: tuple[Repair, ...]
    cost_cpu_hours: float
    plans: int
    steps: int
    planning_seconds: float
    worst_planning_seconds: float
    explored: int
    missed: int
    published: int
    worst_inconsistency_hours: float
    variants: Mapping[str, int] = field(default_factory=dict)

    @property
    def median_lag(self) -> float:
        """The median lag of the repairs, in CPU hours."""
        return median(each.lag_cpu_hours for each in self.repairs) if self.repairs else 0.0


def restrict(model: Model, method: Method) -> Model:
    """The model with only the processing that a method permits.

    With synchronous methods, channels may hold only consistent blocks. With batch methods, no
    operator reads or makes deltas; only the arriving deltas are added to their base. Batch
    operators are then the only ones, and with the asynchronous method they read what bounds allow.
    """
    flow, bounds = model.workflow, model.bounds
    outputs = model.outputs
    if method in (Method.SYNC_INCR, Method.SYNC_BATCH):
        derived = [each for each in flow.order if each not in flow.inputs]
        strict: list[Bound] = [BoundInconsistency(each, 0.0) for each in derived]
        bounds = (*bounds, *strict)
    if method in (Method.ASYNC_BATCH, Method.SYNC_BATCH):
        together = method is Method.SYNC_BATCH
        operators = tuple(
            replace(each, synchronous=each.synchronous and together)
            for each in flow.operators
            if not each.moves
        )
        converters = {
            name: tuple(c for c in found if c.target == BASE)
            for name, found in flow.converters.items()
            if name in flow.inputs
        }
        flow = Workflow(flow.inputs, operators, converters, flow.strict, flow.named)
        outputs = dict.fromkeys(outputs, (BASE,))
    return replace(model, workflow=flow, bounds=bounds, outputs=outputs)


class WorkflowRun:
    """One run. `stopwatch` returns seconds; without one, planning takes no time."""

    def __init__(
        self,
        model: Model,
        conditions: WorkflowConditions,
        method: Method = Method.ASYNC_INCR,
        algorithm: Algorithm = Algorithm.DYNAMIC,
        *,
        switches: Switches | None = None,
        stopwatch: Callable[[], float] | None = None,
    ) -> None:
        self.model = restrict(model, method)
        self.conditions = conditions
        self.method, self.algorithm = method, algorithm
        self.planner = Planner(self.model.workflow, self.model.bounds, self.model.outputs, switches)
        self.checker = Checker(self.model.bounds, self.model.outputs)
        self.now = Instant(0.0)
        self._costs = CachedCosts(self.model)
        self._stopwatch = stopwatch or (lambda: 0.0)
        self._arrivals_dice = Dice(conditions.seed)
        self._dice = Dice(conditions.seed + 1_000_003)
        self._pick = Dice(conditions.seed + 2_000_003)
        self._versions: dict[str, list[int]] = {}
        self._timestamps: dict[str, list[Instant]] = {}
        self._channels: dict[str, Channel] = {}
        self._blocks: dict[str, dict[Block, Block]] = {}
        # A planner of single steps remembers the blocks that it made, and stores chains as blocks.
        self._remembers = algorithm is not Algorithm.DYNAMIC
        self._made: set[Block] = set()
        self._held: dict[str, Provenance] = {}
        self._arrivals: list[tuple[float, int]] = []
        self._measure_from_now()
        self._begin()

    def run(
        self,
        progress: Callable[[float], None] | None = None,
        give_up: Callable[[], bool] | None = None,
    ) -> WorkflowOutcome:
        """The outcome; `progress` gets the passed hours, and `give_up` ends the run early."""
        self._warm_up()
        began = self.now
        lasts = self.conditions.hours * 3600.0
        end = began + lasts
        reported_at = began
        while self.now < end and not (give_up is not None and give_up()):
            if not self._repair() or self.conditions.on_arrival:
                self._wait(end)
            if progress is not None and self.now - reported_at >= lasts / 100:
                reported_at = self.now
                progress((min(self.now, end) - began) / 3600.0)
        return self._outcome(self.now - began)

    @property
    def explored(self) -> int:
        """The number of blocks that the planner has looked at so far."""
        return self._explored

    def _warm_up(self) -> None:
        """Let dynamic programming plan until the measured part of the run begins."""
        algorithm, self.algorithm = self.algorithm, Algorithm.DYNAMIC
        while self.now < self.conditions.warm_hours * 3600.0:
            if not self._repair():
                self._wait(self.conditions.warm_hours * 3600.0)
        self.algorithm = algorithm
        self._measure_from_now()

    def _measure_from_now(self) -> None:
        self._repairs: list[Repair] = []
        self._cost = 0.0
        self._planning = self._worst_planning = 0.0
        self._plans = self._steps = self._explored = self._missed = 0
        self._variants: dict[str, int] = {}
        self._published_before = self.checker.blocks

    # --- The world ------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Begin with all channels as of one moment, long ago, when the first batches arrived."""
        flow = self.model.workflow
        state: dict[str, Provenance] = {}
        for number, source in enumerate(self.model.sources):
            name = source.channel
            self._versions[name], self._timestamps[name] = [0], [Instant(-1.0)]
            self._channels[name] = Channel((0,), (Instant(-1.0),))
            state[name] = Provenance({name: frozenset({0})})
            first = self._arrivals_dice.between(0.0, source.period_seconds)
            self._arrivals.append((first, number))
        heapify(self._arrivals)
        for channel in flow.order:
            if channel not in state:
                read = [(each, state[each]) for each in flow.reads[channel]]
                state[channel] = flow.composed(channel, read)
            block = Block(channel, BASE, state[channel], rows=self.model.history[channel])
            self._blocks[channel] = {block: block}
        for channel in self.model.outputs:
            self._held[channel] = state[channel]
            self.checker.begin(channel, state[channel])

    def _arrive(self) -> None:
        at, number = heappop(self._arrivals)
        source = self.model.sources[number]
        heappush(self._arrivals, (at + source.period_seconds, number))
        name = source.channel
        version = self._versions[name][-1] + 1
        self._versions[name].append(version)
        self._timestamps[name].append(Instant(at))
        rows = source.rows * self._arrivals_dice.between(0.75, 1.25)
        start = Provenance({name: frozenset({version - 1})})
        end = Provenance({name: frozenset({version})})
        self._channels[name] = Channel(tuple(self._versions[name]), tuple(self._timestamps[name]))
        self._put(Block(name, source.kind, end, start, rows))

    def _put(self, block: Block) -> None:
        self._blocks[block.channel].setdefault(block, block)

    def _advance(self, until: float) -> None:
        """Let time pass, and batches arrive."""
        while self._arrivals[0][0] <= until:
            self._arrive()
        self.now = Instant(until)

    def _wait(self, end: float) -> None:
        """Wait until a batch arrives or a bound breaks."""
        situation = self.situation()
        due = min(self.planner.due(situation, each) for each in self.model.outputs)
        nearest = self._arrivals[0][0]
        # A bound that is broken already, and that no plan can repair, waits for data.
        until = min(nearest, due) if due > self.now else nearest
        self._advance(min(until, end))

    def situation(self) -> Situation:
        """What the planner is reported_at."""
        blocks = {name: tuple(found) for name, found in self._blocks.items()}
        return Situation(self.now, self._channels, blocks, self._held)

    # --- Repairs --------------------------------------------------------------------------------

    def _repair(self) -> bool:
        """Plan, and carry the plan out; return whether there was anything to do."""
        situation = self.situation()
        broken = self._broken(situation)
        if not broken:
            return False
        before = self._stopwatch()
        plan = self._make_plan(situation)
        seconds = self._stopwatch() - before
        self._planning += seconds
        self._worst_planning = max(self._worst_planning, seconds)
        self._plans += 1
        self._explored += plan.explored
        if not plan.granted and not plan.steps:
            self._missed += 1
            return False
        cost = self._carry_out(plan)
        self._advance(self.now + 3600.0 * cost / self.conditions.machines)
        for wish in plan.granted:
            for block in wish.blocks:
                self._publish(wish.channel, block)
        self._record_repairs(broken)
        if self._plans % _FORGET_EVERY == 0:
            self._forget()
        return True

    def _make_plan(self, situation: Situation) -> WorkflowPlan:
        match self.algorithm:
            case Algorithm.DYNAMIC:
                return self.planner.plan(situation, self._costs, alternatives=False)
            case Algorithm.GREEDY:
                return plan_one_step(self.planner, situation, self._costs, greedy, self._made)
            case Algorithm.RANDOM:
                pick = random(self._pick)
                return plan_one_step(self.planner, situation, self._costs, pick, self._made)

    def _carry_out(self, plan: WorkflowPlan) -> float:
        """Make the blocks of a plan; return the true CPU hours."""
        rows: dict[Block, float] = {}
        total = 0.0
        for step in plan.steps:
            total += self._invoke(step, rows)
            if self._remembers and not self.conditions.makes_again:
                self._made.update(step.outputs)
        self._cost += total
        return total

    def _invoke(self, step: PlanStep, rows: dict[Block, float]) -> float:
        operator = step.operator
        if operator.variant is WidgetVariant.CHAIN:
            for block in step.outputs:
                rows[block] = sum(self._rows(each, rows) for each in step.inputs)
                if self._remembers:
                    self._put(block.with_rows(rows[block]))
            return 0.0
        self._steps += 1
        self._variants[operator.name] = self._variants.get(operator.name, 0) + 1
        noisy = operator.variant is not WidgetVariant.CONVERT or self.conditions.noisy_converters
        estimate = self.model.estimate(operator, self._readings(step, rows))
        for block, made in zip(step.outputs, estimate.rows, strict=True):
            rows[block] = made * self._error_factor() if noisy else made
            self._put(block.with_rows(rows[block]))
        return estimate.cost * self._error_factor()

    def _readings(self, step: PlanStep, rows: Mapping[Block, float]) -> list[InputRead]:
        """The rows that a step really reads, by port."""
        readings = []
        for port in step.operator.ports:
            base = delta = 0.0
            blocks = [block for block in step.inputs if block.channel == port.channel]
            if step.operator.variant is WidgetVariant.CONVERT and port.deltas == (BASE,):
                base, delta = (self._rows(block, rows) for block in blocks)
            else:
                base = sum(self._rows(block, rows) for block in blocks if block.kind == BASE)
                delta = sum(self._rows(block, rows) for block in blocks if block.kind != BASE)
            readings.append(InputRead(base, delta))
        return readings

    def _rows(self, block: Block, rows: Mapping[Block, float]) -> float:
        made = rows.get(block)
        if made is not None:
            return made
        stored = self._blocks[block.channel].get(block)
        return block.rows if stored is None else stored.rows

    def _error_factor(self) -> float:
        if not self.conditions.noise:
            return 1.0
        return max(self._dice.normal(1.0, _DEVIATION), _LEAST)

    def _publish(self, channel: str, block: Block) -> None:
        state = apply_block(self._held[channel], block)
        assert state is not None
        self._held[channel] = state
        self.checker.published(channel, block, self._versions, self._timestamps)

    def _forget(self) -> None:
        """Drop blocks that no plan needs any more, and join adjacent deltas."""
        before = self._stopwatch()
        useful = self.planner.useful(self.situation())
        self._planning += self._stopwatch() - before
        self._blocks = {name: {block: block for block in found} for name, found in useful.items()}

    # --- Measures -------------------------------------------------------------------------------

    def _broken(self, situation: Situation) -> dict[tuple[str, str], float]:
        """The broken bounds on outputs, and since when."""
        times = Times(situation.channels, situation.now)
        broken = {}
        for channel in self.model.outputs:
            limits = self.planner.limits.get(channel, NO_LIMITS)
            held = self._held[channel]
            for pathway in times.violated(limits, held):
                stale = times.stale_at(pathway, held.reflected.get(pathway, frozenset()))
                broken[channel, pathway] = stale + limits.staleness[pathway]
        return broken

    def _record_repairs(self, broken: Mapping[tuple[str, str], float]) -> None:
        """Record the lag of bounds that were broken and hold now for the data of that time."""
        now = self._broken(self.situation())
        for (channel, pathway), since in broken.items():
            if now.get((channel, pathway), inf) > since:
                lag = (self.now - since) / 3600.0 * self.conditions.machines
                self._repairs.append(Repair(self.now, pathway, lag))

    def _outcome(self, seconds: float) -> WorkflowOutcome:
        # A bound that is still broken at the end counts with its lag until then.
        for (_, pathway), since in self._broken(self.situation()).items():
            lag = (self.now - since) / 3600.0 * self.conditions.machines
            self._repairs.append(Repair(self.now, pathway, lag))
        return WorkflowOutcome(
            self.model.name,
            self.method,
            self.algorithm,
            seconds / 3600.0,
            tuple(self._repairs),
            self._cost,
            self._plans,
            self._steps,
            self._planning,
            self._worst_planning,
            self._explored,
            self._missed,
            self.checker.blocks - self._published_before,
            self.checker.worst_inconsistency / 3600.0,
            self._variants,
        )
