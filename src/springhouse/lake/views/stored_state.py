"""What does an incremental refresh start from?

It needs the input versions before and after the refresh, the changes between them, and the stored
state. If one of these is missing or does not fit, a sentence says so, and the view is recomputed.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from springhouse.errors import LakeError
from springhouse.lake.delta import changes
from springhouse.lake.delta.alignment import same_columns
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.stores import Store, describe_file
from springhouse.lake.delta.tables import TableVersion, file_columns
from springhouse.lake.lake import Lake
from springhouse.lake.views.compiled_plans import STATE, CompiledPlan
from springhouse.lake.views.incremental import ChangedInput
from springhouse.planner.delta_logs import made_anew
from springhouse.project.declarations.declaration import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NO_STATE = "no state is stored yet"


def inputs_before(
    lake: Lake, plan: CompiledPlan, note: Note, after: Mapping[str, TableVersion]
) -> dict[str, TableVersion] | str:
    """The inputs in the versions that the view reflects, or why they are not available."""
    before: dict[str, TableVersion] = {}
    anew = made_anew(lake, note)
    if anew:
        return f'"{anew[0]}" was made anew'
    for name, key in plan.inputs.items():
        if key not in note.read:
            return f'it has not read "{key}" before'
        version = note.read[key]
        if version == after[name].version:
            before[name] = after[name]
            continue
        if version > after[name].version:
            return f'"{key}" stepped back'
        try:
            before[name] = lake.open(key, version)
        except LakeError:
            return f'version {version} of "{key}" is gone'
        if not same_columns(before[name].schema, after[name].schema):
            return f'the columns of "{key}" changed'
    return before


def changed_inputs(
    lake: Lake,
    view: View,
    plan: CompiledPlan,
    before: Mapping[str, TableVersion],
    after: Mapping[str, TableVersion],
) -> dict[str, ChangedInput]:
    """The change of each input since the view read it."""
    found: dict[str, ChangedInput] = {}
    for name, key in plan.inputs.items():
        start, end = before[name], after[name]
        if start.version == end.version:
            continue
        log, versions = lake.log(key), (start.version, end.version)
        scan = next((s for s in lake.scans if s.is_for(view.name, key, *versions)), None)
        rows = changes.rows_between(log, start, end)
        if scan is not None:
            found[name] = ChangedInput(rows, scan.load, scan.read, scan)
            continue
        found[name] = ChangedInput(
            rows,
            partial(changes.small_delta, log, start.version, end),
            partial(_large_delta, lake, log, start, end),
        )
    return found


def _large_delta(lake: Lake, log: TableLog, start: TableVersion, end: TableVersion) -> "DataFrame":
    session, scans = lake.spark.session(), lake.remote_scans
    frame = changes.strong_delta(session, log, start.version, end.version, scans)
    return changes.one_by_one(frame)


def stored_state(
    lake: Lake, view: View, plan: CompiledPlan, ground: TableVersion, note: Note
) -> dict[str, Store] | str:
    """The stored state for incremental refreshes, or a sentence that says what is missing."""
    last = plan.compiled.build[-1]
    stores: dict[str, Store] = {}
    for step in plan.compiled.build[:-1]:
        if step.table not in note.state:
            return NO_STATE
        files = tuple(describe_file(ground.storage, path) for path in note.state[step.table])
        stores[step.table] = Store(
            ground.storage, f"{STATE}/{step.table}", files, plan.arrow(step.table)
        )
    if not note.stateful:
        return NO_STATE
    for file in ground.files:
        lost = set(last.layout.hidden) - _columns_of(lake, ground, file.path)
        if lost:
            return "its hidden columns are lost: somebody else, or another release, wrote its files"
    files = tuple(describe_file(ground.storage, file.path) for file in ground.files)
    stores[""] = Store(ground.storage, "", files, plan.arrow(""))
    return stores


def _columns_of(lake: Lake, ground: TableVersion, path: str) -> frozenset[str]:
    asked = ("columns", ground.storage.root, path)
    if asked not in lake.plans:
        file = next(each for each in ground.files if each.path == path)
        lake.plans[asked] = frozenset(file_columns(ground.storage, file))
    found: frozenset[str] = lake.plans[asked]
    return found
