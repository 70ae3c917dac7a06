"""In which way is a view refreshed now, and why?

`choose_way` is one function from facts to one immutable decision. Facts are numbers of rows, the
seconds of past refreshes, and the stored state. The decision has a way, the future of the state,
the expected cost, the reason as a sentence, and the other ways with their costs. Forecast, plan and
execution call the same function. Only the execution can take a closer look at files.

    the view has only its query   recomputed, without state
    nothing to build on           recomputed; with state if the absence of state has cost as much as
                                  building it; or once, as a try, if that costs little
    the user asked for a way      that way
    else                          the cheapest way; but state is not given up before its use has
                                  cost as much as building it again
    a statement failed            recomputed by the query, and the failure is remembered

The closer look reads which keys changed. It happens only if numbers of rows can't decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from springhouse.planner.delta_logs import PastRefresh
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.failed_statement import FailedStatement, note_failure
from springhouse.planner.way.past_refreshes import Past
from springhouse.planner.way.refresh_cost import WAYS, WayCost
from springhouse.planner.way.state_worth import (
    missed_so_far,
    overpaid_so_far,
    worth_building,
    worth_keeping,
)

STATE_ROWS = 150_000
"""With more input rows than this, the first refresh builds state."""

_CLEARLY = 2.0
"""A way that is this many times cheaper than all others needs no closer look."""

_TRIED = 2
"""The number of refreshes in a row that show the cost of a way."""

_WRONG = 1.5
"""A way is tried once if it seems to cost up to this many times a recomputation."""

_TRY = 0.1
"""The most that a try may cost, as a part of the seconds of all refreshes so far."""

_LEAST_SHARE = 0.25
"""The assumed cost of building state is at least this part of a recomputation."""


class Look(Protocol):
    """A closer look at the files that a change needs."""

    def cost(self, way: WidgetVariant) -> WayCost:
        """The cost of a way, with the rows of those files that may hold changed keys."""
        ...


@dataclass(frozen=True)
class WayFacts:
    """The facts about one refresh that are known before the refresh reads anything.

    `batch` is the cost of a recomputation, `building` of a recomputation that also builds state,
    and `changes` are the costs of the ways that apply changes, the usual way first. `only` says why
    the view has no way but its query, `anew` why the stored rows are useless, and `missing` why
    there is no state. `is_new` says that no rows of the present definition are stored. With `keep`
    the view needs state at any cost. `asked` is a way that the user or the search chose.
    `unchanged` says that the rows of all inputs are the same. `failed` is a statement that failed
    before.
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
    # The view must not be recomputed ('springhouse.refresh' = 'incremental').
    incremental: bool = False
    asked: WidgetVariant | None = None
    unchanged: bool = False
    failed: FailedStatement | None = None

    @property
    def is_plain(self) -> bool:
        """Whether there is state to build on and no special case: then rows alone decide."""
        return not (self.only or self.anew or self.missing or self.unchanged or self.failed)


@dataclass(frozen=True)
class Decision:
    """The way of a refresh.

    `foreseen` is the formula's answer before the refresh read anything. `missed` are the seconds
    that state would have saved. A decision is `sure` if, by numbers of rows, no other way costs
    about the same. After a failure a refresh `teaches` nothing, because part of its time went into
    the failed statement. `failed` is the failure to remember.
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
        """The expected seconds."""
        return self.cost.seconds

    @property
    def expected(self) -> float:
        """The formula's answer, from which later refreshes learn; 0 if they can learn nothing."""
        return self.cost.estimate if self.teaches else 0.0


def choose_way(facts: WayFacts, look: Look | None = None) -> Decision:
    """How to refresh a view."""
    if facts.only:
        # The number of rows that a function reads is unknown, so the formula can't learn from it.
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


def decide_rebuild(facts: WayFacts, why: str, *, state: bool) -> Decision:
    """The refresh of a view after a stored file proved unusable."""
    return replace(_recomputed(facts, why, state=state and not facts.only), teaches=False)


def decide_without_statements(
    facts: WayFacts, problem: str, before: FailedStatement | None
) -> Decision:
    """The refresh of a view after Spark failed in one of its compiled statements."""
    decision = _recomputed(facts, f"{_FAILED}: {problem}", state=False)
    return replace(decision, teaches=False, failed=note_failure(before, problem))


_FAILED = "an incremental refresh failed"


def _after_a_pause(facts: WayFacts, failed: FailedStatement) -> Decision:
    """After the failure of a compiled statement: try it again now and then, with new state."""
    if failed.pause > 0:
        decision = _recomputed(facts, f"{_FAILED} before: {failed.problem}", state=False)
        return replace(decision, failed=replace(failed, pause=failed.pause - 1))
    decision = _recomputed(facts, f"{_FAILED} before, and is tried again", state=True)
    return replace(decision, failed=failed)


def _driven(facts: WayFacts, look: Look | None) -> Decision:
    """A refresh from the new rows of one input, which the search has already chosen."""
    (unread,) = facts.changes
    cost = look.cost(WidgetVariant.ASYNCHRONOUS) if look is not None else unread
    cost = facts.past.corrected(cost)
    return Decision("nothing new" if facts.unchanged else str(cost), cost, unread.estimate)


def _without_state(facts: WayFacts) -> Decision:
    """Without state: build it if it would have been used enough."""
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
    """Whether to build state once, although the formula says that it does not pay.

    Only a try can show that the formula is wrong about this view.
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
    # The closer look may add rows to read, so these costs are the least.
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
    """A recomputation although there is state: the state is built again, or given up."""
    building = _building_seconds(facts)
    state = facts.keep or worth_keeping(facts.refreshes, batch.seconds, building)
    outcome = "built anew" if state else "given up"
    why = f"{why}; its state, which takes {building:.1f} s to build, is {outcome}"
    return replace(_recomputed(facts, why, state=state), alternatives=others, sure=clear)


def _unread(facts: WayFacts, *, hopeful: bool = False) -> list[WayCost]:
    """The costs of the allowed ways, by numbers of rows alone."""
    allowed = [each for each in facts.changes if facts.asked in (None, each.way)]
    return [
        facts.past.corrected(each, unread=True, hopeful=hopeful)
        for each in allowed or facts.changes[:1]
    ]


def _is_clear(facts: WayFacts, batch: WayCost, unread: Sequence[WayCost]) -> bool:
    """Whether numbers of rows decide: the cheapest way was used lately, and is clearly cheapest."""
    if len(unread) == 1 and facts.incremental:
        return True
    first, *others = sorted([batch, *unread], key=_seconds)
    far = all(each.seconds >= _CLEARLY * first.seconds for each in others)
    last = [each.variant for each in facts.refreshes[-_TRIED:]]
    return far and last == [WAYS[first.way]] * _TRIED


def _looked_at(facts: WayFacts, unread: Sequence[WayCost], look: Look) -> list[WayCost]:
    """The ways, the cheapest first; ways that may be the cheapest get a closer look."""
    best = facts.past.corrected(look.cost(unread[0].way), hopeful=True)
    ways = [best]
    for each in unread[1:]:
        near = each.seconds < best.seconds
        ways.append(facts.past.corrected(look.cost(each.way), hopeful=True) if near else each)
    return sorted(ways, key=_seconds)


def _building_seconds(facts: WayFacts) -> float:
    """The seconds that building state adds to a plain recomputation."""
    plain = facts.past.corrected(facts.batch).seconds
    return max(facts.past.corrected(facts.building).seconds - plain, _LEAST_SHARE * plain)


def _seconds(cost: WayCost) -> float:
    return cost.seconds
