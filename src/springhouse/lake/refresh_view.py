"""How is a view brought up to date?

In one commit, whatever the way: readers see the old rows or the new rows, never none and never
both, and the rows that differ are written as the strong delta for whoever reads this view.

    full          its query is run over one version of each input, and the result replaces what was
                  there; with `state`, the compiled form of the query is run instead, which also
                  makes the hidden columns and tables that later refreshes build on
    incremental   the compiled statements make the change from the changes of the inputs

Here the facts are gathered (what is stored, what changed, what the past taught); the planner
decides by them (`planner.choose_way`), and that is done. What is stored and does not fit (a file
that another engine rewrote has lost its hidden columns) is rebuilt, never trusted.

A view that plain Spark can compute is never stuck. If Spark fails in a statement that we compiled,
the refresh is done with the query itself, and the commit says why. The next refreshes remember it:
they are full, and after two of them (four after a second failure, and so on) one tries again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql.types import StructType

from springhouse.errors import LakeError, SchemaError, SpringhouseError
from springhouse.lake import changes
from springhouse.lake.alignment import declared, prove_types
from springhouse.lake.commits import Change, commit
from springhouse.lake.costs import (
    Looked,
    facts_of,
    looked_cost,
    unread_cost,
    variant_of,
    ways_by_change,
)
from springhouse.lake.experience import past_of, refreshes_of
from springhouse.lake.healing import Anew, lost_file
from springhouse.lake.incremental import Astray, Work
from springhouse.lake.inputs import Inputs
from springhouse.lake.lake import Lake, sync_inputs
from springhouse.lake.landing import Done
from springhouse.lake.note import FailedStatement, Note
from springhouse.lake.plans import NoPlan, Plan, compiled_view, plan_of
from springhouse.lake.queries import blamed_on, said_by
from springhouse.lake.recompute import REFRESH, Chosen, recompute, stored_provenance
from springhouse.lake.standing import (
    NO_STATE,
    changed_inputs,
    inputs_before,
    stored_state,
)
from springhouse.lake.stores import Rewritten
from springhouse.lake.tables import TableVersion
from springhouse.lake.view_quality import prove_kept
from springhouse.lake.writing import paths_of, write_arrow
from springhouse.planner.choose_way import Facts, choose_way
from springhouse.planner.logs import made_anew, provenance_of
from springhouse.planner.operators import Variant as PlannedWay
from springhouse.planner.provenance import Provenance
from springhouse.project.declaration import Project, RefreshMode, View
from springhouse.project.fingerprint import fingerprint
from springhouse.views.variants import Variant, Way, can_drive, synchronous


def refresh_view(
    lake: Lake,
    project: Project,
    view: View,
    versions: Mapping[str, int],
    reason: str,
    driver: str | None = None,
    way: Way | None = None,
    anew: Anew | None = None,
) -> Done:
    """Bring the view to its inputs as of `versions`.

    With a `driver`, asynchronously: the new rows of that input are joined with the others as of
    `versions`, and the rows that are there stay as they are. Otherwise by the cheapest way, or by
    `way` if that can be; or `anew`, whatever is stored.
    """
    began = lake.now()
    ground = lake.find(view.name)
    inputs = Inputs(lake, project, versions)
    with blamed_on(view.place):
        opened = inputs.opened(view.query)
        found = _plan(lake, project, view, inputs, opened)
        if view.refresh is RefreshMode.INCREMENTAL and isinstance(found, NoPlan):
            raise _impossible(view, found)
        if anew is not None:
            how = _How(anew.why, state=_is_stateful(lake, view))
        elif driver is not None:
            how = _driven(lake, project, view, ground, found, opened, driver)
        else:
            try:
                with _statements(lake, [view.name, *inputs.read]):
                    how = _choose(lake, project, view, ground, found, opened, way)
            except StatementFailed as failed:
                how = _after_failure(lake, view, failed)
        if how.work is not None and ground is not None and opened is not None:
            try:
                return _incremental(lake, project, view, ground, how, inputs, reason, began)
            except Astray as astray:
                how = _How(f"rebuilt: {astray.problem}", state=True)
            except StatementFailed as failed:
                how = _after_failure(lake, view, failed)
        unreadable = anew is not None and anew.unreadable
        if how.state and isinstance(found, Plan):
            chosen = Chosen(found, reason, how.why, how.expected, 0.0, how.failed, unreadable)
            try:
                with _statements(lake, [view.name, *inputs.read]):
                    return recompute(lake, project, view, ground, inputs, chosen, began)
            except StatementFailed as failed:
                how = _after_failure(lake, view, failed)
        chosen = Chosen(None, reason, how.why, how.expected, how.missed, how.failed, unreadable)
        return recompute(lake, project, view, ground, inputs, chosen, began)


class StatementFailed(LakeError):
    """Spark failed in a statement that was compiled for a view."""


@contextmanager
def _statements(lake: Lake, tables: Sequence[str]) -> Iterator[None]:
    """Tell apart what fails in compiled statements from what the user, or the lake, has to mend."""
    try:
        yield
    except SpringhouseError:
        raise
    except Exception as error:
        lost = lost_file(lake, error, tables)
        if lost is not None:
            raise lost from error
        raise StatementFailed(said_by(error)) from error


_LONGEST_PAUSE = 64


def _after_failure(lake: Lake, view: View, failed: StatementFailed) -> "_How":
    """A full refresh by the view's own query, because a compiled statement failed."""
    newest = lake.log(view.name).newest()
    before = newest.note.failed if newest is not None and newest.note is not None else None
    times = before.times + 1 if before is not None else 1
    known = FailedStatement(failed.problem, times, min(2**times, _LONGEST_PAUSE))
    return _How(f"{_FAILED}: {failed.problem}", failed=known)


_FAILED = "an incremental refresh failed"


@dataclass(frozen=True)
class _How:
    """The way that was chosen, and why: incremental if there is work for it.

    `missed` are the seconds that an incremental refresh would have saved.
    """

    why: str
    state: bool = False
    expected: float = 0.0
    foreseen: float = 0.0
    missed: float = 0.0
    work: Work | None = None
    variant: Variant = field(default_factory=lambda: Variant(Way.BATCH))
    failed: FailedStatement | None = None


def _is_stateful(lake: Lake, view: View) -> bool:
    """Whether state is kept for a view, or asked for."""
    newest = lake.log(view.name).newest()
    note = newest.note if newest is not None else None
    asked = view.refresh is RefreshMode.INCREMENTAL or view.promise.is_relaxed
    return asked or (note is not None and note.stateful)


def _plan(
    lake: Lake,
    project: Project,
    view: View,
    inputs: Inputs,
    opened: Mapping[str, TableVersion] | None,
) -> Plan | NoPlan:
    if opened is None:
        found = compiled_view(project, view, {}, None)
        assert isinstance(found, NoPlan), "what reads no tables can't be compiled"
        return found

    def visible() -> StructType:
        schema = declared(inputs.frame(view.query), view.schema, str(view.place)).schema
        prove_storable(schema, view)
        return schema

    return plan_of(lake, project, view, opened, visible)


def _choose(
    lake: Lake,
    project: Project,
    view: View,
    ground: TableVersion | None,
    found: Plan | NoPlan,
    opened: Mapping[str, TableVersion] | None,
    way: Way | None,
) -> _How:
    """What the planner decides, from what is stored and what changed."""
    if isinstance(found, NoPlan):
        return _How(str(found))
    assert opened is not None
    after = {name: opened[key] for name, key in found.inputs.items()}
    newest = lake.log(view.name).newest()
    failed = newest.note.failed if newest is not None and newest.note is not None else None
    standing = _standing(lake, project, view, ground, found, after)
    if standing.failed_before and failed is not None:
        if failed.pause > 0:
            return _How(standing.anew, failed=replace(failed, pause=failed.pause - 1))
        standing = replace(standing, anew=f"{_FAILED} before, and is tried again")
    work = standing.work
    changed = frozenset(name for name, each in work.changes.items() if each.rows) if work else None
    if work is not None and not changed and standing.missing in ("", NO_STATE):
        return _How("nothing changed", work=work, variant=synchronous(found.compiled, frozenset()))
    forced = view.refresh is RefreshMode.INCREMENTAL or way not in (None, Way.BATCH)
    rows: dict[str, float] = {name: float(version.rows) for name, version in after.items()}
    moved = {name: work.changes[name].rows for name in changed or ()} if work is not None else {}
    past = past_of(lake, project.views, view.name)
    facts = replace(
        facts_of(found.compiled, moved, work.sizes if work is not None else rows, past),
        refreshes=refreshes_of(lake, view.name),
        anew=standing.anew,
        is_new=standing.is_new,
        missing=standing.missing,
        # Without state no input can drive a refresh alone.
        keep=forced or view.promise.is_relaxed,
        incremental=forced,
        asked=variant_of(way) if way is not None else None,
    )
    how = _decided(found, facts, work, changed or frozenset())
    return replace(how, failed=failed) if standing.failed_before else how


def _decided(found: Plan, facts: Facts, work: Work | None, changed: frozenset[str]) -> _How:
    """The planner's decision, with what is needed to carry it out."""
    if work is None:
        decision, variant = choose_way(facts), None
    else:
        ways = ways_by_change(found.compiled, changed)
        decision = choose_way(facts, Looked(work, ways))
        variant = ways.get(decision.way)
    how = _How(
        decision.why,
        decision.builds_state,
        decision.cost.estimate,
        decision.foreseen,
        decision.missed,
    )
    if decision.way is PlannedWay.BATCH or variant is None:
        return how
    return replace(how, work=work, variant=variant)


@dataclass(frozen=True)
class _Standing:
    """What a refresh can stand on: work on what is stored, or why there is none (`anew`).

    `is_new` if no rows of today's definition are stored; `missing` is why there is no state.
    """

    anew: str = ""
    is_new: bool = False
    failed_before: bool = False
    missing: str = ""
    work: Work | None = None


def _standing(
    lake: Lake,
    project: Project,
    view: View,
    ground: TableVersion | None,
    found: Plan,
    after: Mapping[str, TableVersion],
) -> _Standing:
    newest = lake.log(view.name).newest()
    if ground is None or newest is None:
        return _Standing("its first refresh", is_new=True)
    note = newest.note
    if note is None:
        return _Standing("somebody else wrote it, and its hidden columns are lost")
    if note.definition != fingerprint(project, view):
        return _Standing("its definition changed", is_new=True)
    if note.failed is not None and not note.stateful:
        return _Standing(f"{_FAILED} before: {note.failed.problem}", failed_before=True)
    if note.mixed:
        return _Standing(f"it reflects several versions of {', '.join(note.mixed)}")
    before = inputs_before(lake, found, note, after)
    if isinstance(before, str):
        return _Standing(before)
    changes_since = changed_inputs(lake, found, before, after)
    work = Work(lake, changes_since, before, after, {}, found.shapes, found.casts, ground.rows)
    stores = stored_state(lake, view, found, ground, note)
    if isinstance(stores, str):
        return _Standing(missing=stores, work=work)
    work.stores.update(stores)
    return _Standing(work=work)


def _driven(
    lake: Lake,
    project: Project,
    view: View,
    ground: TableVersion | None,
    found: Plan | NoPlan,
    opened: Mapping[str, TableVersion] | None,
    driver: str,
) -> _How:
    """The way to take new rows of one input in, and only those."""
    newest = lake.log(view.name).newest()
    note = newest.note if newest is not None else None
    if isinstance(found, NoPlan) or opened is None:
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
    after = {name: opened[key] for name, key in found.inputs.items()}
    before = {**after, names[driver]: lake.open(driver, note.read[driver])}
    changed = changed_inputs(lake, found, before, after)
    if not changes.appended(lake.log(driver), note.read[driver], opened[driver].version):
        raise _not_driven(view, driver, "rows of it were deleted")
    shapes, casts = found.shapes, found.casts
    work = Work(lake, changed, before, after, stores, shapes, casts, ground.rows)
    name = frozenset({names[driver]})
    variant = Variant(Way.ASYNCHRONOUS, found.compiled.refresh(name), driver)
    cost = past_of(lake, project.views, view.name).corrected(looked_cost(work, variant))
    why = str(cost) if changed else "nothing new"
    least = unread_cost(work, variant).estimate
    return _How(why, expected=cost.estimate, foreseen=least, work=work, variant=variant)


class NotDriven(LakeError):
    """A view can't be refreshed from the new rows of one input alone, or not now."""


def _not_driven(view: View, driver: str, problem: str) -> NotDriven:
    return NotDriven(
        f'the view "{view.name}" can\'t be refreshed from "{driver}" alone: {problem}',
        where=str(view.place),
        hint="A refresh without a driver takes all inputs in.",
    )


def _incremental(
    lake: Lake,
    project: Project,
    view: View,
    ground: TableVersion,
    how: _How,
    inputs: Inputs,
    reason: str,
    began: float,
) -> Done:
    """Run the steps and commit what they wrote."""
    assert how.work is not None
    assert how.variant.refresh is not None
    work, refresh = how.work, how.variant.refresh
    newest = lake.log(view.name).newest()
    assert newest is not None
    assert newest.note is not None
    moved = any(change.rows for change in work.changes.values())
    with _statements(lake, [view.name, *inputs.read]):
        done = work.perform(refresh) if moved else None
    violations = prove_kept(lake, view, done.come if done is not None else None)
    visible = refresh.steps[-1].layout.visible
    delta = _strong_delta(ground, done, visible)
    read = dict(inputs.read)
    reflected = _reflected(lake, view, how.variant, newest.note, read)
    note = Note(
        kind="merge",
        at=lake.now(),
        before=stored_provenance(lake, view.name),
        after=reflected.provenance,
        variant=how.variant.way.value,
        reason=reason,
        why=how.why,
        expected=how.expected,
        foreseen=how.foreseen,
        rows=done.store.rows if done is not None else ground.rows,
        rows_added=delta.inserted,
        rows_removed=delta.deleted,
        definition=fingerprint(project, view),
        changes=delta.paths,
        read=read,
        ids=dict(inputs.ids),
        marks=dict(inputs.marks),
        mixed=reflected.mixed,
        state=_states(newest.note, work),
        stateful=done is not None or newest.note.stateful,
        failed=newest.note.failed if done is None else None,
        violations=violations,
    )
    told = Done(
        view.name,
        "merge",
        note.rows,
        delta.inserted,
        delta.deleted,
        reason=reason,
        read=read,
    )
    known = newest.note
    if done is None and _counts(known) == _counts(note):
        return replace(told, seconds=lake.now() - began, committed=False)
    note = replace(note, seconds=lake.now() - began)
    transactions = {REFRESH: ground.version + 1}
    add = done.added if done is not None else ()
    gone = {file.path for file in done.removed} if done is not None else set()
    remove = [file for file in ground.files if file.path in gone]
    sync_inputs(lake, note)
    commit(ground, Change(note, add, remove, transactions))
    return replace(told, seconds=lake.now() - began)


def _counts(note: Note) -> tuple[object, ...]:
    return note.after, note.read, note.ids, note.marks


@dataclass(frozen=True)
class _Reflected:
    """What the view reflects after a refresh, and of which inputs it reflects several versions."""

    provenance: Provenance
    mixed: tuple[str, ...] = ()


def _reflected(
    lake: Lake, view: View, variant: Variant, last: Note, read: Mapping[str, int]
) -> _Reflected:
    apart = view.promise.is_relaxed
    end = provenance_of(lake, read, apart=apart)
    if variant.driver is None:
        return _Reflected(end)
    moved = {**read, variant.driver: last.read[variant.driver]}
    start = provenance_of(lake, moved, apart=apart)
    after = stored_provenance(lake, view.name).converted(start, end)
    others = {key for key, version in read.items() if version != last.read.get(key)}
    return _Reflected(after, tuple(sorted({*last.mixed, *others} - {variant.driver})))


@dataclass(frozen=True)
class _Delta:
    paths: tuple[str, ...]
    inserted: int
    deleted: int


def _strong_delta(ground: TableVersion, done: Rewritten | None, visible: tuple[str, ...]) -> _Delta:
    """The rows that differ for readers, written down."""
    if done is None:
        return _Delta((), 0, 0)
    names = list(visible)
    found = changes.netted_difference(done.gone.select(names), done.come.select(names))
    if not found.num_rows:
        return _Delta((), 0, 0)
    inserted, deleted = changes.weights(found)
    return _Delta(paths_of([write_arrow(ground.storage, found, changes.FOLDER)]), inserted, deleted)


def _states(last: Note, work: Work) -> dict[str, tuple[str, ...]]:
    """The files of the hidden tables: as they were, where no step wrote them."""
    states = dict(last.state)
    for name, done in work.rewritten.items():
        if name:
            states[name] = tuple(file.path for file in done.store.files)
    return states


def _impossible(view: View, found: NoPlan) -> LakeError:
    return LakeError(
        f'the view "{view.name}" asks for incremental refreshes, and can\'t have them: '
        f"{found.reason}",
        where=found.place,
        hint="Set 'springhouse.refresh' = 'auto', or leave it out.",
    )


def prove_storable(schema: StructType, view: View) -> None:
    """An error if two columns of the view have one name, or one has a type that can't be kept."""
    prove_types(schema, str(view.place))
    names = [name.lower() for name in schema.fieldNames()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(
            f'the view "{view.name}" has two columns named "{twice[0]}"',
            where=str(view.place),
            hint=f"Give one another name: … AS {twice[0]}_2",
        )
