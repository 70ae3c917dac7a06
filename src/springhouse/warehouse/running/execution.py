"""How does one table's refresh run, from its plan to its commits?

A base table reads the new records flow by flow, and each flow has its own commit. A view is
computed from chosen versions of its inputs. After the refresh, a table with too many small files is
compacted. Base tables that read one source share a pass over it, and views that read the same
change share a scan.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from springhouse.errors import CommitConflict, NotOwned
from springhouse.lake.delta.requirements import CommitPermit
from springhouse.lake.ingest.cdc import apply_changes
from springhouse.lake.ingest.checkpoints import settled_stream
from springhouse.lake.ingest.refresh_table import append, append_batch
from springhouse.lake.ingest.refresh_together import Member, append_together
from springhouse.lake.ingest.streaming_flow import run_stream
from springhouse.lake.lake import Lake
from springhouse.lake.landing.describing import describe_table
from springhouse.lake.landing.inputs import NotThereYet
from springhouse.lake.landing.landing import Done
from springhouse.lake.storage.leases import HeldLease
from springhouse.lake.storage.presence import FileLost
from springhouse.lake.upkeep.compaction import compact
from springhouse.lake.views.healing import RecomputeInstead, lost_file
from springhouse.lake.views.prepared import NotDriven
from springhouse.lake.views.shared_scan import scanned_once
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import AppendFlow, CdcFlow, Flow, Project, Table
from springhouse.warehouse.running.view_execution import refreshed
from springhouse.warehouse.watch import Watch, is_streaming_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COMPACT_EVERY = 16
"""The number of commits between two checks of a table's files."""


class FlowsFailed(Exception):
    """Some flows into a table failed (`errors`, by name); `done` are the commits of the others."""

    def __init__(self, table: str, done: Sequence[Done], errors: Mapping[str, Exception]) -> None:
        super().__init__(f'flows into "{table}" failed: {", ".join(errors)}')
        self.done = tuple(done)
        self.errors = dict(errors)


def flow_key(table: str, flow: str) -> str:
    """The name of one flow into a table among the failures of a warehouse."""
    return f"{table} < {flow}"


def perform(
    watch: Watch,
    plan: RefreshPlan,
    *,
    permit: CommitPermit | None = None,
    until: Mapping[str, int] | None = None,
    most_files: int = 32,
) -> list[Done]:
    """Carry out a plan, for a base table up to `until`; returns one entry per commit.

    Each commit requires the `permit`.
    """
    lake = watch.lake if permit is None else watch.lake.under(permit)
    name = plan.table
    if name in watch.project.tables:
        done = _refresh_table(watch, lake, watch.project.tables[name], plan, until)
    else:
        watch.validate_log(name)
        done = _refresh_view(watch, lake, plan)
    _tidy(watch, lake, name, most_files)
    return done


@dataclass(frozen=True)
class Permitted:
    """A plan to carry out, and the permit that each of its commits requires."""

    plan: RefreshPlan
    permit: CommitPermit = field(default_factory=CommitPermit)


def perform_together(
    watch: Watch,
    lead: Permitted,
    along: Sequence[Permitted],
    *,
    until: Mapping[str, int] | None = None,
    most_files: int = 32,
) -> Iterator[tuple[str, list[Done] | Exception]]:
    """Carry out a plan, together with others that read the same; yields the outcome of each table.

    If the offsets of a table turn out to differ, it is refreshed afterwards, by itself.
    """
    with watch.lake.leases.hold() as lease:
        left = {each.plan.table: _leased(each, lease) for each in (lead, *along)}
        if lead.plan.table in watch.project.tables:
            yield from _performed_together(watch, left, until, most_files)
            return
        sharing = [each.plan for each in left.values() if each.plan.scan is not None]
        with scanned_once(watch.lake, watch.project, sharing):
            yield from _one_by_one(watch, left, until, most_files)


def perform_in_order(
    watch: Watch, steps: Sequence[Permitted], *, most_files: int = 32
) -> Iterator[tuple[str, list[Done] | Exception]]:
    """Carry out plans in order, upstream plans first; yields the outcome of each table.

    Each plan reads what the plans before it wrote. If a plan fails, or is no longer wanted, the
    later plans do nothing, and the loop decides again.
    """
    with watch.lake.leases.hold() as lease:
        failed = False
        for step in steps:
            name, plan = step.plan.table, step.plan
            if step is not steps[0] and not failed:
                again = watch.planning.step(plan, watch.lake.now())
                failed = again is None
                plan = again or plan
            if failed:
                yield name, []
                continue
            permit = _leased(step, lease).permit
            work = partial(perform, watch, plan, permit=permit, most_files=most_files)
            outcome = _outcome(work)
            failed = isinstance(outcome, Exception)
            yield name, outcome


def _leased(permitted: Permitted, lease: HeldLease) -> Permitted:
    """The same plan, whose commits also require the lease."""
    return replace(permitted, permit=replace(permitted.permit, lease=lease))


def _performed_together(
    watch: Watch,
    left: dict[str, Permitted],
    until: Mapping[str, int] | None,
    most_files: int,
) -> Iterator[tuple[str, list[Done] | Exception]]:
    if len(left) > 1:
        members = [
            Member(watch.project.tables[name], watch.feeds(name)[0], each.plan, each.permit)
            for name, each in left.items()
        ]
        for name, outcome in append_together(watch.lake, watch.project, members, until):
            each = left.pop(name)
            if isinstance(outcome, Exception):
                yield name, outcome
            else:
                lake = watch.lake.under(each.permit)
                yield name, _outcome(partial(_tidied, watch, lake, [outcome], most_files))
    yield from _one_by_one(watch, left, until, most_files)


def _one_by_one(
    watch: Watch,
    left: Mapping[str, Permitted],
    until: Mapping[str, int] | None,
    most_files: int,
) -> Iterator[tuple[str, list[Done] | Exception]]:
    for name, each in left.items():
        yield (
            name,
            _outcome(
                partial(
                    perform,
                    watch,
                    each.plan,
                    permit=each.permit,
                    until=until,
                    most_files=most_files,
                )
            ),
        )


def _outcome(work: Callable[[], list[Done]]) -> list[Done] | Exception:
    """The commits of a table or its error; an error does not stop the other tables."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  whatever it is, the warehouse reports it
        return error


def _tidied(watch: Watch, lake: Lake, done: list[Done], most_files: int) -> list[Done]:
    _tidy(watch, lake, done[0].table, most_files)
    return done


def _tidy(watch: Watch, lake: Lake, name: str, most_files: int) -> None:
    """Store the declared comments and properties, and compact a table of many small files."""
    describe_table(lake, watch.project, name)
    version = lake.log(name).newest()
    if version is not None and version.version % _COMPACT_EVERY == _COMPACT_EVERY - 1:
        compact(lake, name, most_files)


def _refresh_table(
    watch: Watch,
    lake: Lake,
    table: Table,
    plan: RefreshPlan,
    until: Mapping[str, int] | None,
) -> list[Done]:
    """Run every flow: an error of one flow neither stops nor delays the others."""
    done: list[Done] = []
    errors: dict[str, Exception] = {}
    flows = watch.project.flows_into(table.name)
    for flow in sorted(flows, key=is_streaming_function):
        if watch.is_held(flow):
            continue
        try:
            done += _run_flow(watch, lake, table, flow, plan, until)
        except (CommitConflict, NotOwned):
            raise
        except Exception as error:
            if len(flows) == 1:
                raise
            errors[flow.name] = error
    if errors:
        raise FlowsFailed(table.name, done, errors)
    return done


def _run_flow(
    watch: Watch,
    lake: Lake,
    table: Table,
    flow: Flow,
    plan: RefreshPlan,
    until: Mapping[str, int] | None,
) -> list[Done]:
    if is_streaming_function(flow):
        assert isinstance(flow, AppendFlow)
        return _stream(lake, watch.project, table, flow, plan)
    apply = apply_changes if isinstance(flow, CdcFlow) else append
    taken = apply(lake, watch.project, table, watch.feed(flow), plan, until)
    return [taken] if taken is not None else []


def _stream(
    lake: Lake, project: Project, table: Table, flow: AppendFlow, plan: RefreshPlan
) -> list[Done]:
    stream = settled_stream(lake, project, table, flow)

    def commit(
        rows: "DataFrame", size: int, number: int, reflected: Mapping[str, int] | None
    ) -> Done:
        return append_batch(lake, project, table, stream, rows, size, number, reflected, plan)

    return run_stream(lake, project, stream, commit)


def _refresh_view(
    watch: Watch, lake: Lake, plan: RefreshPlan, anew: RecomputeInstead | None = None
) -> list[Done]:
    """Refresh a view; if a file is lost, repair the view or its input, and try again."""
    lost = watch.lost(plan.table)
    if anew is None and lost is not None:
        anew = RecomputeInstead(f"rebuilt: {lost.problem}", unreadable=True)
    met: set[tuple[str, str]] = set()
    while True:
        try:
            return [_refreshed(watch, lake, plan, anew)]
        except NotDriven:
            # The facts behind the plan have changed. A plan that loads all changes is always right.
            plan = plan.whole()
        except (CommitConflict, NotOwned, NotThereYet):
            raise
        except Exception as error:
            inputs = {*plan.versions, *watch.graph.tables_read(plan.table)}
            lost = lost_file(lake, error, [plan.table, *sorted(inputs)])
            if lost is None or (lost.storage.root, lost.path) in met:
                raise
            met.add((lost.storage.root, lost.path))
            plan, anew = _mended(watch, lake, plan, lost, error)


def _mended(
    watch: Watch, lake: Lake, plan: RefreshPlan, lost: FileLost, error: Exception
) -> tuple[RefreshPlan, RecomputeInstead]:
    """The plan that recomputes a view after a lost file; raises the error if no plan can."""
    project, versions = watch.project, plan.versions
    why, plan = f"rebuilt: {lost.problem}", plan.whole()
    if lost.storage.root == lake.place(plan.table).root:
        return plan, RecomputeInstead(why, unreadable=True)
    keys = {*versions, *watch.graph.tables_read(plan.table)}
    key = next((each for each in keys if lake.place(each).root == lost.storage.root), None)
    newest = lake.find(key) if key is not None else None
    if key is None or newest is None:
        raise lost from error
    if lost.path not in {file.path for file in newest.files}:
        # Vacuum deleted the file of an older version; the newest version is complete.
        return replace(plan, versions={**versions, key: newest.version}), RecomputeInstead(why)
    if key not in project.views or not watch.permits.owns(key):
        raise lost from error
    first = watch.planning.plan_forced(key, f"{plan.table} reads it", lake.now())
    _refresh_view(watch, lake, first.whole(), RecomputeInstead(why, unreadable=True))
    return replace(plan, versions={**versions, key: lake.open(key).version}), RecomputeInstead(why)


def _refreshed(watch: Watch, lake: Lake, plan: RefreshPlan, anew: RecomputeInstead | None) -> Done:
    try:
        done = refreshed(lake, watch.project, plan, anew)
    except NotThereYet as waits:
        watch.planning.reveal(plan.table, [waits.key])
        raise
    watch.planning.reveal(plan.table, list(done.read or {}))
    return done


def total(done: Sequence[Done]) -> Done | None:
    """The sum of several commits of one table; None without any."""
    if not done:
        return None
    last = done[-1]
    return replace(
        last,
        rows_added=sum(d.rows_added for d in done),
        rows_removed=sum(d.rows_removed for d in done),
        rows_set_aside=sum(d.rows_set_aside for d in done),
        seconds=sum(d.seconds for d in done),
    )
