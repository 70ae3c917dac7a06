"""Which refreshes does a plan of the search mean?

The search plans invocations of operators on blocks. A refresh of a view is the invocation that
grants its wish, with the versions that it reads. It begins with the invocations upstream that make
these versions.
"""

from collections.abc import Collection
from dataclasses import replace

from springhouse.planner.bounds import Times
from springhouse.planner.delta_logs import Logs, newest_note
from springhouse.planner.provenance import Provenance, source_of
from springhouse.planner.refresh_plan import OtherWay, RefreshPlan
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.workflow_plan import PlanStep, Situation, Wish, WorkflowPlan
from springhouse.units import Instant, Seconds

_NONE: frozenset[int] = frozenset()


class PlannedRefreshes:
    """Turns a plan of the search into refreshes; `tables` are base tables, which read no input."""

    def __init__(
        self, logs: Logs, tables: Collection[str], situation: Situation, plan: WorkflowPlan
    ) -> None:
        self._logs = logs
        self._tables = tables
        self._situation = situation
        self._plan = plan

    def refresh_of(self, name: str, now: Instant) -> RefreshPlan | None:
        """The refresh of a view, with the steps upstream that it needs; None if it has none."""
        steps = self._plan.steps
        wish = next((w for w in self._plan.wishes if w.channel == name and w.blocks), None)
        last = next((step for step in steps if step.is_work and _makes(step, name)), None)
        if wish is None or last is None:
            return None
        first = [self._refresh(step, now) for step in _upstream(self._plan, last)]
        return replace(self._refresh(last, now, wish), first=tuple(first))

    def _refresh(self, step: PlanStep, now: Instant, wish: Wish | None = None) -> RefreshPlan:
        """One step as the refresh of a table; a `wish` names the pathways with broken bounds."""
        situation, name = self._situation, step.outputs[0].channel
        held = situation.held.get(name, Provenance())
        reaches = step.outputs[-1].end if wish is None or wish.reaches is None else wish.reaches
        asked = tuple(held.channels_ahead(reaches)) if wish is None else wish.asked
        times = Times(situation.channels, situation.now)
        arrivals = [times.stale_at(p, held.reflected.get(p, _NONE)) for p in asked]
        sources = sorted({source_of(pathway) for pathway in asked})
        refresh = RefreshPlan(
            name,
            f"new data in {', '.join(sources)}",
            Instant(min(*arrivals, now)) if arrivals else now,
        )
        if name in self._tables:
            return refresh
        refresh = replace(
            refresh,
            versions=self._versions_read(step, name),
            way=_in_words(step.operator.variant.value),
            driver=step.operator.driver,
            seconds=Seconds(step.cost),
            reaches=reaches,
            asked=asked,
        )
        return replace(refresh, others=_other_ways(refresh, wish))

    def _versions_read(self, step: PlanStep, name: str) -> dict[str, int]:
        """The versions of the inputs to read, as far as they are already stored."""
        note = newest_note(self._logs, name)
        last = note.read if note is not None else {}
        versions: dict[str, int] = {}
        for port in step.operator.ports:
            if port.untouched and port.channel in last:
                # The input does not move, so the refresh reads the same version as the last one.
                versions[port.channel] = last[port.channel]
        for block in step.inputs:
            if block.channel != name and block.versions is not None:
                newest = max(block.versions[1], versions.get(block.channel, -1))
                versions[block.channel] = newest
        return {key: self._readable(key, version) for key, version in versions.items()}

    def _readable(self, key: str, version: int) -> int:
        """The newest version with the same rows: its files are kept longest."""
        states = self._logs.log(key).snapshots()
        return next((s.version for s in reversed(states) if s.made == version), version)


def _other_ways(refresh: RefreshPlan, wish: Wish | None) -> tuple[OtherWay, ...]:
    """The other ways that could grant the wish, each with its lowest cost."""
    costs: dict[str, float] = {}
    for each in wish.alternatives if wish is not None else ():
        costs.setdefault(_in_words(each.operator.partition(": ")[2]), each.cost)
    costs.pop(str(refresh), None)
    return tuple(OtherWay(*each) for each in costs.items())


def _makes(step: PlanStep, channel: str) -> bool:
    return any(block.channel == channel for block in step.outputs)


def _upstream(plan: WorkflowPlan, last: PlanStep) -> list[PlanStep]:
    """The steps that a step depends on, directly or not, in the order of the plan."""
    maker = {block: step for step in plan.steps for block in step.outputs}
    needed: dict[int, PlanStep] = {}
    waiting = [last]
    while waiting:
        step = waiting.pop()
        for above in (maker[block] for block in step.inputs if block in maker):
            if above is not step and id(above) not in needed:
                needed[id(above)] = above
                waiting.append(above)
    return [step for step in plan.steps if step.is_work and id(step) in needed and step is not last]


def _in_words(variant: str) -> str:
    """The name of a variant in plans and commits."""
    return "full" if variant == WidgetVariant.BATCH.value else variant
