"""What do past refreshes teach about the cost of the next one?

Past refreshes correct the formula (`refresh_cost`) by two factors:

    seconds  =  formula × speed of the machine × correction of the view and the way

The **machine** has one factor, and every refresh of every view teaches it, first builds included.
The factor follows the median of the last refreshes. So neither one slow view nor one pause moves
it, but a change of the machine's speed does, because then the views agree. The **correction** is
the factor by which refreshes of one view and way took longer than the machine explains. Only
refreshes of about the same expected length count: an error for a small change may not apply to a
large one.

A way that a view never used takes the correction of the ways that it used. A recomputation without
state takes the correction of recomputations with state, and vice versa.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, log
from statistics import median

from springhouse.planner.delta_logs import PastRefresh
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.refresh_cost import WAYS, WayCost

BUILDING = "building"
"""The way of a recomputation that also builds state."""

REMEMBERED = 50
"""How many of a view's last commits give lessons."""

_KEPT = 12
"""How many lessons of each way are kept, so that a rarely used way is not forgotten."""

_LESSONS = 5
_ALIKE = 3.0
"""Refreshes whose estimates differ by up to this factor teach about each other."""

_MOST = (4.0, 4.0, 20.0)
"""The largest correction by none, one or two lessons: the first refresh of a process shows little.

More lessons may correct by any factor, because a user's function may take any time.
"""

_EVIDENCE = 3
"""The number of lessons that prove that a way is slow."""

_VOICES = 5
_FOLLOWS = 1.0
"""The part of the median by which the machine's factor follows at once."""


@dataclass(frozen=True)
class Lesson:
    """The seconds of one refresh, with the speed of the machine at that time.

    `expected` is the formula's answer, `foreseen` its answer before the refresh read anything.
    """

    way: str
    expected: float
    foreseen: float
    seconds: float
    machine: float = 1.0

    def formula(self, *, unread: bool) -> float:
        return self.foreseen if unread else self.expected

    def wrong(self, *, unread: bool) -> float:
        """How many times longer the refresh took than the formula says for this machine."""
        return self.seconds / (self.formula(unread=unread) * self.machine)


@dataclass(frozen=True)
class Past:
    """The lessons of a view, the newest last, and the factor of the machine."""

    lessons: tuple[Lesson, ...] = ()
    machine: float = 1.0

    def corrected(self, cost: WayCost, *, unread: bool = False, hopeful: bool = False) -> WayCost:
        """A cost, corrected by the past; `unread` if its estimate is from before any reading.

        With `hopeful` the best of a few lessons counts, because one pause proves nothing.
        """
        way = BUILDING if cost.state_seconds else WAYS[cost.way]
        own = self.correction(way, cost.estimate, unread=unread)
        if hopeful:
            alike = self._alike(self._of(way, unread=unread), cost.estimate, unread=unread)
            if len(alike) < _EVIDENCE:
                wrong = [each.wrong(unread=unread) for each in alike]
                own = min([own, *wrong, *([1.0] if len(alike) == 1 else [])])
        return replace(cost, correction=self.machine * own)

    def correction(self, way: str, estimate: float, *, unread: bool = False) -> float:
        """The correction of a way: the median of its lessons and of one lesson without correction.

        >>> Past((Lesson("full", 1.0, 1.0, 3.0), Lesson("full", 1.0, 1.0, 2.0))).correction(
        ...     "full", 1.0
        ... )
        2.0
        """
        taught = self._of(way, unread=unread)
        alike = self._alike(taught, estimate, unread=unread)
        # The rows that a small change reads say nothing about a large change.
        told = unread and bool(alike)
        wrong = [each.wrong(unread=told) for each in (alike or taught)[-_LESSONS:]]
        most = _MOST[len(alike)] if len(alike) < len(_MOST) else inf
        return min(max(median([1.0, *wrong]), 1 / most), most)

    def _of(self, way: str, *, unread: bool) -> list[Lesson]:
        """The lessons about a way, or else about the most similar way."""
        own = [each for each in self.lessons if each.way == way]
        looked = [each for each in own if each.expected != each.foreseen]
        if looked and not unread:
            return looked
        recomputing = (WAYS[WidgetVariant.BATCH], BUILDING)
        nearest = recomputing if way in recomputing else ()
        for ways in ((way,), nearest):
            lessons = [each for each in self.lessons if each.way in ways]
            if lessons:
                return lessons
        return list(self.lessons)

    @staticmethod
    def _alike(lessons: Sequence[Lesson], estimate: float, *, unread: bool) -> list[Lesson]:
        """The lessons of refreshes with about the same expected time."""
        low, high = estimate / _ALIKE, estimate * _ALIKE
        return [each for each in lessons if low <= each.formula(unread=unread) <= high]


@dataclass
class Learned:
    """The lessons of all views; the caller reports each refresh once, in order."""

    machine: float = 1.0
    _lessons: dict[str, tuple[Lesson, ...]] = field(default_factory=dict)
    # The errors of the last refreshes relative to the present factor, as logarithms.
    _voices: tuple[float, ...] = ()

    def past(self, view: str) -> Past:
        """The lessons of a view, and the machine."""
        return Past(self._lessons.get(view, ()), self.machine)

    def forget(self, view: str) -> None:
        """Drop the lessons of a view; the machine keeps what it learned from them."""
        self._lessons.pop(view, None)

    def take(self, view: str, refresh: PastRefresh) -> None:
        """Learn from a refresh; a refresh without an estimate teaches nothing."""
        # With a clock that stands still, as in a test, all durations are 0.
        if refresh.expected <= 0.0 or refresh.seconds <= 0.0:
            return
        way = taught_way(refresh)
        foreseen = refresh.foreseen if refresh.foreseen > 0.0 else refresh.expected
        own = self.past(view).correction(way, foreseen, unread=True)
        off = log(refresh.seconds / (foreseen * own * self.machine))
        self._hear(off)
        lesson = Lesson(way, refresh.expected, foreseen, refresh.seconds, self.machine)
        self._lessons[view] = _kept((*self._lessons.get(view, ()), lesson))

    def _hear(self, off: float) -> None:
        """Move the machine's factor to the median of the last refreshes."""
        follows = _FOLLOWS if self._voices else 1.0
        voices = (*self._voices, off)[-_VOICES:]
        moved = median(voices) * follows
        self.machine *= exp(moved)
        self._voices = tuple(each - moved for each in voices)


def taught_way(refresh: PastRefresh) -> str:
    """The way that a refresh gives a lesson about."""
    built = refresh.stateful and refresh.variant == WAYS[WidgetVariant.BATCH]
    return BUILDING if built else refresh.variant


def _kept(lessons: tuple[Lesson, ...]) -> tuple[Lesson, ...]:
    """The newest lessons of each way."""
    same = [each for each in lessons if each.way == lessons[-1].way]
    gone = same[0] if len(same) > _KEPT else None
    return tuple(each for each in lessons if each is not gone)
