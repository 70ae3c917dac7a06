"""How fresh is every table and view, compared with its promise?"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from springhouse.errors import LakeError
from springhouse.lake.delta.commit_entry import Commit
from springhouse.lake.lake import QUARANTINE
from springhouse.logged_errors import passing
from springhouse.loop.schedule import Schedule
from springhouse.loop.turns import FreshnessRecord
from springhouse.planner.provenance import source_of
from springhouse.project.declarations.declaration import Table, View
from springhouse.refresh.retry import Failure
from springhouse.refresh.staleness import lag, share_outside, staleness, trailing_edge
from springhouse.units import Instant, Seconds
from springhouse.warehouse.reports.result import Result, utc
from springhouse.warehouse.reports.table_history import last_refresh
from springhouse.warehouse.running.execution import flow_key
from springhouse.warehouse.watch import Watch

LOG = logging.getLogger("springhouse.status")


@dataclass(frozen=True)
class TableStatus(Result):
    """How fresh one table or view is.

    A field is None where nothing is known, or nothing applies. `staleness_seconds` is the age of
    the moment up to which the table has all of its inputs; `lag_seconds` is how long the oldest
    data has waited that arrived and is not in the table. A promise bounds the lag, and
    `promise_kept_share` is the share of time for which it was kept. `warning` names something odd
    that stops nothing. The last fields are those that the scheduler knows: the place in the queue
    (1 is next) or the track on which the table is refreshed now.
    """

    name: str
    kind: str
    version: int | None
    rows: int | None
    staleness_seconds: float | None
    lag_seconds: float
    promise_seconds: float | None
    priority: float
    state: str
    refreshed_at: datetime | None
    refresh_seconds: float | None
    quarantined_rows: int
    problem: str | None
    warning: str | None = None
    promise_kept_share: float | None = None
    expected_refresh_seconds: float | None = None
    tracks: tuple[int, ...] = ()
    queue_place: int | None = None
    starts_in_seconds: float | None = None
    running_on_track: int | None = None

    @property
    def promise_kept(self) -> bool | None:
        """Whether the lag is within the promise now; None without a promise."""
        return None if self.promise_seconds is None else self.lag_seconds <= self.promise_seconds

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, and `promise_kept`, in the types that JSON has."""
        return {**super().to_dict(), "promise_kept": self.promise_kept}


def table_statuses(
    watch: Watch, failures: Mapping[str, Failure], now: Instant
) -> list[TableStatus]:
    """The status of every table and view, each after its inputs, without the scheduler's facts."""
    wanted = {plan.table for plan in watch.plans(now)}
    return [_table_status(watch, name, name in wanted, failures, now) for name in watch.graph.order]


def scheduled_statuses(
    watch: Watch,
    schedule: Schedule,
    failures: Mapping[str, Failure],
    kept: Mapping[str, FreshnessRecord],
    now: Instant,
) -> list[TableStatus]:
    """The status of every table and view, each after its inputs, with the scheduler's facts."""
    waiting = {
        planned.table: (place, job)
        for place, (planned, job) in enumerate(schedule.order(now), start=1)
    }
    statuses = []
    for name in watch.graph.order:
        status = _table_status(watch, name, name in waiting, failures, now)
        known = schedule.known(name, now)
        if known is not None:
            status = replace(
                status,
                expected_refresh_seconds=known.expected_seconds,
                tracks=known.homes,
                running_on_track=known.track,
            )
        if name in waiting and status.running_on_track is None:
            place, job = waiting[name]
            starts = max(job.released - now, 0.0)
            status = replace(status, queue_place=place, starts_in_seconds=starts)
        record = kept.get(name)
        promise = status.promise_seconds
        if record is not None and record.lags:
            share = record.share(None if promise is None else Seconds(promise))
        else:
            share = _kept_in_log(watch, status, now)
        statuses.append(replace(status, promise_kept_share=share))
    return statuses


def _kept_in_log(watch: Watch, status: TableStatus, now: Instant) -> float | None:
    """The share of time for which a view kept its promise, from the logs.

    The view has to reflect every version of a base table within the promise. No log says which data
    waits in a source, so there is no such share for base tables.
    """
    if status.promise_seconds is None or status.kind != "view":
        return None
    commits = watch.lake.log(status.name).commits()
    refreshes = [each for each in commits if each.note and each.note.after.reflected]
    if not refreshes:
        return None
    broken: list[tuple[float, float]] = []
    for channel in {key for c in refreshes if c.note for key in c.note.after.reflected}:
        allowed = status.promise_seconds + watch.planning.waits.allowed(status.name, channel)
        broken += _broken_by(watch, channel, refreshes, allowed, now)
    return share_outside(broken, refreshes[0].at, now)


def _broken_by(
    watch: Watch, channel: str, refreshes: list[Commit], allowed: float, now: Instant
) -> list[tuple[float, float]]:
    """The time spans in which versions of one base table waited for longer than allowed."""
    broken: list[tuple[float, float]] = []
    arrivals = iter(watch.lake.log(source_of(channel)).snapshots())
    arrived = next(arrivals, None)
    for commit in [*refreshes, None]:
        until = now if commit is None else commit.at
        note = commit.note if commit is not None else None
        reached = note.after.newest(channel) if note is not None else None
        while arrived is not None and (
            commit is None or (reached is not None and arrived.made <= reached)
        ):
            broken.append((max(arrived.at, refreshes[0].at) + allowed, until))
            arrived = next(arrivals, None)
    return broken


def _table_status(
    watch: Watch, name: str, waits: bool, failures: Mapping[str, Failure], now: Instant
) -> TableStatus:
    declared: Table | View = watch.project.tables.get(name) or watch.project.views[name]
    newest = watch.lake.log(name).newest()
    last = last_refresh(watch.lake.log(name).commits())
    quarantine = watch.lake.log(name + QUARANTINE).newest()
    problem = _problem(watch, name, failures)
    behind = lag(watch.planning.waits.waiting_since(name, now), now)
    return TableStatus(
        name=name,
        kind="view" if name in watch.project.views else "table",
        version=newest.version if newest else None,
        rows=last.note.rows if last and last.note else None,
        staleness_seconds=staleness(_freshness(watch, name), now),
        lag_seconds=behind,
        promise_seconds=declared.promise.strictest_seconds,
        priority=declared.promise.priority,
        state=_state(watch, name, problem, waits, behind),
        refreshed_at=utc(last.at) if last else None,
        refresh_seconds=last.note.seconds if last and last.note else None,
        quarantined_rows=_rows_of(watch, name + QUARANTINE) if quarantine else 0,
        problem=problem,
        warning=watch.warning(name),
    )


def _problem(watch: Watch, name: str, failures: Mapping[str, Failure]) -> str | None:
    flows = [flow_key(name, flow.name) for flow in watch.project.flows_into(name)]
    failed = [failures[key].problem for key in (name, *flows) if key in failures]
    return "\n".join(failed) or watch.problem(name)


def _state(watch: Watch, name: str, problem: str | None, waits: bool, behind: float) -> str:
    missing = watch.chooser.missing(name) if name in watch.project.views else []
    if problem:
        return "failing"
    if watch.source_warning(name):
        return "no source"
    if waits:
        return "waiting"
    if missing:
        return f"needs {', '.join(missing)}"
    if watch.lake.log(name).newest() is None:
        return "empty"
    return "behind" if behind > 0 else "up to date"


def _rows_of(watch: Watch, key: str) -> int:
    with passing(LOG, "the status of its table shows it as the problem", LakeError):
        opened = watch.lake.find(key)
        return opened.rows if opened else 0
    return 0


def _freshness(watch: Watch, name: str) -> Instant | None:
    """The freshness of a table; for a view, that of the least fresh version that it reflects."""
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
