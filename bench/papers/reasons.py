"""Why do some ratios of Tables 5 and 6 of 004 differ from the paper's?

The paper says that rates, selectivities, costs and sizes were real ones, and not which; ours are
other ones. Where that is the reason, the ratio has to move towards the paper's when the assumption
is changed, and only that. Each line of the result is one such change: the assumption, what it is
changed to, and the ratio that comes out, beside the paper's.

Run: `python bench/papers/reasons.py [--seeds 2] [--only greedy]`. It writes
bench/results/004/reasons.md.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from math import pi, sqrt
from statistics import fmean

import table5
import table6
from _table import RESULTS, WORKFLOWS, magnitude

from springhouse.planner.blocks import BASE
from springhouse.planner.costs import Estimate, Reading
from springhouse.planner.operators import Operator, Variant
from springhouse.simulate.paper_workflows import PAPER_WORKFLOWS
from springhouse.simulate.workflow import (
    Algorithm,
    Conditions,
    Method,
    Outcome,
    WorkflowRun,
)
from springhouse.simulate.workflow_model import Model
from springhouse.units import Dice

WEEKS = 7 * 24.0
MOST_CPU_SECONDS = 40.0


@dataclass(frozen=True)
class World:
    """A model, changed; for longer than the table's runs if `hours` are said."""

    said: str
    model: Callable[[Model], Model] = lambda model: model
    hours: float | None = None


@dataclass(frozen=True)
class Reason:
    """An assumption that is changed step by step, and the ratios that should follow."""

    name: str
    workflow: str
    whos: Sequence[str]
    numbers: Sequence[str]
    worlds: Sequence[World]
    hours: float


@dataclass(frozen=True)
class Wandering(Model):
    """A model in which a base is off by 50 % again each time that something is put to it."""

    dice: Dice = field(default_factory=lambda: Dice(1))

    def estimate(self, operator: Operator, readings: Sequence[Reading]) -> Estimate:
        found = super().estimate(operator, readings)
        if operator.variant is not Variant.CONVERT or operator.outputs[0].kind != BASE:
            return found
        off = max(self.dice.normal(1.0, 0.5 * sqrt(pi / 2)), 0.01)
        return Estimate(found.cost, tuple(off * rows for rows in found.rows))


def as_it_is() -> World:
    return World("as it is")


def history(share: float, hours: float | None = None) -> World:
    """Less was there at the beginning."""

    def less(model: Model) -> Model:
        return replace(model, history={name: share * r for name, r in model.history.items()})

    longer = f", {hours:g} hours" if hours else ""
    return World(f"{share:g} of the history{longer}", less, hours)


def clicks(times: float) -> World:
    """A click is more to read."""

    def heavier(model: Model) -> Model:
        widths = {**model.widths, "clicks": times * model.widths["clicks"]}
        return replace(model, widths=widths)

    return World(f"a click is {times:g} times as much to read", heavier)


def wandering() -> World:
    def noisy(model: Model) -> Model:
        return Wandering(**{each.name: getattr(model, each.name) for each in fields(model)})

    return World("what converters make is off by 50 %, too", noisy)


REASONS = [
    *(
        Reason(
            f"{workflow}: RANDOM recomputes histories",
            workflow,
            ["RANDOM"],
            ["lag", "cost"],
            [as_it_is(), history(0.01), history(0.0001), history(0.0001, 36.0)],
            12.0,
        )
        for workflow in WORKFLOWS
    ),
    *(
        Reason(
            f"{workflow}: GREEDY's steps are cheap",
            workflow,
            ["GREEDY"],
            ["lag"],
            [as_it_is(), history(0.0001), history(0.0001, 36.0)],
            12.0,
        )
        for workflow in WORKFLOWS
    ),
    Reason(
        "FeedbackPrioritization: batch reads the history",
        "FeedbackPrioritization",
        ["Async/Batch", "Sync/Batch"],
        ["lag"],
        [as_it_is(), history(0.1), history(0.0165)],
        10 * WEEKS,
    ),
    Reason(
        "FeedbackPrioritization: sizes wander",
        "FeedbackPrioritization",
        ["Sync/Batch"],
        ["cost"],
        [as_it_is(), wandering()],
        10 * WEEKS,
    ),
    Reason(
        "SearchPreprocessing: clicks cost little",
        "SearchPreprocessing",
        ["Sync/Incr"],
        ["cost"],
        [as_it_is(), clicks(30.0), clicks(300.0)],
        2 * WEEKS,
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="", help="reasons whose name contains this")
    asked = parser.parse_args()
    wanted = [each for each in REASONS if asked.only.lower() in each.name.lower()]
    lines = [
        "## What was changed to see whether it is the reason",
        "",
        (
            f"`bench/papers/reasons.py`, average of {asked.seeds} seeds. A ratio is of lag or cost "
            "to that of Async/Incr, or of DYN. PROG., in the same changed world. Runs are given up "
            f"after {MOST_CPU_SECONDS:g} CPU seconds; costs are then per hour that was run."
        ),
        "",
        "| reason | changed to | ratio | ours | the paper's | |",
        "|---|---|---|---:|---:|---|",
    ]
    for reason in wanted:
        for line in tried(reason, range(1, asked.seeds + 1)):
            print(line, flush=True)
            lines.append(line)
    if not asked.only:
        (RESULTS / "reasons.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def tried(reason: Reason, seeds: Sequence[int]) -> Iterator[str]:
    """A line for each world, method and number."""
    paper = table5.PAPER if reason.whos[0] in {each.value for each in Method} else table6.PAPER
    best = next(who for workflow, who in paper if workflow == reason.workflow)
    for world in reason.worlds:
        first = [outcome(reason, world, best, seed) for seed in seeds]
        for who in reason.whos:
            found = [outcome(reason, world, who, seed) for seed in seeds]
            for name in reason.numbers:
                ours = number(found, name) / number(first, name)
                theirs = getattr(paper[reason.workflow, who], name) / getattr(
                    paper[reason.workflow, best], name
                )
                verdict = "within ten times" if magnitude(ours, theirs) else ""
                yield (
                    f"| {reason.name} | {world.said} | {name} of {who} | {ours:,.3g} | "
                    f"{theirs:,.3g} | {verdict} |"
                )


def outcome(reason: Reason, world: World, who: str, seed: int) -> Outcome:
    methods = {each.value: each for each in Method}
    algorithms = {each.value: each for each in Algorithm}
    run = WorkflowRun(
        world.model(PAPER_WORKFLOWS[WORKFLOWS[reason.workflow]]()),
        Conditions(world.hours or reason.hours, seed=seed),
        methods.get(who, Method.ASYNC_INCR),
        algorithms.get(who, Algorithm.DYNAMIC),
    )
    end = time.process_time() + MOST_CPU_SECONDS
    found = run.run(give_up=lambda: time.process_time() > end)
    print(f"{reason.name}, {world.said}, {who}, seed {seed}", file=sys.stderr, flush=True)
    return found


def number(outcomes: Sequence[Outcome], name: str) -> float:
    if name == "lag":
        return fmean(each.median_lag for each in outcomes)
    return fmean(each.cost_cpu_hours / each.hours for each in outcomes)


if __name__ == "__main__":
    main()
