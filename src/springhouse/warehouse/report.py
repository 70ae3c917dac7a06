"""What can a warehouse tell about itself?

Plain data, read from the Delta logs and the declaration: the command line, `--json` and the Python
API show the same values. Nothing here starts Spark.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from springhouse.errors import LakeError
from springhouse.lake.delta.commit_entry import Commit
from springhouse.lake.delta.stores import described
from springhouse.lake.lake import QUARANTINE
from springhouse.lake.sinks.delivery import delivered
from springhouse.lake.views.compiled_plans import NotIncremental, known_plan
from springhouse.loop.schedule import Schedule
from springhouse.planner.provenance import NOW, source_of
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import SqlQuery, Table, View
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.project.lineage.keys import input_key
from springhouse.refresh.retry import Failure
from springhouse.refresh.staleness import lag, share_outside, staleness, trailing_edge
from springhouse.refresh.waiting import Waiting
from springhouse.units import Instant, Seconds, span_text
from springhouse.views.compile import Compiled
from springhouse.views.explanation import explained
from springhouse.views.inline import Inlined
from springhouse.warehouse.execution import flow_key
from springhouse.warehouse.runner import FreshnessRecord
from springhouse.warehouse.watch import Watch, is_streaming_function


@dataclass(frozen=True)
class TableStatus:
    """How one table or view stands. Times are seconds; None where there is nothing to tell."""

    name: str
    kind: str
    version: int | None
    rows: int | None
    staleness_seconds: float | None
    lag_seconds: float
    promise_seconds: float | None
    priority: float
    state: str
    refreshed_at: float | None
    refresh_seconds: float | None
    quarantined: int
    problem: str | None
    # What is odd and keeps nothing from working.
    warning: str | None = None
    # What the scheduler knows: how long a refresh takes, on which tracks, and when it starts.
    expected_seconds: float | None = None
    tracks: tuple[int, ...] = ()
    next: str = ""
    kept_share: float | None = None

    @property
    def promise_kept(self) -> bool | None:
        """Whether the lag is within the promise now; None without a promise."""
        return None if self.promise_seconds is None else self.lag_seconds <= self.promise_seconds

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "promise_kept": self.promise_kept}


def standing(watch: Watch, failures: Mapping[str, Failure], now: Instant) -> list[TableStatus]:
    """Every table and view, each after what it reads, without what a scheduler knows."""
    wanted = {plan.table: plan for plan in watch.plans(now)}
    return [_table_status(watch, name, wanted, failures, now) for name in watch.graph.order]


def status(
    watch: Watch,
    schedule: Schedule,
    failures: Mapping[str, Failure],
    kept: Mapping[str, FreshnessRecord],
    now: Instant,
) -> list[TableStatus]:
    """Every table and view, each after what it reads."""
    waiting = schedule.order(now)
    turns = {p.table: _turn(place, each, now) for place, (p, each) in enumerate(waiting, 1)}
    found = []
    for name in watch.graph.order:
        told = _table_status(watch, name, turns, failures, now)
        known = schedule.known(name, now)
        if known is not None:
            told = replace(told, expected_seconds=known.expected_seconds, tracks=known.homes)
            if known.track is not None:
                turns[name] = f"runs on {known.track}"
        own = kept.get(name)
        promise = told.promise_seconds
        if own is not None and own.lags:
            share = own.share(None if promise is None else Seconds(promise))
        else:
            share = _kept_in_log(watch, told, now)
        found.append(replace(told, next=turns.get(name, ""), kept_share=share))
    return found


def _turn(place: int, waiting: Waiting, now: Instant) -> str:
    if waiting.released > now:
        return f"in {span_text(waiting.released - now)}"
    return f"{place}."


def _kept_in_log(watch: Watch, told: TableStatus, now: Instant) -> float | None:
    """The share of time for which a view kept its promise, as the logs tell it.

    Every version of a base table has to be reflected within the promise. What waits in a source is
    not in any log, so that nothing is told of a base table.
    """
    if told.promise_seconds is None or told.kind != "view":
        return None
    refreshes = [
        c for c in watch.lake.log(told.name).commits() if c.note and c.note.after.reflected
    ]
    if not refreshes:
        return None
    broken: list[tuple[float, float]] = []
    for channel in {key for c in refreshes if c.note for key in c.note.after.reflected}:
        allowed = told.promise_seconds + watch.planning.waits.allowed(told.name, channel)
        waited = iter(watch.lake.log(source_of(channel)).snapshots())
        arrived = next(waited, None)
        for commit in [*refreshes, None]:
            until = now if commit is None else commit.at
            note = commit.note if commit is not None else None
            reached = note.after.newest(channel) if note is not None else None
            while arrived is not None and (
                commit is None or (reached is not None and arrived.made <= reached)
            ):
                breaks = max(arrived.at, refreshes[0].at) + allowed
                broken.append((breaks, until))
                arrived = next(waited, None)
    return share_outside(broken, refreshes[0].at, now)


def _table_status(
    watch: Watch,
    name: str,
    wanted: Mapping[str, object],
    failures: Mapping[str, Failure],
    now: Instant,
) -> TableStatus:
    declared: Table | View = watch.project.tables.get(name) or watch.project.views[name]
    newest = watch.lake.log(name).newest()
    last = _last_refresh(watch.lake.log(name).commits())
    quarantine = watch.lake.log(name + QUARANTINE).newest()
    flows = [flow_key(name, flow.name) for flow in watch.project.flows_into(name)]
    failed = [failures[key].problem for key in (name, *flows) if key in failures]
    problem = "\n".join(failed) or watch.problem(name)
    missing = watch.chooser.missing(name) if name in watch.project.views else []
    behind = lag(watch.planning.waits.waiting_since(name, now), now)
    state = "up to date"
    if problem:
        state = "failing"
    elif watch.source_warning(name):
        state = "no source"
    elif name in wanted:
        state = "waiting"
    elif missing:
        state = f"needs {', '.join(missing)}"
    elif newest is None:
        state = "empty"
    elif behind > 0:
        state = "behind"
    return TableStatus(
        name=name,
        kind="view" if name in watch.project.views else "table",
        version=newest.version if newest else None,
        rows=last.note.rows if last and last.note else None,
        staleness_seconds=staleness(_freshness(watch, name), now),
        lag_seconds=behind,
        promise_seconds=declared.promise.strictest_seconds,
        priority=declared.promise.priority,
        state=state,
        refreshed_at=last.at if last else None,
        refresh_seconds=last.note.seconds if last and last.note else None,
        quarantined=_rows_of(watch, name + QUARANTINE) if quarantine else 0,
        problem=problem,
        warning=watch.warning(name),
    )


def _rows_of(watch: Watch, key: str) -> int:
    with suppress(LakeError):  # Told as the problem of its table.
        opened = watch.lake.find(key)
        return opened.rows if opened else 0
    return 0


def _last_refresh(commits: Sequence[Commit]) -> Commit | None:
    kinds = ("append", "replace", "merge")
    return next((c for c in reversed(commits) if c.note and c.note.kind in kinds), None)


def _freshness(watch: Watch, name: str) -> Instant | None:
    """The freshness of a table, or of the least fresh version that a view reflects."""
    newest = watch.lake.log(name).newest()
    if newest is None:
        return None
    if watch.is_channel(name):
        return newest.note.freshness if newest.note else newest.at
    edges = []
    for pathway, versions in newest.provenance.reflected.items():
        log = watch.lake.log(source_of(pathway))
        states = [s for s in log.snapshots() if s.made <= max(versions)]
        if states:
            note = states[-1].note
            edges.append(note.freshness if note and note.freshness else states[-1].at)
    return trailing_edge(edges)


@dataclass(frozen=True)
class PlannedRefresh:
    """A refresh that is wanted, in the order in which they would start now.

    `number` is what decided the order, and `why` what it is; it starts in `starts_in_seconds` at
    the earliest, on one of `tracks`. Of a view the planner also tells what it will reflect, which
    pathways asked for that, by what promise, and the other ways with what they would cost.
    """

    table: str
    reason: str
    variant: str
    waited_seconds: float
    inputs: Mapping[str, int]
    number: float = 0.0
    why: str = ""
    expected_seconds: float = 0.0
    starts_in_seconds: float = 0.0
    tracks: tuple[int, ...] = ()
    driver: str | None = None
    reaches: Mapping[str, Sequence[int]] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    promise: str = ""
    planned_seconds: float | None = None
    alternatives: tuple[tuple[str, float], ...] = ()


def plan(watch: Watch, schedule: Schedule, now: Instant) -> list[PlannedRefresh]:
    """The refreshes that are wanted now, in the order in which they would start."""
    return [_planned(watch, planned, waiting, now) for planned, waiting in schedule.order(now)]


def _planned(watch: Watch, planned: RefreshPlan, waiting: Waiting, now: Instant) -> PlannedRefresh:
    return PlannedRefresh(
        planned.table,
        planned.reason,
        planned.way,
        max(now - planned.since, 0.0),
        dict(planned.versions),
        waiting.number,
        waiting.why,
        waiting.expected_seconds,
        max(waiting.released - now, 0.0),
        waiting.homes,
        planned.driver,
        planned.reaches.as_json(),
        planned.asked,
        _asking(watch, planned),
        planned.seconds,
        planned.others,
    )


def _asking(watch: Watch, planned: RefreshPlan) -> str:
    """Which promise wants a refresh of a view, in the user's words."""
    view = watch.project.views.get(planned.table)
    if view is None:
        return ""
    bounds: dict[str, Seconds] = {}
    for pathway in sorted(planned.asked):
        # Data that may wait equally long is told of once, by the input that it comes through.
        bound, through = watch.planning.waits.bound(view.name, pathway), pathway.rpartition(">")[2]
        bounds[through if bounds.get(through, bound) == bound else pathway] = bound
    parts = [
        f"staleness {span_text(bound)} of {each}" if bound else f"{each} as fresh as possible"
        for each, bound in bounds.items()
    ]
    return ", ".join(parts)


def history(watch: Watch, name: str, most: int | None = None) -> list[dict[str, Any]]:
    """The commits of a table, newest first."""
    commits = list(reversed(watch.lake.log(name).commits()))
    return [_commit_row(commit) for commit in commits[:most]]


def _commit_row(commit: Commit) -> dict[str, Any]:
    note = commit.note
    row: dict[str, Any] = {
        "version": commit.version,
        "at": commit.at,
        "kind": note.kind if note else commit.operation.lower() or "unknown",
        "by": "springhouse" if note else "another writer",
    }
    if note is None:
        return row
    return row | {
        "variant": note.variant,
        "why": note.why,
        "failed": note.failed.problem if note.failed is not None else "",
        "reason": note.reason,
        "rows": note.rows,
        "rows_added": note.rows_added,
        "rows_removed": note.rows_removed,
        "seconds": note.seconds,
        "quarantined": sum(flow.quarantined for flow in note.flows.values()),
        "violations": dict(note.violations),
        "together": list(note.together),
        "activities": {name: dict(did) for name, did in note.activities.items()},
        "offsets": {
            name: list(offsets)
            for flow in note.flows.values()
            for name, offsets in flow.offsets.items()
        },
        "reflects": note.after.as_json(),
    }


def explain(watch: Watch, name: str) -> dict[str, Any]:
    """How a table is made, and what its rows reflect."""
    project = watch.project
    declared: Table | View = project.tables.get(name) or project.views[name]
    newest, commits = watch.lake.log(name).newest(), watch.lake.log(name).commits()
    told: dict[str, Any] = {
        "name": name,
        "kind": "view" if isinstance(declared, View) else "table",
        "declared_at": str(declared.place),
        "location": watch.lake.place(name).root,
        "promise": {
            "staleness_seconds": declared.promise.staleness_seconds,
            "staleness_by_pathway": dict(declared.promise.staleness_by_pathway),
            "inconsistency_seconds": declared.promise.inconsistency_seconds,
            "priority": declared.promise.priority,
        },
        "expectations": [
            {"name": e.name, "condition": e.condition, "on_violation": e.on_violation.value}
            for e in declared.expectations
        ],
        "read_by": list(watch.graph.dependents(name)),
    }
    if declared.sinks:
        told["sinks"] = [
            {
                "name": sink.name,
                "plugin": sink.plugin,
                "versions_delivered": delivered(watch.lake, name, sink.name),
            }
            for sink in declared.sinks
        ]
    told |= _explain_view(watch, declared) if isinstance(declared, View) else {}
    told |= _explain_table(watch, declared) if isinstance(declared, Table) else {}
    if newest is not None:
        left, right = newest.provenance.interval(watch.chooser.channels())
        told["stored"] = {
            "version": newest.version,
            "reflects": newest.provenance.as_json(),
            "consistent": newest.provenance.consistent(watch.chooser.channels()),
            "valid_from": left if left > float("-inf") else None,
            "valid_until": None if right == NOW else right,
            "last_refresh": _commit_row(_last_refresh(commits) or commits[-1]),
        }
    return told


def _explain_view(watch: Watch, view: View) -> dict[str, Any]:
    inputs = watch.chooser.inputs(view.name)
    query = view.query.text if isinstance(view.query, SqlQuery) else f"Python: {view.query.place}"
    return {
        "query": query,
        "inputs": list(inputs.keys),
        "inputs_that_nobody_can_watch": inputs.opaque,
        "pathways": [" -> ".join(pathway) for pathway in watch.graph.pathways(view.name)],
        "refresh": view.refresh.value,
        **_explain_refresh(watch, view, known_plan(watch.lake, watch.project, view, inputs.keys)),
    }


def _explain_refresh(
    watch: Watch, view: View, found: tuple[Compiled, Inlined] | NotIncremental
) -> dict[str, Any]:
    """Whether a view can be refreshed incrementally (None: that is not known yet), and how."""
    if isinstance(found, NotIncremental):
        why_not = {"reason": found.reason, "place": found.place}
        return {"incremental": None if found.for_now else False, "why_not": why_not}
    compiled, flat = found
    told = explained(compiled, view.name, {n: input_key(*key) for n, key in flat.inputs.items()})
    state = _stored_state(watch, view)
    told["state"]["stored"] = state is not None
    for table in told["state"]["tables"]:
        paths = (state or {}).get(table["name"], ())
        files = [described(watch.lake.place(view.name), path) for path in paths]
        table |= {"files": len(files), "rows": sum(file.rows for file in files)}
    return {"incremental": True, **told}


def _stored_state(watch: Watch, view: View) -> Mapping[str, tuple[str, ...]] | None:
    """The files of a view's hidden tables; None if no state of today's definition is stored."""
    newest = watch.lake.log(view.name).newest()
    note = newest.note if newest is not None else None
    if note is None or note.definition != fingerprint(watch.project, view):
        return None
    return note.state if note.stateful else None


def _explain_table(watch: Watch, table: Table) -> dict[str, Any]:
    flows = []
    for flow in watch.project.flows_into(table.name):
        reads = [f"{i.reading.value} {i.name}" for i in watch.graph.flow_inputs(flow)]
        flows.append(
            {
                "name": flow.name,
                "declared_at": str(flow.place),
                "reads": reads,
                "run_by": "Structured Streaming" if is_streaming_function(flow) else "Springhouse",
            }
        )
    stored = watch.lake.find(table.name)
    offsets = {
        transaction: stored.offset(transaction) if stored else 0
        for feed in watch.feeds(table.name)
        for transaction in feed.latest()
    }
    return {
        "flows": flows,
        "offsets": offsets,
        "one_pass": {
            "source": watch.sharing[table.name].source,
            "with": list(watch.sharing[table.name].tables),
            "why_not": watch.sharing[table.name].why_not,
        },
        "timestamp": table.timestamp,
        "lateness_seconds": table.lateness_seconds,
        "period_seconds": table.period_seconds,
        "quarantine": table.name + QUARANTINE,
    }
