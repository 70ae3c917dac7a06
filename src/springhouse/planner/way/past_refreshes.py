"""What do refreshes that took place teach about those to come?

A refresh takes so many times what the formula says (`planner.refresh_cost`):

    seconds  =  formula × speed of the machine × correction of the view and the way

The **machine** has one factor. Every refresh of every view teaches it, first builds included. It
follows what most views say at last, so that neither one slow view nor one pause moves it, and a
machine that changes its speed is noticed when views agree. The **correction** is what a view's own
refreshes took beyond the machine of their time. Those teach that were expected to take about as
long: what is wrong for a small change need not be wrong for a large one.

A way that a view never went is like those that it went. A recomputation is like one that built
state, and the other way round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, log
from statistics import median

from springhouse.planner.logs import PastRefresh
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.refresh_cost import WAYS, WayCost

BUILDING = "building"
"""What a recomputation that also builds state teaches about."""

REMEMBERED = 50
"""How many commits of a view are asked what they teach."""

_KEPT = 12
"""Lessons of one way that are kept: a way that is not gone for long is not forgotten for that."""

_LESSONS = 5
_ALIKE = 3.0
"""By what factor estimates may differ that teach about each other."""

_MOST = (4.0, 4.0, 20.0)
"""How far so many lessons may correct an estimate: a first refresh in a cold process says little.

More of them are believed whatever they say: a function of the user's may take any time.
"""

_EVIDENCE = 3
"""So many lessons are evidence that a way is slow."""

_VOICES = 5
_FOLLOWS = 1.0
"""Which part of what most views agree on the machine's factor follows at once."""


@dataclass(frozen=True)
class Lesson:
    """A refresh that took so many seconds on a machine of that speed.

    `expected` is what the formula said, and `foreseen` what it said before anything was read.
    """

    way: str
    expected: float
    foreseen: float
    seconds: float
    machine: float = 1.0

    def formula(self, *, unread: bool) -> float:
        return self.foreseen if unread else self.expected

    def wrong(self, *, unread: bool) -> float:
        """How many times longer it took than the formula says of this machine."""
        return self.seconds / (self.formula(unread=unread) * self.machine)


@dataclass(frozen=True)
class Past:
    """What the refreshes of a view have taught, the newest last, and how slow the machine is."""

    lessons: tuple[Lesson, ...] = ()
    machine: float = 1.0

    def corrected(self, cost: WayCost, *, unread: bool = False, hopeful: bool = False) -> WayCost:
        """A cost as the past sees it; `unread` if nothing was read to tell it.

        A `hopeful` one believes the best of few lessons: one pause is no evidence.
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
        """What the view takes beyond the machine: the median of what was, and of nothing being so.

        >>> Past((Lesson("full", 1.0, 1.0, 3.0), Lesson("full", 1.0, 1.0, 2.0))).correction(
        ...     "full", 1.0
        ... )
        2.0
        """
        taught = self._of(way, unread=unread)
        alike = self._alike(taught, estimate, unread=unread)
        # How much is read for a small change says nothing about how much is for a large one.
        told = unread and bool(alike)
        wrong = [each.wrong(unread=told) for each in (alike or taught)[-_LESSONS:]]
        most = _MOST[len(alike)] if len(alike) < len(_MOST) else inf
        return min(max(median([1.0, *wrong]), 1 / most), most)

    def _of(self, way: str, *, unread: bool) -> list[Lesson]:
        """The lessons about a way, or else about the one that is most like it."""
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
        """The lessons that were expected to take about as long."""
        low, high = estimate / _ALIKE, estimate * _ALIKE
        return [each for each in lessons if low <= each.formula(unread=unread) <= high]


@dataclass
class Learned:
    """What all refreshes of all views have taught; it is told of each refresh once, in order."""

    machine: float = 1.0
    _lessons: dict[str, tuple[Lesson, ...]] = field(default_factory=dict)
    # How far the last refreshes were from what is expected now, as logarithms.
    _voices: tuple[float, ...] = ()

    def past(self, view: str) -> Past:
        """What is known of a view."""
        return Past(self._lessons.get(view, ()), self.machine)

    def forget(self, view: str) -> None:
        """Drop what is known of a view; what it taught about the machine stays."""
        self._lessons.pop(view, None)

    def take(self, view: str, refresh: PastRefresh) -> None:
        """Learn from a refresh; one that nobody estimated teaches nothing."""
        # Under a clock that stands, as a test may have one, nothing takes any time.
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
        """Move the machine's factor to where most of the last refreshes say that it is."""
        follows = _FOLLOWS if self._voices else 1.0
        voices = (*self._voices, off)[-_VOICES:]
        moved = median(voices) * follows
        self.machine *= exp(moved)
        self._voices = tuple(each - moved for each in voices)


def taught_way(refresh: PastRefresh) -> str:
    """Which way a refresh teaches about."""
    built = refresh.stateful and refresh.variant == WAYS[WidgetVariant.BATCH]
    return BUILDING if built else refresh.variant


def _kept(lessons: tuple[Lesson, ...]) -> tuple[Lesson, ...]:
    """The newest lessons of each way."""
    same = [each for each in lessons if each.way == lessons[-1].way]
    gone = same[0] if len(same) > _KEPT else None
    return tuple(each for each in lessons if each is not gone)
