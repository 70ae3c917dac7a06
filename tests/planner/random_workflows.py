"""Small workflows with waiting data and bounds, all from one seed."""

from dataclasses import dataclass

from springhouse.planner.bounds import Bound, BoundInconsistency, BoundStaleness
from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG, Block
from springhouse.planner.search.invocation_costs import Estimate
from springhouse.planner.search.widgets import Widget, workflow
from springhouse.planner.search.workflow import Workflow
from springhouse.planner.search.workflow_plan import ANY_DELTA, Situation
from springhouse.simulate.paper_widgets import (
    distributive_aggregation,
    join,
    opaque,
    split,
    stateless,
    union,
)
from springhouse.units import Dice, Instant


@dataclass(frozen=True)
class Case:
    workflow: Workflow
    bounds: tuple[Bound, ...]
    outputs: dict[str, tuple]
    situation: Situation
    cost_of: dict[str, float]

    def estimate(self, operator, readings):
        return Estimate(self.cost_of[operator.name], tuple(1.0 for _ in operator.outputs))


def random_case(seed: int) -> Case:
    dice = Dice(seed)
    inputs = ["a", "b"][: dice.pick([1, 2, 2])]
    widgets: list[Widget] = []
    made: list[str] = []
    for number in range(dice.pick([1, 2, 2, 3])):
        sources = inputs + made
        name = f"c{number}"
        newest = sources[-1]
        other = dice.pick(sources)
        shape = dice.pick(["stateless", "join", "union", "sum", "opaque", "split"])
        if other == newest and shape in ("join", "union"):
            shape = "stateless"
        match shape:
            case "stateless":
                widgets.append(stateless(name, newest))
            case "join":
                widgets.append(join(name, newest, other))
            case "union":
                widgets.append(union(name, newest, other))
            case "sum":
                widgets.append(distributive_aggregation(name, newest, group_recompute=True))
            case "opaque":
                widgets.append(opaque(name, sorted({newest, other})))
            case "split":
                widgets.append(split(name, newest, [name, f"{name}x"]))
                made.append(f"{name}x")
        made.append(name)
    flow = workflow(inputs, widgets)
    channels, blocks, state = _data(dice, flow, inputs)
    outputs = {made[-1]: ANY_DELTA}
    if len(made) > 1 and dice.pick([True, False]):
        outputs[dice.pick(made[:-1])] = ANY_DELTA
    bounds: list[Bound] = []
    for channel in outputs:
        bounds += [
            BoundStaleness(channel, key, dice.pick([0.0, 0.0, 15.0, 100.0]))
            for key in flow.pathways(channel)
        ]
        if dice.pick([True, False]):
            bounds.append(BoundInconsistency(channel, dice.pick([0.0, 5.0, 25.0])))
    names = [each.name for each in flow.operators]
    names += [each.name for found in flow.converters.values() for each in found]
    cost_of = {name: float(dice.pick(range(1, 20))) for name in names}
    held = {channel: state[channel] for channel in outputs}
    situation = Situation(Instant(40.0), channels, blocks, held)
    return Case(flow, tuple(bounds), outputs, situation, cost_of)


def _data(dice, flow, inputs):
    """All tables reflect the first versions; one or two newer versions exist."""
    channels, blocks, state = {}, {}, {}
    for name in inputs:
        count = dice.pick([2, 2, 3])
        times = sorted(dice.between(1.0, 39.0) for _ in range(count - 1))
        channels[name] = Channel(tuple(range(count)), tuple(map(Instant, (0.0, *times))))
        at = [Provenance({name: frozenset({version})}) for version in range(count)]
        kind = dice.pick([STRONG, MONOTONE])
        blocks[name] = [Block(name, BASE, at[0])]
        blocks[name] += [Block(name, kind, at[v + 1], at[v]) for v in range(count - 1)]
        state[name] = at[0]
    for channel in flow.order:
        if channel not in inputs:
            read = [(each, state[each]) for each in flow.reads[channel]]
            state[channel] = flow.composed(channel, read)
            blocks[channel] = [Block(channel, BASE, state[channel])]
    return channels, blocks, state
