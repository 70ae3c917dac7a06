"""How do several views read one change that is scanned once?

The scan reads the change of a table between two versions, with the columns that these views need.
Few rows stay in this process; Spark keeps more rows. They stay until all these views are refreshed,
one after the other. A view uses the scan if it needs exactly this change; otherwise it reads for
itself. No view depends on the scan: if it fails, every view reads for itself and reports its own
problem.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING

from springhouse.errors import LakeError
from springhouse.lake.delta import changes
from springhouse.lake.delta.tables import quoted
from springhouse.lake.lake import Lake
from springhouse.lake.spark.kept_change import SharedScan
from springhouse.lake.views.compiled_plans import NotIncremental
from springhouse.lake.views.prepared import Prepared, prepared
from springhouse.logged_errors import passing
from springhouse.planner.refresh_plan import OneScan, RefreshPlan
from springhouse.project.declarations.declaration import Project
from springhouse.units import Seconds
from springhouse.views.delta.statement import RelationKind, Statement, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOG = logging.getLogger("springhouse.views")


@contextmanager
def scanned_once(lake: Lake, project: Project, plans: Sequence[RefreshPlan]) -> Iterator[None]:
    """Inside this context, the plans with a common change read it from one scan."""
    scan = None
    with passing(LOG, "the refresh of each view alone reports it", Exception):
        scan = _scanned(lake, project, plans)
    if scan is None:
        yield
        return
    lake.scans.append(scan)
    try:
        yield
    finally:
        lake.scans.remove(scan)
        with passing(LOG, "a session that is gone keeps nothing", Exception):
            if scan.rows is not None:
                scan.rows.unpersist()


def _scanned(lake: Lake, project: Project, plans: Sequence[RefreshPlan]) -> SharedScan | None:
    """The change, read and kept; None if fewer than two views can use it."""
    change = plans[0].scan if plans else None
    if change is None:
        return None
    began = lake.now()
    columns = {p.table: c for p in plans if (c := _columns(lake, project, p, change)) is not None}
    if len(columns) < 2:
        return None
    log, until = lake.log(change.table), lake.open(change.table, change.until)
    rows, here = None, changes.small_delta(log, change.since, until)
    if here is None:
        needed = frozenset[str]().union(*columns.values())
        names = [name for name in until.schema.fieldNames() if name in needed]
        whole = changes.strong_delta(lake.spark.session(), log, change.since, change.until)
        rows = _kept(changes.one_by_one(whole.select(*map(quoted, [*names, changes.WEIGHT]))))
    share = Seconds((lake.now() - began) / len(columns))
    return SharedScan(change, frozenset(columns), share, here, rows)


def _kept(rows: "DataFrame") -> "DataFrame":
    """The rows, read and kept by Spark."""
    if rows.storageLevel.useMemory:
        # The rows are not persisted yet, but Sail 0.7 says so of all rows, and keeps none.
        raise LakeError("this engine does not keep rows")
    kept = rows.persist()
    try:
        kept.count()
    except Exception:
        kept.unpersist()
        raise
    return kept


def _columns(
    lake: Lake, project: Project, plan: RefreshPlan, change: OneScan
) -> frozenset[str] | None:
    """The columns of the change that a refresh needs; None if it does not read this change."""
    with passing(LOG, "its refresh reports it", Exception):
        ready = prepared(lake, project, plan)
        name, work = _called(ready, change.table), ready.standing.work
        if work is None or name not in ready.changed:
            return None
        if (work.before[name].version, work.after[name].version) != (change.since, change.until):
            return None
        own = frozenset(work.after[name].schema.fieldNames())
        return own & _needed(_statements(ready), name)
    return None


def _called(ready: Prepared, table: str) -> str:
    """The name of a table in the statements of a view; "" if the view does not read it."""
    inputs = {} if isinstance(ready.found, NotIncremental) else ready.found.inputs
    return next((name for name, key in inputs.items() if key == table), "")


def _statements(ready: Prepared) -> Iterator[Statement]:
    for variant in ready.variants.values():
        for step in variant.refresh.steps if variant.refresh is not None else ():
            yield from _statements_of(step)


def _statements_of(step: Step) -> Iterator[Statement]:
    values = (getattr(step, each.name) for each in fields(step))
    yield from (each for each in values if isinstance(each, Statement))


def _needed(statements: Iterable[Statement], name: str) -> frozenset[str]:
    """The columns that statements need from the change of an input."""
    return frozenset().union(
        *(
            statement.columns[reading.name]
            for statement in statements
            for reading in statement.reads
            if reading.kind is RelationKind.CHANGE and reading.of == name
        )
    )
