"""Can a view be refreshed incrementally, and what is stored for that?

The compiler is asked once per definition and columns of the inputs. Spark then says which types the
compiled statements have; a statement that it refuses makes the view one that is recomputed, with
Spark's own reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from springhouse.lake.incremental import Work
from springhouse.lake.lake import Lake, input_key
from springhouse.lake.stores import Store
from springhouse.lake.tables import TableVersion, arrow_schema
from springhouse.project.declaration import OnViolation, Project, RefreshMode, View
from springhouse.project.fingerprint import fingerprint
from springhouse.views.compile import Compiled, compile_view
from springhouse.views.inline import Inlined, inlined
from springhouse.views.refused import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

STATE = "_state"


@dataclass(frozen=True)
class Plan:
    """A view that can be refreshed incrementally.

    `inputs` are the keys behind the names in its statements; `shapes` are the columns of the view
    ("") and of its hidden tables.
    """

    compiled: Compiled
    inputs: Mapping[str, str]
    shapes: Mapping[str, StructType]

    def arrow(self, name: str) -> pa.Schema:
        return arrow_schema(self.shapes[name])


@dataclass(frozen=True)
class NoPlan:
    """A view that is always recomputed, and why."""

    reason: str
    place: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.place})"


def compiled_view(
    project: Project, view: View, schemas: Mapping[str, StructType], columns: list[str] | None
) -> tuple[Compiled, Inlined] | NoPlan:
    """The view's statements; `schemas` are the columns of its inputs by key."""
    flat: Inlined | None = None
    try:
        _prove_wanted(view)
        flat = inlined(project, view)
        known = {
            name: _types(schemas[input_key(reading, of)])
            for name, (reading, of) in flat.inputs.items()
        }
        return compile_view(_with_dropped_rows(flat.text, view), known, columns), flat
    except Refused as refused:
        line = view.query.place.line + (refused.line or 1) - 1
        return NoPlan(refused.reason, f"{view.query.place.file}:{line}")


def plan_of(
    lake: Lake,
    project: Project,
    view: View,
    versions: Mapping[str, TableVersion],
    visible: "Callable[[], StructType]",
) -> Plan | NoPlan:
    """How the view can be refreshed; `visible` gives the columns of its own query."""
    schemas = {key: version.schema for key, version in versions.items()}
    asked = (
        view.name,
        fingerprint(project, view),
        *(f"{k} {s.json()}" for k, s in schemas.items()),
    )
    if asked not in lake.plans:
        lake.plans[asked] = _planned(lake, project, view, versions, visible())
    found: Plan | NoPlan = lake.plans[asked]
    return found


def _planned(
    lake: Lake,
    project: Project,
    view: View,
    versions: Mapping[str, TableVersion],
    visible: StructType,
) -> Plan | NoPlan:
    place = str(view.query.place)
    schemas = {key: version.schema for key, version in versions.items()}
    found = compiled_view(project, view, schemas, visible.fieldNames())
    if isinstance(found, NoPlan):
        return found
    compiled, flat = found
    for column in visible.fields:
        if _has_map(column.dataType):
            return NoPlan(f'rows with the MAP column "{column.name}" can\'t be compared', place)
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
        return NoPlan(f"Spark does not take what was compiled: {said}", place)
    return Plan(compiled, inputs, shapes)


def _prove_wanted(view: View) -> None:
    if view.refresh is RefreshMode.FULL:
        raise Refused("'springhouse.refresh' = 'full' asks for it")
    for expectation in view.expectations:
        if expectation.on_violation is OnViolation.QUARANTINE:
            raise Refused(f'the expectation "{expectation.name}" sends rows to quarantine')


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
    return StructType([StructField(f.name, f.dataType, True) for f in schema.fields])


def _has_map(kind: DataType) -> bool:
    if isinstance(kind, MapType):
        return True
    if isinstance(kind, ArrayType):
        return _has_map(kind.elementType)
    return isinstance(kind, StructType) and any(_has_map(f.dataType) for f in kind.fields)
