"""How does a folder become a checked project?

Read the pipeline file, read every file that it names, assemble the project, and check the whole.
All errors are collected, so that a user can correct them together.
"""

from collections.abc import Iterator, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from springhouse.errors import DeclarationError, ProjectErrors, SpringhouseError
from springhouse.project.checks.rules import CheckedProject, check, flow_label
from springhouse.project.declarations.contents import Contents, Declaration, PlacedValue, read_text
from springhouse.project.declarations.declaration import (
    AppendFlow,
    CdcFlow,
    Expectation,
    Flow,
    OnViolation,
    Place,
    Project,
    Table,
    TemporaryView,
    View,
)
from springhouse.project.declarations.names import Names
from springhouse.project.declarations.secrets import (
    Configuration,
    has_reference,
    resolve,
    secret_problem,
)
from springhouse.project.from_yaml import PipelineFile, read_pipeline_file
from springhouse.project.python.plugin_decorators import BUILT_IN_SINKS, BUILT_IN_SOURCES
from springhouse.project.settings import ON_COMMAND_LINES, check_setting, check_value
from springhouse.project.sql.from_sql import read_sql
from springhouse.project.sql.schema_text import required_columns

_Declared = TypeVar("_Declared", bound=Declaration)
_Stored = TypeVar("_Stored", Table, View)


def load(
    folder: str | Path,
    spark: Any = None,
    known_sources: Set[str] = frozenset(),
    known_sinks: Set[str] = frozenset(),
) -> Project:
    """The project in `folder`, or `ProjectErrors` with all of its errors.

    `spark` is the session that the project's Python files see. `known_sources` and `known_sinks`
    are names of further plug-ins, besides the built-in ones and those of the project's own files.
    """
    folder = Path(folder).resolve()
    try:
        pipeline = read_pipeline_file(folder)
    except DeclarationError as error:
        raise ProjectErrors([error]) from None
    names = Names(pipeline.catalog or Names.catalog, pipeline.database or Names.database)
    contents = Contents(errors=list(pipeline.errors), unread=pipeline.files_missing)
    for path in pipeline.files:
        contents.add(_read_file(path, folder, names, spark))

    project = _assemble(folder, pipeline, contents)
    checked = CheckedProject(
        project,
        names,
        BUILT_IN_SOURCES | frozenset(project.sources) | frozenset(known_sources),
        BUILT_IN_SINKS | frozenset(project.sinks) | frozenset(known_sinks),
        excused=frozenset(contents.broken),
        names_missing=contents.unread,
    )
    errors: list[SpringhouseError] = [*contents.errors, *check(checked)]
    if errors:
        # An error in a name occurs wherever a statement uses the name: it is reported once.
        distinct = {str(error): error for error in errors}
        raise ProjectErrors(sorted(distinct.values(), key=_in_reading_order))
    return project


def _read_file(path: Path, folder: Path, names: Names, spark: Any) -> Contents:
    shown = path.relative_to(folder).as_posix()
    try:
        if path.suffix == ".py":
            # Imported late: pyspark takes a second to import, and many projects are only SQL.
            from springhouse.project.python.from_python import read_python

            return read_python(path, folder, names, spark)
        return read_sql(read_text(path, shown), shown, names)
    except DeclarationError as error:
        return Contents(errors=[error], unread=True)


def _assemble(folder: Path, pipeline: PipelineFile, contents: Contents) -> Project:
    """The project as declared. The second declaration of a name is an error and left out."""
    firsts: dict[str, Declaration] = {}
    for declaration in contents.named():
        first = firsts.setdefault(declaration.name, declaration)
        if first is not declaration:
            contents.errors.append(_declared_twice(declaration.name, declaration, first))
            contents.broken.add(declaration.name)
    named = list(firsts.values())
    return Project(
        name=pipeline.name,
        folder=folder,
        storage=pipeline.storage,
        catalog=pipeline.catalog,
        database=pipeline.database,
        configuration=_configuration(folder, pipeline, contents),
        tables={name: _required(table) for name, table in _by_name(named, Table).items()},
        views={name: _required(view) for name, view in _by_name(named, View).items()},
        temporary_views=_by_name(named, TemporaryView),
        flows=_flows(contents),
        sources=_plugins(contents, "source", BUILT_IN_SOURCES),
        sinks=_plugins(contents, "sink", BUILT_IN_SINKS),
    )


def _by_name(declarations: list[Declaration], kind: type[_Declared]) -> dict[str, _Declared]:
    return {found.name: found for found in declarations if isinstance(found, kind)}


def _required(declared: _Stored) -> _Stored:
    """The declaration, with an expectation for each column that it declares `NOT NULL`."""
    try:
        names = required_columns(declared.schema or "")
    except SpringhouseError:
        return declared  # There is no schema, or a rule reports its error.
    existing = {expectation.name for expectation in declared.expectations}
    added: list[Expectation] = []
    for name in names:
        expectation = _not_null(name, declared.place)
        if expectation.name not in existing:
            added.append(expectation)
    return replace(declared, expectations=(*declared.expectations, *added))


def _not_null(column: str, place: Place) -> Expectation:
    quoted = column.replace("`", "``")
    condition = f"`{quoted}` IS NOT NULL"
    return Expectation(f"{column} NOT NULL", condition, OnViolation.FAIL_UPDATE, place)


def _flows(contents: Contents) -> tuple[Flow, ...]:
    """The flows with distinct names; the second flow of a name is an error."""
    firsts: dict[str, Flow] = {}
    for flow in contents.declarations:
        if not isinstance(flow, AppendFlow | CdcFlow):
            continue
        first = firsts.setdefault(flow.name, flow)
        # A table that is declared twice with its query has an error already.
        if first is not flow and not flow.name == flow.target == first.target:
            contents.errors.append(_declared_twice(flow_label(flow), flow, first))
    return tuple(firsts.values())


def _declared_twice(name: str, second: Declaration, first: Declaration) -> DeclarationError:
    shown = name if '"' in name else f'"{name}"'
    return DeclarationError(
        f"{shown} is declared twice",
        where=str(second.place),
        hint=f"The first declaration is at {first.place}.",
    )


def _configuration(folder: Path, pipeline: PipelineFile, contents: Contents) -> Configuration:
    """The settings of the pipeline file, and those of SET, which come after them."""
    for key, written in contents.settings.items():
        error = check_setting(key, written.value, written.place)
        if error is not None:
            contents.errors.append(error)
    merged = {**pipeline.configuration, **contents.settings}
    for key, written in merged.items():
        if has_reference(written.value):
            contents.errors += _errors_of_secret(key, written, folder)
    return Configuration({key: written.value for key, written in merged.items()}, folder)


def _errors_of_secret(key: str, written: PlacedValue, folder: Path) -> Iterator[DeclarationError]:
    """The errors of a setting that refers to a secret."""
    missing = secret_problem(written.value, folder)
    if missing is not None:
        yield DeclarationError(missing.problem, where=str(written.place), hint=missing.hint)
        return
    if key in ON_COMMAND_LINES:
        problem = f'"{key}" can\'t hold a secret: all users of a machine see it, in the list of '
        problem += "its processes"
        yield DeclarationError(problem, where=str(written.place))
    wrong = check_value(key, written.value, resolve(written.value, folder), written.place)
    if wrong is not None:
        yield wrong


def _plugins(contents: Contents, kind: str, built_in: Set[str]) -> dict[str, type]:
    """The classes that the project's files register, by name."""
    places: dict[str, Place] = {}
    classes: dict[str, type] = {}
    for plugin in (p for p in contents.plugins if p.kind == kind):
        if plugin.name in built_in:
            problem = f'the {kind} "{plugin.name}" is built in'
            error = DeclarationError(problem, where=str(plugin.place), hint="Choose another name.")
            contents.errors.append(error)
        elif plugin.name in classes:
            problem = f'the {kind} "{plugin.name}" is registered twice'
            hint = f"The first is at {places[plugin.name]}."
            contents.errors.append(DeclarationError(problem, where=str(plugin.place), hint=hint))
        else:
            places[plugin.name], classes[plugin.name] = plugin.place, plugin.cls
    return classes


def _in_reading_order(error: SpringhouseError) -> tuple[str, int]:
    file, _, line = (error.where or "").rpartition(":")
    return file, int(line) if line.isdecimal() else 0
