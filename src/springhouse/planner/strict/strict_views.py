"""When does a view that promises consistency want a refresh, and from which versions?

Such a view moves all its inputs at once, to one moment (`versions`), in the cheapest way. It wants
a refresh if an input has newer data than the view reflects, or if a refresh can't build on its
stored rows. An input that can't be watched (files, another catalog) is read again now and then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from springhouse.planner.data_waits import DataWaits
from springhouse.planner.delta_logs import Logs, newest_note, reflected_by
from springhouse.planner.offers import Offers
from springhouse.planner.provenance import Provenance
from springhouse.planner.refresh_plan import NEVER, RefreshPlan
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.stored_rows import StoredRows
from springhouse.planner.strict.moment import Choice
from springhouse.planner.strict.versions import Chooser
from springhouse.planner.way.refresh_cost import WAYS
from springhouse.project.declarations.declaration import Project, View
from springhouse.units import Instant, Seconds

OPAQUE_PERIOD = Seconds(60.0)
"""The period of refreshes of a view whose inputs can't be watched."""

UNWATCHED = "its inputs can't be watched"


@dataclass(frozen=True)
class ViewAnswer:
    """The refresh that a view wants now, and until when this holds if no log moves."""

    plan: RefreshPlan | None
    until: Instant = NEVER


class StrictViews:
    """Plans refreshes of the views of one project that take all inputs to one moment."""

    def __init__(
        self,
        project: Project,
        logs: Logs,
        chooser: Chooser,
        offers: Offers,
        stored: StoredRows,
        waits: DataWaits,
    ) -> None:
        self._project = project
        self._logs = logs
        self._chooser = chooser
        self._offers = offers
        self._stored = stored
        self._waits = waits
        # The time of each view's last refresh, even if it had nothing to commit.
        self._refreshed: dict[str, Instant] = {}

    def refreshed(self, view: str, now: Instant) -> None:
        """A refresh of a view ended."""
        self._refreshed[view] = now

    def answer(self, view: View, now: Instant, *, meet_siblings: bool) -> ViewAnswer:
        """The refresh that takes all inputs to one moment, if the view wants one."""
        if self._stored.damage(view.name) is not None:
            # The refresh fails, reports the damage, and is tried again.
            return ViewAnswer(RefreshPlan(view.name, "a damaged log", now))
        if self._chooser.missing(view.name):
            return ViewAnswer(None)
        choice = self._chooser.choose(view.name, meet_siblings=meet_siblings)
        if choice is None:
            return ViewAnswer(None)
        anew = self._stored.why_anew(view)
        plan = self.plan_to(view, choice, anew or "", now)
        if anew is not None:
            return ViewAnswer(plan)
        looks_again = self._looks_again(view)
        reason = self._reason(view, plan, unwatched=now >= looks_again)
        if reason is None:
            return ViewAnswer(None, looks_again)
        return ViewAnswer(replace(plan, reason=reason))

    def _reason(self, view: View, plan: RefreshPlan, *, unwatched: bool) -> str | None:
        """Why a view with usable stored rows wants a refresh; None if it wants none.

        With `unwatched` it is time to read the inputs again that can't be watched.
        """
        if plan.asked:
            return f"new data in {', '.join(plan.asked)}"
        if unwatched:
            return UNWATCHED
        changed = self._changed_unseen(view, plan.versions)
        return None if changed is None else f"new data in {changed}"

    def plan_to(self, view: View, choice: Choice, reason: str, now: Instant) -> RefreshPlan:
        """The refresh of a view to these versions of its inputs, in the cheapest way."""
        reaches = reflected_by(self._logs, self._project, view, choice.versions)
        newest = self._logs.log(view.name).newest()
        held = newest.provenance if newest is not None else Provenance()
        asked = tuple(held.channels_ahead(reaches)) if held.precedes(reaches) else ()
        plan = RefreshPlan(
            view.name,
            reason,
            min(self._waits.arrived(held, reaches), default=now),
            choice.versions,
            WAYS[WidgetVariant.BATCH],
            reaches=reaches,
            asked=asked,
        )
        offer = self._offers.cheapest(view.name, choice.versions)
        if offer is None:
            return plan
        return replace(
            plan,
            way=offer.way,
            seconds=offer.seconds,
            others=offer.others,
            decision=offer.decision,
        )

    def _looks_again(self, view: View) -> Instant:
        """When to refresh a view even if none of its watched inputs has moved."""
        newest = self._logs.log(view.name).newest()
        if newest is None or not self._chooser.inputs(view.name).opaque:
            return NEVER
        return Instant(max(newest.at, self._refreshed.get(view.name, newest.at)) + OPAQUE_PERIOD)

    def _changed_unseen(self, view: View, versions: Mapping[str, int]) -> str | None:
        """The input whose rows changed although no base table has moved; None if there is none."""
        note = newest_note(self._logs, view.name)
        read = note.read if note is not None else {}
        for key, version in versions.items():
            if key not in self._project.views or not self._chooser.inputs(key).opaque:
                continue
            makers = [s.made for s in self._logs.log(key).snapshots() if s.version <= version]
            if makers and makers[-1] > read.get(key, makers[-1]):
                return key
        return None
