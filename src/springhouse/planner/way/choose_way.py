"""In which way is a view refreshed now, and why?

One function, from facts to one immutable decision. Facts are numbers of rows, what past refreshes
took, and what is stored; the decision is a way, what becomes of the state, what that should cost,
the sentence that says why, and the other ways with their cost. Who forecasts, who orders and who
performs ask the same function; only who performs can have a closer look at files.

    only its query        recomputed, without state
    nothing to build on   recomputed; with state, if its absence has cost what building it costs,
                          or once, to try, when that costs little
    a way that was asked  that one
    else                  the cheapest one, except that state is not given up before its use has
                          cost as much as building it again would
    a statement failed    recomputed by its query, and the failure is remembered

The closer look reads which keys changed. It is taken only where numbers of rows leave it open.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from springhouse.planner.logs import PastRefresh
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.failed_statement import FailedStatement, failed_again
from springhouse.planner.way.past_refreshes import Past
from springhouse.planner.way.refresh_cost import WAYS, WayCost
from springhouse.planner.way.state_worth import (
    missed_so_far,
    overpaid_so_far,
    worth_building,
    worth_keeping,
)

STATE_ROWS = 150_000
"""Inputs of more rows than this are worth building state for, before anything is known."""

_CLEARLY = 2.0
"""A way that costs so many times less than the others is taken without a second look."""

_TRIED = 2
"""So many refreshes in a row tell what a way takes."""

_WRONG = 1.5
"""A way is tried once though it seems to cost up to so many times what a recomputation does."""

_TRY = 0.1
"""What such a try may cost, as a part of what the refreshes so far took."""

_LEAST_SHARE = 0.25
"""Building state costs at least this part of a recomputation, as far as anybody can measure."""


class Look(Protocol):
    """A closer look at the files that a change needs."""

    def cost(self, way: WidgetVariant) -> WayCost:
        """What a way would take, with the rows in the files that the changed keys leave."""
        ...


@dataclass(frozen=True)
class WayFacts:
    """What there is to know about one refresh before anything is read.

    `changes` are the costs of the ways that take the changes in, the usual one first; `building` is
    a recomputation that builds state. `only` says why the view has no way but its query, `anew` why
    nothing that is stored can be used, and `missing` why there is no state; `is_new` if no rows of
    today's definition are stored. `keep` is true where state is needed whatever it costs, and
    `asked` is a way that was asked for. `unchanged` if no input has other rows, and `failed` is
    what is remembered of a statement that failed.
    """

    batch: WayCost
    building: WayCost
    changes: tuple[WayCost, ...]
    past: Past
    refreshes: Sequence[PastRefresh] = ()
    only: str = ""
    anew: str = ""
    missing: str = ""
    is_new: bool = False
    keep: bool = False
    # Not by recomputing: the view asks for increments.
    incremental: bool = False
    asked: WidgetVariant | None = None
    unchanged: bool = False
    failed: FailedStatement | None = None

    @property
    def is_plain(self) -> bool:
        """Whether there is state to build on and nothing in the way: then rows alone decide."""
        return not (self.only or self.anew or self.missing or self.unchanged or self.failed)


@dataclass(frozen=True)
class Decision:
    """The way that a refresh goes.

    `foreseen` is what the formula said before anything was read; `missed` are the seconds that
    state would have saved. It is `sure` if no other way comes near, as far as numbers of rows tell.
    One that comes after a failure `teaches` nothing: part of its time went into what failed. What
    `failed` is still to be remembered.
    """

    why: str
    cost: WayCost
    foreseen: float = 0.0
    builds_state: bool = False
    missed: float = 0.0
    alternatives: tuple[WayCost, ...] = ()
    sure: bool = False
    teaches: bool = True
    failed: FailedStatement | None = None

    @property
    def way(self) -> WidgetVariant:
        return self.cost.way

    @property
    def seconds(self) -> float:
        """What it should take."""
        return self.cost.seconds

    @property
    def expected(self) -> float:
        """What the formula says, for the past to learn from; 0 if there is nothing to learn."""
        return self.cost.estimate if self.teaches else 0.0


def choose_way(facts: WayFacts, look: Look | None = None) -> Decision:
    """How to refresh a view."""
    if facts.only:
        # How many rows a function reads is not known: it says nothing about the formula.
        return replace(_recomputed(facts, facts.only, state=False), teaches=False)
    if facts.asked is WidgetVariant.ASYNCHRONOUS:
        return _driven(facts, look)
    if facts.failed is not None:
        return _after_a_pause(facts, facts.failed)
    if facts.anew:
        large = facts.batch.rows_read > STATE_ROWS
        return _recomputed(facts, facts.anew, state=facts.keep or large or not facts.is_new)
    if facts.unchanged:
        nothing = WayCost(WidgetVariant.INCREMENTAL, queries=0, rows_read=0)
        return Decision("nothing changed", nothing, sure=True, teaches=False)
    if facts.missing:
        return _without_state(facts)
    return _with_state(facts, look)


def rebuilt(facts: WayFacts, why: str, *, state: bool) -> Decision:
    """The refresh of a view of which something stored turned out not to be usable."""
    return replace(_recomputed(facts, why, state=state and not facts.only), teaches=False)


def without_statements(facts: WayFacts, problem: str, before: FailedStatement | None) -> Decision:
    """The refresh of a view after Spark failed in one of its compiled statements."""
    decision = _recomputed(facts, f"{_FAILED}: {problem}", state=False)
    return replace(decision, teaches=False, failed=failed_again(before, problem))


_FAILED = "an incremental refresh failed"


def _after_a_pause(facts: WayFacts, failed: FailedStatement) -> Decision:
    """A compiled statement failed before: tried again now and then, with new state."""
    if failed.pause > 0:
        decision = _recomputed(facts, f"{_FAILED} before: {failed.problem}", state=False)
        return replace(decision, failed=replace(failed, pause=failed.pause - 1))
    decision = _recomputed(facts, f"{_FAILED} before, and is tried again", state=True)
    return replace(decision, failed=failed)


def _driven(facts: WayFacts, look: Look | None) -> Decision:
    """A refresh from the new rows of one input: its ways and times were compared before."""
    (unread,) = facts.changes
    cost = look.cost(WidgetVariant.ASYNCHRONOUS) if look is not None else unread
    cost = facts.past.corrected(cost)
    return Decision("nothing new" if facts.unchanged else str(cost), cost, unread.estimate)


def _without_state(facts: WayFacts) -> Decision:
    """Nothing to build on: state is worth building if it would have been used."""
    batch = facts.past.corrected(facts.batch, hopeful=True)
    other = min(_unread(facts), key=_seconds)
    saved = max(batch.seconds - other.seconds, 0.0)
    building = _building_seconds(facts)
    if facts.keep:
        return _recomputed(facts, facts.missing, state=True)
    cost = saved + missed_so_far(facts.refreshes)
    why = f"{facts.missing}: its absence has cost {cost:.1f} s, building it takes {building:.1f} s"
    if worth_building(saved, facts.refreshes, building):
        return _recomputed(facts, why, state=True)
    if _is_worth_a_try(facts, other, batch, building):
        return _recomputed(facts, f"{why}; built once, to try what was never tried", state=True)
    return replace(_recomputed(facts, why, state=False), missed=saved, alternatives=(other,))


def _is_worth_a_try(facts: WayFacts, other: WayCost, batch: WayCost, building: float) -> bool:
    """Whether to build state once though the formula is against it.

    Nothing else would ever show that the formula is wrong about this view.
    """
    full = WAYS[WidgetVariant.BATCH]
    tried = any(each.variant != full for each in facts.refreshes)
    spent = sum(each.seconds for each in facts.refreshes)
    extra = building + max(other.seconds - batch.seconds, 0.0)
    return not tried and other.seconds < _WRONG * batch.seconds and extra <= _TRY * spent


def _recomputed(facts: WayFacts, why: str, *, state: bool) -> Decision:
    cost = facts.past.corrected(facts.building if state else facts.batch)
    return Decision(why, cost, cost.estimate, state, sure=True)


def _with_state(facts: WayFacts, look: Look | None) -> Decision:
    batch = facts.past.corrected(facts.batch)
    if facts.asked is WidgetVariant.BATCH:
        return _given_up(facts, f"{WAYS[WidgetVariant.BATCH]} was asked for", batch, ())
    unread = sorted(_unread(facts, hopeful=True), key=_seconds)
    clear = _is_clear(facts, batch, unread)
    # Without the rows that would have to be read, it is the least that a way can take.
    least = min(facts.past.corrected(each).seconds for each in unread)
    open_ = not clear and (facts.incremental or least <= batch.seconds)
    ways = _looked_at(facts, unread, look) if look is not None and open_ else unread
    best, *others = ways
    foreseen = next(each.estimate for each in facts.changes if each.way is best.way)
    by_change = Decision(
        f"{best}, against {batch}", best, foreseen, alternatives=(batch, *others), sure=clear
    )
    building = _building_seconds(facts)
    over = best.seconds - batch.seconds
    if facts.incremental or over <= 0.0:
        return by_change
    overpaid = over + overpaid_so_far(facts.refreshes, batch.seconds)
    if overpaid <= building:
        again = f"; building its state again would take {building:.1f} s"
        return replace(by_change, why=by_change.why + again, sure=False)
    return _given_up(facts, f"{batch}, against {best}", batch, (best, *others), clear=clear)


def _given_up(
    facts: WayFacts, why: str, batch: WayCost, others: tuple[WayCost, ...], *, clear: bool = True
) -> Decision:
    """A recomputation, though there is state: it is built anew, or given up."""
    building = _building_seconds(facts)
    state = facts.keep or worth_keeping(facts.refreshes, batch.seconds, building)
    outcome = "built anew" if state else "given up"
    why = f"{why}; its state, which takes {building:.1f} s to build, is {outcome}"
    return replace(_recomputed(facts, why, state=state), alternatives=others, sure=clear)


def _unread(facts: WayFacts, *, hopeful: bool = False) -> list[WayCost]:
    """What the ways that are allowed should take, as far as numbers of rows tell."""
    allowed = [each for each in facts.changes if facts.asked in (None, each.way)]
    return [
        facts.past.corrected(each, unread=True, hopeful=hopeful)
        for each in allowed or facts.changes[:1]
    ]


def _is_clear(facts: WayFacts, batch: WayCost, unread: Sequence[WayCost]) -> bool:
    """Whether numbers of rows decide: no other way comes near, and this one was gone lately."""
    if len(unread) == 1 and facts.incremental:
        return True
    first, *others = sorted([batch, *unread], key=_seconds)
    far = all(each.seconds >= _CLEARLY * first.seconds for each in others)
    last = [each.variant for each in facts.refreshes[-_TRIED:]]
    return far and last == [WAYS[first.way]] * _TRIED


def _looked_at(facts: WayFacts, unread: Sequence[WayCost], look: Look) -> list[WayCost]:
    """The ways, the cheapest first, with a closer look at those that may be the cheapest."""
    best = facts.past.corrected(look.cost(unread[0].way), hopeful=True)
    ways = [best]
    for each in unread[1:]:
        near = each.seconds < best.seconds
        ways.append(facts.past.corrected(look.cost(each.way), hopeful=True) if near else each)
    return sorted(ways, key=_seconds)


def _building_seconds(facts: WayFacts) -> float:
    """What it takes to build state beyond a plain recomputation."""
    plain = facts.past.corrected(facts.batch).seconds
    return max(facts.past.corrected(facts.building).seconds - plain, _LEAST_SHARE * plain)


def _seconds(cost: WayCost) -> float:
    return cost.seconds
