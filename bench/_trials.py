"""What is a random workload, and how does a policy compare with simple ones on it?

A trial depends on its seed alone, so the seed is enough to run it again. The family:

    tables      3 to 16: alone, in chains, in trees or with diamonds (each shape a quarter)
    tracks      1 to 4
    periods     1 to 100 s; half of the trials within a factor of 3, half over the whole range
    costs       the start (alpha) is 5 to 95 % of a refresh of one period; refreshes differ in
                length by a factor of up to 100
    priorities  all 1 (a quarter of the trials), else 0.001 to 100
    promises    in half of the trials, on a third of the tables: 0.5 to 30 periods
    load        0.3 to 3 of what the tracks can do, before any data is loaded together
    slowdowns   in a third of the trials, 2 to 5 times as slow for a fifth to a half of the time
    learning    in half of the trials; prior costs are exact in half, and else start and data are
                wrong by up to a factor of 10 each (2 if nothing is learned)

No table alone needs more than half of a track to load its data, slow times included: otherwise it
would fall behind under every policy. All tables together may need more than all tracks. Then every
policy falls behind without end, and the trial is called hopeless.

A promise allows a table and its derived tables to be stale, and a policy that heeds promises uses
that. So a table counts as no fresher than its promises require:

    counted(t) = max(staleness(t), allowed),   allowed = promise + period, or 0 without a promise

A table without a promise has the allowance of the tables that it reads, plus the time to load
as much.

The family was changed while the policy was tuned on it (seeds 0 to 760 and 10,000 to 10,160): the
need of one table, the length of slow times and runs, the errors of prior costs if nothing is
learned, and the definition of stale with promises. All of these changes made bounds easier to keep.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log
from typing import NamedTuple

from springhouse.refresh.policy import PAPER, Policy
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.simulate.policy_words import FIFO
from springhouse.simulate.pretend_schedule import PretendWarehouse, ScheduleConditions
from springhouse.simulate.slowdowns import NEVER, Slowdowns
from springhouse.simulate.workload import Workload, cost_of
from springhouse.units import Dice, Seconds

PLAIN = replace(PAPER, tracks=FIFO.tracks, chopping=None, heed_promises=False)

SHAPES = ("alone", "chains", "trees", "diamonds")
_MOST_OF_A_TRACK = 0.5
_BOUNDED, _GROWING = 1.2, 1.5


@dataclass(frozen=True)
class Trial:
    """A workload, its world, and the length of the run."""

    seed: int
    workload: Workload
    conditions: ScheduleConditions
    shape: str
    load: float
    seconds: float

    @property
    def is_hopeless(self) -> bool:
        """Whether more data comes than all tracks can load."""
        data = sum(cost_of(table).beta for table in self.workload.tables)
        return data * self.conditions.slowdowns.mean > self.conditions.tracks


class StalenessHalves(NamedTuple):
    """The weighted staleness in the first and in the second half of a run."""

    first: float
    second: float

    def times(self, other: "StalenessHalves") -> float:
        """By which factor the tables are staler than in the other run."""
        return sum(self) / max(sum(other), 1e-9)


@dataclass(frozen=True)
class TrialVerdict:
    """The result of a policy in a trial, beside FIFO and plain Max Benefit with inheritance."""

    trial: Trial
    ours: StalenessHalves
    fifo: StalenessHalves
    plain: StalenessHalves

    @property
    def grows(self) -> bool:
        """Whether tables become staler and staler although under FIFO they do not."""
        bounded = self.fifo.second <= _BOUNDED * self.fifo.first
        worse = self.ours.second > max(_GROWING * self.ours.first, self.fifo.second)
        return bounded and worse


def judge(seed: int, policy: Policy) -> TrialVerdict:
    """Run the trial of this seed."""
    trial = draw(seed)
    return TrialVerdict(trial, *(halves(trial, each) for each in (policy, FIFO, PLAIN)))


def draw(seed: int) -> Trial:
    """The trial of this seed."""
    dice = Dice(seed)
    count, tracks = 3 + int(dice.between(0, 14)), 1 + int(dice.between(0, 4))
    shape = dice.pick(SHAPES)
    upstream = _upstream(shape, count, dice)
    lowest = _spread(1.0, 30.0, dice)
    wide = dice.pick((True, False))
    periods = [
        _spread(1.0, 100.0, dice) if wide else _spread(lowest, 3 * lowest, dice)
        for _ in range(count)
    ]
    plain, some = dice.pick((True, False, False, False)), dice.pick((True, False))
    tables: list[TableProfile] = []
    for number, reads in enumerate(upstream):
        periods[number] = max([periods[each] for each in reads], default=periods[number])
        tables.append(_table(number, reads, periods[number], plain, dice))
    workload = Workload(tuple(tables))
    if some:
        workload = Workload(tuple(_promised(each, workload, dice) for each in workload.tables))
    load = dice.between(0.3, 3.0)
    slow = dice.pick((True, False, False))
    longest = max(workload.periods.values())
    slowdowns = NEVER
    if slow:
        slowdowns = Slowdowns(dice.between(2.0, 5.0), dice.between(0.2, 0.5), 10.0 * longest)
    workload = workload.at_utilisation(load / slowdowns.mean, tracks)
    workload = Workload(tuple(_bearable(each, slowdowns.times) for each in workload.tables))
    learning, exact = dice.pick((True, False)), dice.pick((True, False))
    prior, wrong = {}, 10.0 if learning else 2.0
    if not exact:
        prior = {
            each.name: (_spread(1 / wrong, wrong, dice), _spread(1 / wrong, wrong, dice))
            for each in workload.tables
        }
    conditions = ScheduleConditions(tracks, slowdowns, 0.5, seed, learning, prior)
    return Trial(seed, workload, conditions, shape, load, 80.0 * longest)


def _upstream(shape: str, count: int, dice: Dice) -> list[tuple[int, ...]]:
    """The inputs of each table, by its number."""
    found: list[tuple[int, ...]] = []
    for number in range(count):
        if shape == "alone" or number == 0:
            found.append(())
        elif shape == "chains":
            found.append((number - 1,) if number % 4 and dice.between(0, 1) < 0.8 else ())
        elif shape == "trees":
            found.append((int(dice.between(0, number)),) if dice.between(0, 1) < 0.7 else ())
        else:
            reads = {int(dice.between(0, number)) for _ in range(2)}
            found.append(tuple(sorted(reads)) if dice.between(0, 1) < 0.6 else ())
    return found


def _table(
    number: int, reads: Sequence[int], period: float, plain: bool, dice: Dice
) -> TableProfile:
    seconds, start = _spread(0.01, 1.0, dice), dice.between(0.05, 0.95)
    return TableProfile(
        f"t{number}",
        tuple(f"t{each}" for each in reads),
        None if reads else Seconds(period),
        1.0 if plain else _spread(0.001, 100.0, dice),
        cost=LoadCost(seconds * start, seconds * (1.0 - start) / period),
    )


def _bearable(table: TableProfile, slow: float) -> TableProfile:
    """The table, limited so that one track can load its data as fast as the data arrives."""
    cost = cost_of(table)
    return replace(table, cost=LoadCost(cost.alpha, min(cost.beta, _MOST_OF_A_TRACK / slow)))


def _promised(table: TableProfile, workload: Workload, dice: Dice) -> TableProfile:
    if dice.between(0, 1) > 1 / 3:
        return table
    periods = _spread(0.5, 30.0, dice)
    return replace(table, promise_seconds=Seconds(periods * workload.periods[table.name]))


def _spread(low: float, high: float, dice: Dice) -> float:
    """A number whose order of magnitude is uniform."""
    return exp(dice.between(log(low), log(high)))


def allowed(trial: Trial) -> dict[str, float]:
    """How stale each table may be by its own promises and those of its inputs."""
    found: dict[str, float] = {}
    for table in trial.workload.tables:
        period = trial.workload.periods[table.name]
        if table.promise_seconds is not None:
            found[table.name] = table.promise_seconds + period
            continue
        inherited = max((found[each] for each in table.upstream), default=0.0)
        loads = cost_of(table).seconds(inherited) * trial.conditions.slowdowns.times
        found[table.name] = inherited + loads if inherited else 0.0
    return found


def halves(trial: Trial, policy: Policy) -> StalenessHalves:
    """The weighted staleness in the first and in the second half of a trial."""
    floor = allowed(trial)
    world = PretendWarehouse(trial.workload, trial.conditions, policy, floor)
    world.run(until=trial.seconds / 2)
    first = world.area()
    world.run(until=trial.seconds)
    tables = trial.workload.tables
    weight = sum(table.priority for table in tables)
    least = sum(table.priority * floor[table.name] for table in tables) / weight
    half = weight * trial.seconds / 2
    return StalenessHalves(first / half + least, (world.area() - first) / half + least)


def others_with_a_guest(seed: int, policy: Policy) -> tuple[float, float]:
    """The staleness of the others beside a guest, and beside one with an impossible promise.

    The guest has priority 0.001, and its refresh takes twice as long as its promise allows.
    """
    trial = draw(seed)
    tables = tuple(replace(table, promise_seconds=None) for table in trial.workload.tables)
    period = max(trial.workload.periods.values())
    cost = LoadCost(0.2 * period, 0.1)
    found = []
    for promise in (None, Seconds(0.15 * period)):
        guest = TableProfile("guest", (), Seconds(period), 0.001, promise, cost)
        world = PretendWarehouse(Workload((*tables, guest)), trial.conditions, policy)
        world.run(until=trial.seconds / 4)
        told = world.outcome().tables
        found.append(sum(t.priority * t.average_staleness for t in told if t.name != "guest"))
    return found[0], found[1]
