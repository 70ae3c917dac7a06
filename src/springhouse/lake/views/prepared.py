"""What does a refresh of a view start with?

This module opens the inputs as of the planned versions, compiles the statements and looks at the
stored state. It provides the facts for the planner's decision (`planner.refresh_plan`), and a
closer look, which reads the keys that changed. It decides nothing and writes nothing.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from springhouse.errors import LakeError, SchemaError, SpringhouseError
from springhouse.lake.delta import changes
from springhouse.lake.delta.alignment import validate_types, with_declared_columns
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.lake import Lake
from springhouse.lake.landing.inputs import RefreshInputs
from springhouse.lake.spark.queries import error_line, errors_at
from springhouse.lake.views.closer_look import (
    CloserLook,
    batch_cost,
    facts_of,
    unread_cost,
    ways_by_change,
)
from springhouse.lake.views.compiled_plans import (
    CompiledPlan,
    NotIncremental,
    compiled_view,
    plan_of,
)
from springhouse.lake.views.experience import past_of, refreshes_of
from springhouse.lake.views.healing import RecomputeInstead, lost_file
from springhouse.lake.views.incremental import Work
from springhouse.lake.views.stored_state import (
    NO_STATE,
    changed_inputs,
    inputs_before,
    stored_state,
)
from springhouse.planner.delta_logs import made_anew
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.planner.search.operators import WidgetVariant as PlannedWay
from springhouse.planner.way.choose_way import WayFacts
from springhouse.planner.way.past_refreshes import Past
from springhouse.project.declarations.declaration import Project, RefreshMode, View
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.units import Instant
from springhouse.views.variants import RefreshVariant, Way, can_drive, drives_alone, synchronous

if TYPE_CHECKING:
    from springhouse.lake.spark.kept_change import SharedScan


class StatementFailed(LakeError):
    """Spark failed in a compiled statement of a view."""


class NotDriven(LakeError):
    """A view can't be refreshed from the new rows of one input alone, at least not now."""


@contextmanager
def statements_of(lake: Lake, tables: list[str]) -> Iterator[None]:
    """Raise `StatementFailed` for a failed compiled statement, `FileLost` if a file is lost."""
    try:
        yield
    except SpringhouseError:
        raise
    except Exception as error:
        lost = lost_file(lake, error, tables)
        if lost is not None:
            raise lost from error
        raise StatementFailed(error_line(error)) from error


@dataclass(frozen=True)
class StartingPoint:
    """The start of a refresh: work on the stored rows, or why the view starts over (`anew`).

    `is_new` says that no rows of the current definition are stored. `missing` says why there is no
    state.
    """

    anew: str = ""
    is_new: bool = False
    missing: str = ""
    work: Work | None = None


@dataclass(frozen=True)
class Prepared:
    """A refresh that is ready to begin: the inputs, the stored state and the changes."""

    lake: Lake
    project: Project
    view: View
    inputs: RefreshInputs
    opened: Mapping[str, TableVersion]
    found: CompiledPlan | NotIncremental
    ground: TableVersion | None
    note: Note | None
    standing: StartingPoint
    driver: str | None
    began: Instant

    @cached_property
    def changed(self) -> frozenset[str]:
        """The inputs whose rows changed since the view read them, by the compiler's names."""
        work = self.standing.work
        return (
            frozenset(n for n, each in work.changes.items() if each.rows) if work else frozenset()
        )

    @cached_property
    def facts(self) -> WayFacts:
        """The facts about this refresh, from numbers of rows and past refreshes."""
        lake, view, standing, found = self.lake, self.view, self.standing, self.found
        past = past_of(lake, self.project.views, view.name)
        if isinstance(found, NotIncremental):
            cost = batch_cost(sum(each.rows for each in self.opened.values()))
            return WayFacts(cost, cost, (), past, refreshes_of(lake, view.name), only=str(found))
        work = standing.work
        if self.driver is not None and work is not None:
            return self._driven_facts(work, past)
        rows = (
            work.sizes
            if work is not None
            else {name: float(self.opened[key].rows) for name, key in found.inputs.items()}
        )
        moved = {name: work.changes[name].rows for name in self.changed} if work is not None else {}
        incremental = view.refresh is RefreshMode.INCREMENTAL
        failed = self.note.failed if self.note is not None and not self.note.stateful else None
        return replace(
            facts_of(found.compiled, moved, rows, past),
            refreshes=refreshes_of(lake, view.name),
            anew=standing.anew,
            is_new=standing.is_new,
            missing=standing.missing,
            # Without state no input can drive a refresh alone.
            keep=incremental or view.promise.is_relaxed,
            incremental=incremental,
            unchanged=work is not None and not self.changed and standing.missing in ("", NO_STATE),
            failed=None if standing.is_new else failed,
        )

    def _driven_facts(self, work: Work, past: Past) -> WayFacts:
        """The facts about a refresh that one input drives."""
        driven = unread_cost(work, self.variants[PlannedWay.ASYNCHRONOUS])
        batch = batch_cost(sum(version.rows for version in work.after.values()))
        way = PlannedWay.ASYNCHRONOUS
        return WayFacts(batch, batch, (driven,), past, asked=way, unchanged=not self.changed)

    @cached_property
    def variants(self) -> Mapping[PlannedWay, RefreshVariant]:
        """The ways that take in the changes, with their statements."""
        found = self.found
        if isinstance(found, NotIncremental) or self.standing.work is None:
            return {}
        if self.driver is not None:
            name = next(own for own, key in found.inputs.items() if key == self.driver)
            steps = found.compiled.refresh(frozenset({name}))
            return {PlannedWay.ASYNCHRONOUS: RefreshVariant(Way.ASYNCHRONOUS, steps, self.driver)}
        if not self.changed:
            return {PlannedWay.INCREMENTAL: synchronous(found.compiled, frozenset())}
        return ways_by_change(found.compiled, self.changed)

    @property
    def scan(self) -> "SharedScan | None":
        """The scan that the refresh shares with other views, if any."""
        work = self.standing.work
        scans = (work.changes[name].scan for name in self.changed) if work is not None else ()
        return next((each for each in scans if each is not None), None)

    @property
    def look(self) -> CloserLook | None:
        """A closer look, which reads the keys that changed; None without stored rows to use."""
        work = self.standing.work
        return CloserLook(work, self.variants) if work is not None and self.variants else None

    @property
    def tables(self) -> list[str]:
        """The view and its inputs."""
        return [self.view.name, *self.inputs.read]


def prepared(
    lake: Lake, project: Project, plan: RefreshPlan, anew: RecomputeInstead | None = None
) -> Prepared:
    """Open the inputs of a refresh; raises `NotDriven` if the plan's driver can't drive any more.

    With `anew`, the refresh ignores the stored rows and state.
    """
    began = lake.now()
    view = project.views[plan.table]
    ground = lake.find(view.name)
    inputs = RefreshInputs(lake, project, plan.versions)
    newest = lake.log(view.name).newest()
    note = newest.note if newest is not None else None
    with errors_at(view.place):
        opened = inputs.opened(view.query)
        found = _compiled(lake, project, view, inputs, opened)
        if view.refresh is RefreshMode.INCREMENTAL and isinstance(found, NotIncremental):
            raise _impossible(view, found)
        after = _by_name(found, opened)
        if anew is not None:
            standing = StartingPoint(anew.why)
        elif plan.driver is not None:
            work = _driven(lake, view, ground, note, found, after, plan.driver)
            standing = StartingPoint(work=work)
        else:
            standing = _standing(lake, project, view, ground, note, found, after)
    return Prepared(
        lake,
        project,
        view,
        inputs,
        opened or {},
        found,
        ground,
        note,
        standing,
        plan.driver,
        began,
    )


def _by_name(
    found: CompiledPlan | NotIncremental, opened: Mapping[str, TableVersion] | None
) -> dict[str, TableVersion]:
    if isinstance(found, NotIncremental) or opened is None:
        return {}
    return {name: opened[key] for name, key in found.inputs.items()}


def _compiled(
    lake: Lake,
    project: Project,
    view: View,
    inputs: RefreshInputs,
    opened: Mapping[str, TableVersion] | None,
) -> CompiledPlan | NotIncremental:
    if opened is None:
        found = compiled_view(project, view, {}, None)
        assert isinstance(found, NotIncremental), "what reads no tables can't be compiled"
        return found

    def visible() -> StructType:
        schema = with_declared_columns(
            inputs.frame(view.query), view.schema, str(view.place)
        ).schema
        validate_storable(schema, view)
        return schema

    return plan_of(lake, project, view, opened, visible)


def _standing(
    lake: Lake,
    project: Project,
    view: View,
    ground: TableVersion | None,
    note: Note | None,
    found: CompiledPlan | NotIncremental,
    after: Mapping[str, TableVersion],
) -> StartingPoint:
    """The stored rows and state to build on; nothing if the view is always recomputed."""
    if isinstance(found, NotIncremental):
        return StartingPoint()
    if ground is None:
        return StartingPoint("its first refresh", is_new=True)
    if note is None:
        return StartingPoint("somebody else wrote it, and its hidden columns are lost")
    if note.definition != fingerprint(project, view):
        return StartingPoint("its definition changed", is_new=True)
    if note.mixed:
        return StartingPoint(f"it reflects several versions of {', '.join(note.mixed)}")
    before = inputs_before(lake, found, note, after)
    if isinstance(before, str):
        return StartingPoint(before)
    changes_since = changed_inputs(lake, view, found, before, after)
    work = Work(lake, changes_since, before, after, {}, found.shapes, found.casts, ground.rows)
    stores = stored_state(lake, view, found, ground, note)
    if isinstance(stores, str):
        return StartingPoint(missing=stores, work=work)
    work.stores.update(stores)
    return StartingPoint(work=work)


def _driven(
    lake: Lake,
    view: View,
    ground: TableVersion | None,
    note: Note | None,
    found: CompiledPlan | NotIncremental,
    after: Mapping[str, TableVersion],
    driver: str,
) -> Work:
    """The work of taking in the new rows of one input, and no others."""
    if isinstance(found, NotIncremental):
        raise _not_driven(view, driver, str(found))
    names = {key: name for name, key in found.inputs.items()}
    if driver not in names or not can_drive(found.compiled, names[driver]):
        raise _not_driven(view, driver, "what it adds depends on more than its new rows")
    if ground is None or note is None or driver not in note.read:
        raise _not_driven(view, driver, "its first refresh takes all inputs in")
    if made_anew(lake, note):
        raise _not_driven(view, driver, "an input was made anew")
    stores = stored_state(lake, view, found, ground, note)
    if isinstance(stores, str):
        raise _not_driven(view, driver, stores)
    driven = after[names[driver]]
    before = {**after, names[driver]: lake.open(driver, note.read[driver])}
    changed = changed_inputs(lake, view, found, before, after)
    is_alone = drives_alone(found.compiled, names[driver])
    if not is_alone and not changes.only_added(lake.log(driver), note.read[driver], driven.version):
        raise _not_driven(view, driver, "rows of it were changed or deleted")
    shapes, casts = found.shapes, found.casts
    return Work(lake, changed, before, dict(after), stores, shapes, casts, ground.rows)


def _not_driven(view: View, driver: str, problem: str) -> NotDriven:
    return NotDriven(
        f'the view "{view.name}" can\'t be refreshed from "{driver}" alone: {problem}',
        where=str(view.place),
        hint="A refresh without a driver takes all inputs in.",
    )


def _impossible(view: View, found: NotIncremental) -> LakeError:
    return LakeError(
        f'the view "{view.name}" asks for incremental refreshes, and can\'t have them: '
        f"{found.reason}",
        where=found.place,
        hint="Set 'springhouse.refresh' = 'auto', or leave it out.",
    )


def validate_storable(schema: StructType, view: View) -> None:
    """Raise an error if two columns have the same name, or a type can't be stored."""
    validate_types(schema, str(view.place))
    names = [name.lower() for name in schema.fieldNames()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(
            f'the view "{view.name}" has two columns named "{twice[0]}"',
            where=str(view.place),
            hint=f"Give one another name: … AS {twice[0]}_2",
        )
