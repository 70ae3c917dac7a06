"""A pretend machine: true costs that no formula knows, and the choice of the way in a loop.

A seed decides everything: the speed of the machine and whether it changes half-way, noise, pauses,
a cold start, the sizes of the changes, and the errors of the formula. Each view and way has its own
errors, one for the fixed part and one for the rows. A refresh leaves the entry that the log would
have, and the next decision knows nothing else.
"""

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log

from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.choose_way import Decision, WayFacts, choose_way
from springhouse.planner.way.past_refreshes import REMEMBERED, Learned
from springhouse.planner.way.refresh_cost import WAYS, WayCost, with_state

REFRESHES = 40
"""Of each view."""

FIRST = 3
"""So many refreshes of each view are there to learn from."""

AS_GOOD = 1.15
"""A way is a best one if it takes at most so many times as long as the best."""

ALLOWED = 1.1

OFF = 0.25
"""How far the formula is off for each way of a view, as a logarithm."""

_BY_CHANGE = (WidgetVariant.INCREMENTAL, WidgetVariant.GROUP_RECOMPUTE)
_ALL = (WidgetVariant.BATCH, *_BY_CHANGE)


@dataclass(frozen=True)
class Took:
    """The log's entry of a refresh."""

    kind: str
    at: float
    variant: str
    stateful: bool
    seconds: float
    expected: float
    foreseen: float
    missed: float


@dataclass(frozen=True)
class PretendView:
    """A view: its size, costs that the formula can't know, and the part that changes each turn."""

    name: str
    rows: int
    queries: int
    relations: int
    met: float
    read_again: float
    hidden_rows: int
    fractions: tuple[float, ...]
    # By way: factors between the true cost and the formula, for the fixed part and for the rows.
    truth: dict[str, tuple[float, float]]
    # The part of the rows in files that the changed keys need.
    near: tuple[float, ...]

    def batch(self) -> WayCost:
        return WayCost(WidgetVariant.BATCH, 1, self.rows)

    def building(self) -> WayCost:
        return with_state(self.batch(), self.read_again, self.hidden_rows)

    def unread(self, way: WidgetVariant, turn: int) -> WayCost:
        changed = max(int(self.fractions[turn] * self.rows), 1)
        again = way is WidgetVariant.GROUP_RECOMPUTE
        met = int(changed * self.met) if again else 0
        return WayCost(way, self.queries + again, 0, changed, self.relations, min(met, self.rows))

    def looked(self, way: WidgetVariant, turn: int) -> WayCost:
        return replace(self.unread(way, turn), rows_read=int(self.near[turn] * self.rows))

    def true_seconds(self, way: WidgetVariant, turn: int, *, state: bool = False) -> float:
        """The seconds on a machine that is as fast as the formula's."""
        if way is WidgetVariant.BATCH:
            plain = self._true(self.batch(), "full")
            return plain + (self.building().state_seconds * self.truth["state"][0] if state else 0)
        return self._true(self.looked(way, turn), WAYS[way])

    def _true(self, cost: WayCost, way: str) -> float:
        fixed = replace(cost, rows_read=0, rows_changed=0, rows_met=0).estimate
        of_start, of_rows = self.truth[way]
        return of_start * fixed + of_rows * (cost.estimate - fixed)


@dataclass(frozen=True)
class World:
    """One machine with its views; `pauses` and `noise` come by view and turn."""

    seed: int
    views: tuple[PretendView, ...]
    speeds: tuple[float, ...]
    noise: dict[tuple[str, int], float]
    pauses: dict[tuple[str, int], float]

    def seconds(self, view: str, turn: int, true: float) -> float:
        """The duration of a refresh that takes `true` seconds on the formula's machine."""
        return true * self.noise[view, turn] / self.speeds[turn] + self.pauses[view, turn]

    @property
    def what(self) -> str:
        return f"seed {self.seed}: {len(self.views)} views, speeds {set(self.speeds)}"


def world(seed: int) -> World:
    """A random world for this seed."""
    dice = random.Random(seed)
    speed = _between(dice, 0.25, 10.0)
    later = _between(dice, 0.25, 10.0) if dice.random() < 0.5 else speed
    half = dice.randrange(REFRESHES // 4, 3 * REFRESHES // 4)
    speeds = tuple(speed if turn < half else later for turn in range(REFRESHES))
    deviation = dice.uniform(0.05, 0.3)
    pauses = dice.choice((0.0, 0.03))
    views = tuple(_view(dice, f"v{number}") for number in range(dice.choice((1, 1, 2, 3, 6))))
    noise, pause = {}, {}
    for turn in range(REFRESHES):
        for view in views:
            cold = dice.uniform(1.0, 4.0) if turn == 0 and view is views[0] else 1.0
            noise[view.name, turn] = exp(dice.gauss(0.0, deviation)) * cold
            pause[view.name, turn] = dice.uniform(0.2, 10.0) if dice.random() < pauses else 0.0
    return World(seed, views, speeds, noise, pause)


def _between(dice: random.Random, low: float, high: float) -> float:
    """A random value between these limits; small ones are as likely as large ones."""
    return exp(dice.uniform(log(low), log(high)))


def _view(dice: random.Random, name: str) -> PretendView:
    rows = int(_between(dice, 1e4, 3e7))
    own = dice.gauss(0.0, 0.4)
    truth = {
        way: (exp(own + dice.gauss(0.0, OFF)), exp(own + dice.gauss(0.0, OFF)))
        for way in ("full", "incremental")
    }
    # A group recompute runs the queries of increments, and a few more.
    truth["group recompute"] = tuple(
        each * exp(dice.gauss(0.0, 0.2)) for each in truth["incremental"]
    )
    truth["state"] = (exp(own + dice.gauss(0.0, OFF)), 0.0)
    return PretendView(
        name,
        rows,
        queries=dice.randint(1, 4),
        relations=dice.randint(2, 9),
        met=_between(dice, 1.0, 100.0),
        read_again=dice.uniform(0.0, 1.0),
        hidden_rows=int(rows * dice.choice((0.0, 0.0, 0.1, 0.5))),
        fractions=_fractions(dice),
        truth=truth,
        near=tuple(dice.uniform(0.0, 0.3) for _ in range(REFRESHES)),
    )


def _fractions(dice: random.Random) -> tuple[float, ...]:
    """The part of the rows that changes: constant, alternating, or larger from some turn on."""
    first, second = _between(dice, 1e-6, 1.0), _between(dice, 1e-6, 1.0)
    pattern = dice.choice(("same", "same", "in turn", "later", "any"))
    day, often = dice.randrange(5, REFRESHES), dice.randint(2, 8)
    found = []
    for turn in range(REFRESHES):
        other = {"same": False, "in turn": turn % often == 0, "later": turn >= day}
        about = second if other.get(pattern, dice.random() < 0.5) else first
        found.append(min(about * _between(dice, 0.7, 1.4), 1.0))
    return tuple(found)


class _Looked:
    def __init__(self, view: PretendView, turn: int) -> None:
        self._view, self._turn = view, turn
        self.looks = 0

    def cost(self, way: WidgetVariant) -> WayCost:
        self.looks += 1
        return self._view.looked(way, self._turn)


@dataclass(frozen=True)
class Outcome:
    """The result for one view: all seconds, those of the best fixed way, and of one new state."""

    view: str
    seconds: float
    fixed: dict[str, float]
    state: float
    chosen: tuple[str, ...]
    best: tuple[str, ...]
    good: tuple[bool, ...]
    looks: int
    why: tuple[str, ...]
    took: tuple[float, ...]

    @property
    def over(self) -> float:
        """The seconds as a multiple of the best fixed way plus one change of state."""
        return (self.seconds - self.state) / min(self.fixed.values())

    @property
    def share(self) -> float:
        """The part of the refreshes after the first few that took a best way."""
        return sum(self.good[FIRST:]) / len(self.good[FIRST:])


def run(world: World) -> list[Outcome]:
    """Refresh all views in turn, once per turn."""
    learned = Learned()
    notes: dict[str, list[Took]] = {view.name: [] for view in world.views}
    done: dict[str, list[tuple[Decision, float, int]]] = {view.name: [] for view in world.views}
    for turn in range(REFRESHES):
        for view in world.views:
            look = _Looked(view, turn)
            decision = _decided(view, turn, notes[view.name], learned, look)
            true = view.true_seconds(decision.way, turn, state=decision.builds_state)
            seconds = world.seconds(view.name, turn, true)
            note = _note(decision, seconds, notes[view.name], len(done[view.name]))
            notes[view.name].append(note)
            learned.take(view.name, note)
            done[view.name].append((decision, seconds, look.looks))
    return [_outcome(world, view, done[view.name]) for view in world.views]


def _decided(
    view: PretendView, turn: int, notes: Sequence[Took], learned: Learned, look: _Looked
) -> Decision:
    facts = WayFacts(
        view.batch(),
        view.building(),
        tuple(view.unread(way, turn) for way in _BY_CHANGE),
        learned.past(view.name),
        notes[-REMEMBERED:],
        anew="its first refresh" if not notes else "",
        missing="no state is stored yet" if notes and not notes[-1].stateful else "",
        is_new=not notes,
    )
    return choose_way(facts, look)


def _note(decision: Decision, seconds: float, notes: Sequence[Took], at: int) -> Took:
    by_change = decision.way is not WidgetVariant.BATCH
    return Took(
        "merge" if by_change else "replace",
        float(at),
        WAYS[decision.way],
        by_change or decision.builds_state,
        seconds,
        decision.cost.estimate,
        decision.foreseen,
        decision.missed,
    )


def _outcome(
    world: World, view: PretendView, done: Sequence[tuple[Decision, float, int]]
) -> Outcome:
    true = [{way: view.true_seconds(way, turn) for way in _ALL} for turn in range(REFRESHES)]
    built = view.true_seconds(WidgetVariant.BATCH, 0, state=True)
    fixed = {
        WAYS[way]: sum(
            # The first incremental refresh also builds the state that later refreshes need.
            world.seconds(view.name, turn, built if not turn and way in _BY_CHANGE else each[way])
            for turn, each in enumerate(true)
        )
        for way in _ALL
    }
    decisions = [decision for decision, _, _ in done]
    return Outcome(
        view.name,
        sum(seconds for _, seconds, _ in done),
        fixed,
        built / min(world.speeds),
        tuple(WAYS[each.way] + ("+" if each.builds_state else "") for each in decisions),
        tuple(WAYS[min(each, key=lambda way: each[way])] for each in true),
        _were_good(true, decisions, built - true[0][WidgetVariant.BATCH]),
        sum(looks for _, _, looks in done),
        tuple(each.why for each in decisions),
        tuple(seconds for _, seconds, _ in done),
    )


def _were_good(
    true: Sequence[dict[WidgetVariant, float]], decisions: Sequence[Decision], building: float
) -> tuple[bool, ...]:
    """Whether each refresh took a best way, as far as anybody could know without the future.

    Building state is right only after its absence has cost as much as building it. Giving it up is
    right only after its use has cost as much. Until then, going on as before is right.
    """
    good, has_state, missed, overpaid = [], False, 0.0, 0.0
    for seconds, decision in zip(true, decisions, strict=True):
        took = seconds[decision.way]
        by_change = min(seconds[way] for way in _BY_CHANGE)
        saved = seconds[WidgetVariant.BATCH] - by_change
        right = took <= AS_GOOD * min(seconds.values())
        if has_state:
            overpaid = max(overpaid - saved, 0.0)
            goes_on = decision.way is not WidgetVariant.BATCH and took <= AS_GOOD * by_change
            right = right or (goes_on and overpaid <= building)
        else:
            right = right or missed <= building
            missed += max(saved, 0.0)
        good.append(right)
        has = decision.way is not WidgetVariant.BATCH or decision.builds_state
        if has != has_state:
            missed = overpaid = 0.0
        has_state = has
    return tuple(good)


def main() -> None:
    """Print the results of one world, refresh by refresh."""
    drawn = world(int(sys.argv[1]))
    lines = [drawn.what]
    for each in run(drawn):
        fixed = ", ".join(f"{way} {seconds:.1f} s" for way, seconds in each.fixed.items())
        lines.append(f"{each.view}: {each.seconds:.1f} s; {fixed}; a new state {each.state:.1f} s")
        for turn, way in enumerate(each.chosen):
            best = "" if each.good[turn] else f"  best: {each.best[turn]}"
            lines.append(f"  {turn:2} {way:16} {each.took[turn]:7.2f} s{best}  {each.why[turn]}")
    print("\n".join(lines))  # noqa: T201  whoever replays a world reads it


if __name__ == "__main__":
    main()
