"""Can a view be refreshed incrementally, and which state does that need?

The compiler runs once per definition and input columns. Spark then gives the types of the compiled
statements. If Spark refuses a statement, the view is always recomputed, and Spark's message is the
reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from springhouse.lake.delta.stores import Store
from springhouse.lake.delta.tables import TableVersion, arrow_schema
from springhouse.lake.lake import Lake
from springhouse.lake.views.incremental import Casts, Work, nullable
from springhouse.project.declarations.declaration import (
    OnViolation,
    Project,
    ReadMode,
    RefreshMode,
    View,
)
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.project.lineage.keys import input_key
from springhouse.views.compile import Compiled, compile_view
from springhouse.views.read.inline import Inlined, inlined
from springhouse.views.read.not_compilable import NotCompilable

if TYPE_CHECKING:
    from collections.abc import Callable

STATE = "_state"


@dataclass(frozen=True)
class CompiledPlan:
    """A view that can be refreshed incrementally.

    `inputs` maps the names in its statements to keys. `shapes` are the columns of the view ("") and
    of its hidden tables. `casts` are the casts that its statements need (`Work`).
    """

    compiled: Compiled
    inputs: Mapping[str, str]
    shapes: Mapping[str, StructType]
    casts: Casts = field(default_factory=dict)

    def arrow(self, name: str) -> pa.Schema:
        return arrow_schema(self.shapes[name])


@dataclass(frozen=True)
class NotIncremental:
    """A view that is recomputed, and the reason. `for_now` says that the reason may go away."""

    reason: str
    place: str
    for_now: bool = False

    def __str__(self) -> str:
        return f"{self.reason} ({self.place})"


def compiled_view(
    project: Project,
    view: View,
    schemas: Mapping[str, StructType],
    columns: list[str] | None,
    *,
    decimals: bool = True,
) -> tuple[Compiled, Inlined] | NotIncremental:
    """The view's statements, from the columns of its inputs by key (`schemas`)."""
    flat: Inlined | None = None
    try:
        _validate_wanted(view)
        flat = inlined(project, view)
        known: dict[str, dict[str, str]] = {}
        for name, key in flat.inputs.items():
            if input_key(*key) not in schemas:
                return _not_made_yet(view, *key)
            known[name] = _types(schemas[input_key(*key)])
        text = _with_dropped_rows(flat.text, view)
        return compile_view(text, known, columns, decimals=decimals), flat
    except NotCompilable as refused:
        line = view.query.place.line + (refused.line or 1) - 1
        return NotIncremental(refused.reason, f"{view.query.place.file}:{line}")


def known_plan(
    lake: Lake, project: Project, view: View, keys: Sequence[str]
) -> tuple[Compiled, Inlined] | NotIncremental:
    """The result of `plan_of`, as far as it is known without Spark; `keys` are the inputs."""
    opened = {key: lake.find(key) for key in keys}
    schemas = {key: version.schema for key, version in opened.items() if version is not None}
    found = compiled_view(project, view, schemas, None)
    newest, stored = lake.log(view.name).newest(), lake.find(view.name)
    if isinstance(found, NotIncremental) or newest is None or newest.note is None or stored is None:
        return found
    if newest.note.definition != fingerprint(project, view):
        return found
    # The declaration may rename the columns. The stored table has the final names.
    columns = stored.schema.fieldNames()
    if len(columns) == len(found[0].names) and tuple(columns) != found[0].names:
        found = compiled_view(project, view, schemas, columns)
    return _incomparable(view, stored.schema) or found


def plan_of(
    lake: Lake,
    project: Project,
    view: View,
    versions: Mapping[str, TableVersion],
    visible: "Callable[[], StructType]",
) -> CompiledPlan | NotIncremental:
    """The view's compiled plan, or why it has none; `visible` gives the columns of its query."""
    schemas = {key: version.schema for key, version in versions.items()}
    asked = (
        view.name,
        fingerprint(project, view),
        *(f"{k} {s.json()}" for k, s in schemas.items()),
    )
    if asked not in lake.plans:
        lake.plans[asked] = _planned(lake, project, view, versions, visible())
    found: CompiledPlan | NotIncremental = lake.plans[asked]
    return found


def _planned(
    lake: Lake,
    project: Project,
    view: View,
    versions: Mapping[str, TableVersion],
    visible: StructType,
) -> CompiledPlan | NotIncremental:
    schemas = {key: version.schema for key, version in versions.items()}
    found = compiled_view(project, view, schemas, visible.fieldNames())
    if isinstance(found, NotIncremental):
        return found
    incomparable = _incomparable(view, visible)
    if incomparable is not None:
        return incomparable
    plan = _shaped(lake, view, found, versions, visible)
    if isinstance(plan, CompiledPlan) and not _agrees(plan):
        # Some settings of Spark change the digits of its decimals.
        found = compiled_view(project, view, schemas, visible.fieldNames(), decimals=False)
        assert not isinstance(found, NotIncremental), "the same text was compiled before"
        plan = _shaped(lake, view, found, versions, visible)
    return plan


def _agrees(plan: CompiledPlan) -> bool:
    """Whether sums have the types that the statements expect."""
    return all(
        plan.shapes[step.table][name].dataType.simpleString() == kind
        for step in plan.compiled.build
        for name, kind in step.layout.types.items()
    )


def _shaped(
    lake: Lake,
    view: View,
    found: tuple[Compiled, Inlined],
    versions: Mapping[str, TableVersion],
    visible: StructType,
) -> CompiledPlan | NotIncremental:
    """The plan with the columns that Spark gives its tables."""
    compiled, flat = found
    inputs = {name: input_key(*key) for name, key in flat.inputs.items()}
    shapes: dict[str, StructType] = {}
    work = Work(lake, {}, {}, {n: versions[key] for n, key in inputs.items()}, {}, shapes)
    try:
        for step in compiled.build:
            shape = work.frame(step.build).schema
            if not step.table:
                hidden = [field for field in shape.fields if field.name in step.layout.hidden]
                shape = StructType([*visible.fields, *hidden])
            shapes[step.table] = _nullable(shape)
            storage = lake.place(view.name)
            work.stores[step.table] = Store(storage, "", (), arrow_schema(shapes[step.table]))
    except PySparkException as error:
        said = next((line for line in str(error).splitlines() if line.strip()), "")
        place = str(view.query.place)
        return NotIncremental(f"Spark does not take what was compiled: {said}", place)
    return CompiledPlan(compiled, inputs, shapes)


def _not_made_yet(view: View, reading: ReadMode, name: str) -> NotIncremental:
    reason = f'no refresh has made "{name}" yet'
    if reading is ReadMode.DELTA:
        reason = f"there is no {input_key(reading, name)} yet"
    return NotIncremental(reason, str(view.query.place), for_now=True)


def _incomparable(view: View, visible: StructType) -> NotIncremental | None:
    for column in visible.fields:
        if _has_map(column.dataType):
            reason = f'rows with the MAP column "{column.name}" can\'t be compared'
            return NotIncremental(reason, str(view.query.place))
    return None


def _validate_wanted(view: View) -> None:
    if view.refresh is RefreshMode.FULL:
        raise NotCompilable("'springhouse.refresh' = 'full' asks for it")
    for expectation in view.expectations:
        if expectation.on_violation is OnViolation.QUARANTINE:
            raise NotCompilable(f'the expectation "{expectation.name}" sends rows to quarantine')


def _with_dropped_rows(text: str, view: View) -> str:
    """The query without the rows that an expectation drops."""
    dropped = [e for e in view.expectations if e.on_violation is OnViolation.DROP_ROW]
    if not dropped:
        return text
    kept = " AND ".join(f"COALESCE(({e.condition}), FALSE)" for e in dropped)
    return f"SELECT * FROM ({text}) AS expected WHERE {kept}"


def _types(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema.fields}


def _nullable(schema: StructType) -> StructType:
    """The columns as Spark reads them from files: every column and element may be NULL.

    An array whose elements may be NULL can't be cast to one whose elements may not.
    """
    return StructType([StructField(f.name, nullable(f.dataType), True) for f in schema.fields])


def _has_map(kind: DataType) -> bool:
    if isinstance(kind, MapType):
        return True
    if isinstance(kind, ArrayType):
        return _has_map(kind.elementType)
    return isinstance(kind, StructType) and any(_has_map(f.dataType) for f in kind.fields)
