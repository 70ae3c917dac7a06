"""What does a Python file of a project declare?

Files use Spark's own decorators (`from pyspark import pipelines as dp`). They are executed as
`spark-pipelines` executes them: in the project's folder, with a global `spark`. But the decorators
register their functions here, and no JVM starts: `SparkSession.active()` and the session's builder
return the session of the caller, which may start only at its first use.

This is the only module of the room that imports pyspark.
"""

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pyspark.pipelines
import pyspark.pipelines.api
from pyspark.errors import PySparkException
from pyspark.errors import utils as spark_errors
from pyspark.pipelines import flow as spark_flow
from pyspark.pipelines import output as spark_output
from pyspark.pipelines.graph_element_registry import (
    GraphElementRegistry,
    graph_element_registration_context,
)
from pyspark.pipelines.source_code_location import SourceCodeLocation
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as spark_functions
from pyspark.sql.types import StructType

from springhouse.errors import DeclarationError, SourceError
from springhouse.project.declarations.contents import Contents, PlacedValue, read_text
from springhouse.project.declarations.declaration import (
    AppendFlow,
    CdcFlow,
    Place,
    PythonQuery,
    Query,
    ReadMode,
    Reference,
    Table,
    TemporaryView,
    View,
)
from springhouse.project.declarations.names import Names
from springhouse.project.python.plugin_decorators import collect_plugins
from springhouse.project.python.python_functions import DeclaredFunction, find_reads, find_sql
from springhouse.project.settings import Holder
from springhouse.project.sql.schema_text import column_comments
from springhouse.project.table_properties import Properties, read_properties

_NO_SESSION = (
    "There is no Spark session yet while files are loaded: use it inside the query function."
)


def read_python(path: Path, folder: Path, names: Names, spark: Any = None) -> Contents:
    """The declarations of a Python file; `spark` is the session that the file sees.

    During the call, the working folder and a few names in pyspark are changed for the whole
    process. So a process loads one project at a time.
    """
    session = spark if spark is not None else _NoSession()
    content = read_text(path, path.relative_to(folder).as_posix())
    registry = _Registry(folder, names, content, session)
    with ExitStack() as stack:
        stack.enter_context(_working_in(folder))
        stack.enter_context(_without_bytecode())
        stack.enter_context(_session_replaced(session))
        stack.enter_context(_extended_cdc(registry))
        stack.enter_context(graph_element_registration_context(registry))
        registry.contents.plugins = stack.enter_context(collect_plugins(registry.place))
        try:
            _execute(path, registry.content, session)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the user's code may raise anything)
            registry.contents.errors.append(registry.failure(error, path))
            registry.contents.unread = True
    registry.finish()
    return registry.contents


def _execute(path: Path, content: str, session: Any) -> None:
    # The file is executed, not imported. So nothing stays in sys.modules, functions are sent to
    # Spark's workers by value, and no __pycache__ appears in the user's folder.
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    module.__dict__["spark"] = session
    exec(compile(content, str(path), "exec"), module.__dict__)  # noqa: S102 (the purpose of this function)


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """Imports from the user's folder leave no __pycache__ there."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


class _NoSession:
    """Takes the place of Spark where a project is only read."""

    def __getattr__(self, name: str) -> Any:
        raise DeclarationError(f"spark.{name} is used while the file is loaded", hint=_NO_SESSION)


class _Registry(GraphElementRegistry):
    """Turns the functions that the decorators register into declarations."""

    def __init__(self, folder: Path, names: Names, content: str, session: object) -> None:
        self.contents = Contents()
        self.content = content
        self.scd_type = 1  # Of the AUTO CDC flow that is being registered.
        self._folder = folder
        self._names = names
        self._session = session
        self._outputs: list[spark_output.Output] = []
        self._flows: list[tuple[spark_flow.Flow, DeclaredFunction]] = []
        self._cdc_flows: list[tuple[spark_flow.AutoCdcFlow, Place, int]] = []

    # What pyspark calls

    def register_output(self, output: spark_output.Output) -> None:
        if isinstance(output, spark_output.Sink):
            raise DeclarationError(
                f'the sink "{output.name}" is declared without a table, and a sink belongs to a '
                "table",
                where=str(self._place_of(output.source_code_location)),
                hint="Send the changes of a table or view: give it the table property "
                "'springhouse.sink.<name>' = '<plug-in>'.",
            )
        self._outputs.append(output)

    def register_flow(self, flow: spark_flow.Flow) -> None:
        self._flows.append((flow, DeclaredFunction.now(flow.func)))

    def register_auto_cdc_flow(self, flow: spark_flow.AutoCdcFlow) -> None:
        place = next(self._frames(traceback.extract_stack()), None)
        assert place is not None, "a flow is registered by a file of the project"
        self._cdc_flows.append((flow, place, self.scd_type))

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        raise AssertionError("SQL files are read by from_sql")

    # Places

    def place(self, filename: str, line: int) -> Place:
        """A line of a file; the path of a project's file is relative to the project's folder."""
        path = Path(filename)
        inside = path.is_absolute() and path.is_relative_to(self._folder)
        return Place(path.relative_to(self._folder).as_posix() if inside else filename, line)

    def _place_of(self, location: SourceCodeLocation) -> Place:
        return self.place(location.filename, location.line_number or 1)

    def _frames(self, stack: Sequence[traceback.FrameSummary]) -> Iterator[Place]:
        """The places of a stack that are in the project, the innermost first."""
        for frame in reversed(stack):
            path = Path(frame.filename)
            # The folder may contain a virtual environment, whose files are not the user's.
            if path.is_relative_to(self._folder) and "site-packages" not in path.parts:
                yield self.place(frame.filename, frame.lineno or 1)

    def failure(self, error: BaseException, path: Path) -> DeclarationError:
        """The error for the user about an exception that their file raised."""
        if isinstance(error, SyntaxError) and error.filename is not None:
            place = self.place(error.filename, error.lineno or 1)
            return DeclarationError(f"this is not Python: {error.msg}", where=str(place))
        stack = traceback.extract_tb(error.__traceback__)
        where = str(next(self._frames(stack), self.place(str(path), 1)))
        if isinstance(error, DeclarationError):
            return DeclarationError(error.problem, where=error.where or where, hint=error.hint)
        problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        in_pyspark = f"{os.sep}pyspark{os.sep}sql{os.sep}" in stack[-1].filename if stack else False
        needs_session = in_pyspark and isinstance(error, AssertionError | PySparkException)
        return DeclarationError(problem, where=where, hint=_NO_SESSION if needs_session else None)

    # Declarations

    def finish(self) -> None:
        """Turn everything that the file registered into declarations."""
        flows = list(self._flows)
        for output in self._outputs:
            self._declare_output(output, flows)
        for flow, declared in flows:
            self._declare_flow(flow, declared)
        for cdc_flow, place, scd_type in self._cdc_flows:
            try:
                self._declare_cdc_flow(cdc_flow, place, scd_type)
            except DeclarationError as error:
                self.contents.errors.append(error)

    def _declare_output(
        self, output: spark_output.Output, flows: list[tuple[spark_flow.Flow, DeclaredFunction]]
    ) -> None:
        name = self._names.parse(output.name)
        place = self._place_of(output.source_code_location)
        if isinstance(output, spark_output.StreamingTable):
            self.contents.declarations.append(self._table(name, output, place))
            return
        # The decorator of a view registers the view, then its query as a flow of the same name.
        at = next(i for i, (f, _) in enumerate(flows) if f.name == f.target == output.name)
        query = self._query_of_view(flows.pop(at)[1], place)
        if isinstance(output, spark_output.MaterializedView):
            self.contents.declarations.append(self._view(name, output, place, query))
        else:
            self.contents.declarations.append(TemporaryView(name, place, query))

    def _table(self, name: str, output: spark_output.Table, place: Place) -> Table:
        known = self._properties(name, Holder.TABLE, output, place)
        return Table(
            name,
            place,
            schema=_ddl(output.schema),
            comment=output.comment,
            column_comments=_comments(output.schema),
            partition_by=tuple(output.partition_cols or ()),
            promise=known.promise,
            timestamp=known.timestamp,
            lateness_seconds=known.lateness_seconds,
            period_seconds=known.period_seconds,
            sinks=known.sinks,
            flow_settings=known.flow_settings,
            properties=known.others,
        )

    def _view(self, name: str, output: spark_output.Table, place: Place, query: Query) -> View:
        known = self._properties(name, Holder.VIEW, output, place)
        return View(
            name,
            place,
            query,
            schema=_ddl(output.schema),
            comment=output.comment,
            column_comments=_comments(output.schema),
            partition_by=tuple(output.partition_cols or ()),
            promise=known.promise,
            refresh=known.refresh,
            sinks=known.sinks,
            flow_settings=known.flow_settings,
            properties=known.others,
        )

    def _properties(
        self, name: str, holder: Holder, output: spark_output.Table, place: Place
    ) -> Properties:
        properties = {
            key: PlacedValue(str(value), place) for key, value in output.table_properties.items()
        }
        known, errors = read_properties(name, holder, properties, self._names)
        self.contents.errors += errors
        return known

    def _declare_flow(self, flow: spark_flow.Flow, declared: DeclaredFunction) -> None:
        place = self._place_of(flow.source_code_location)
        name, target = self._names.parse(flow.name), self._names.parse(flow.target)
        query = self._query(declared, place)
        self.contents.declarations.append(AppendFlow(name, target, place, query))

    def _query_of_view(self, declared: DeclaredFunction, place: Place) -> Query:
        code = getattr(declared.function, "__code__", None)
        # A function that was imported from another file may belong to an earlier load.
        if code is None or self.place(code.co_filename, 1).file != place.file:
            return self._query(declared, place)
        fingerprint = declared.fingerprint(self.content)
        query = find_sql(declared, place.file, self._names, self._session, fingerprint)
        return query or self._query(declared, place)

    def _query(self, declared: DeclaredFunction, place: Place) -> PythonQuery:
        function = declared.bound()
        reads = find_reads(function, place, self._names)
        return PythonQuery(function, reads, declared.fingerprint(self.content), place)

    def _declare_cdc_flow(self, flow: spark_flow.AutoCdcFlow, place: Place, scd_type: int) -> None:
        def texts(columns: list[Column] | None) -> tuple[str, ...] | None:
            return None if columns is None else tuple(_column_text(c, place) for c in columns)

        delete_when = flow.apply_as_deletes
        source = self._names.parse(flow.source)
        self.contents.declarations.append(
            CdcFlow(
                self._names.parse(flow.name or flow.target),
                self._names.parse(flow.target),
                place,
                Reference(0, 0, ReadMode.STREAM, source, place),
                texts(flow.keys) or (),
                _column_text(flow.sequence_by, place),
                delete_when=None if delete_when is None else _column_text(delete_when, place),
                columns=texts(flow.column_list),
                except_columns=texts(flow.except_column_list) or (),
                scd_type=scd_type,
            )
        )


def _ddl(schema: StructType | str | None) -> str | None:
    """A schema as DDL text. (`StructType.toDDL` would need a JVM.)"""
    if not isinstance(schema, StructType):
        return schema
    return ", ".join(
        f"`{column.name}` {column.dataType.simpleString()}{'' if column.nullable else ' NOT NULL'}"
        for column in schema.fields
    )


def _comments(schema: StructType | str | None) -> dict[str, str]:
    if isinstance(schema, StructType):
        return {f.name: f.metadata["comment"] for f in schema.fields if "comment" in f.metadata}
    try:
        return column_comments(schema) if schema else {}
    except SourceError:
        return {}  # A rule of `checks/` reports the error.


def _column_text(column: Column, place: Place) -> str:
    """The SQL text of a column that `col` or `expr` made, or that was written as text."""
    expression = getattr(column, "_expr", None)
    text = getattr(expression, "_unparsed_identifier", None) or getattr(expression, "_expr", None)
    if not isinstance(text, str):
        shown = column if expression is None else expression
        raise DeclarationError(
            f"the column {shown} can't be turned into SQL text",
            where=str(place),
            hint='Write it as SQL text: sequence_by="coalesce(changed_at, created_at)".',
        )
    return text


# The process as a project's file sees it


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _session_replaced(session: Any) -> Iterator[None]:
    """Make every usual way to get a session return `session`, so that no JVM starts."""
    with ExitStack() as stack:
        for name in ("active", "getActiveSession"):
            stack.enter_context(_replaced(SparkSession, name, classmethod(lambda cls: session)))
        stack.enter_context(_replaced(SparkSession.Builder, "getOrCreate", lambda self: session))
        # Each method of a column reads a setting of the session, which would start the session.
        stack.enter_context(_replaced(spark_errors, "is_debugging_enabled", lambda: False))
        yield


@contextmanager
def _extended_cdc(registry: _Registry) -> Iterator[None]:
    """Make `create_auto_cdc_flow` accept SCD type 2, and columns made by `col` and `expr`.

    pyspark 4.2 knows only type 1, and needs a JVM to build columns. Both are changed only while a
    file is loaded.
    """
    # Imported late, because it imports grpc and all of Spark Connect.
    from pyspark.sql.connect.functions import builtin as connect_functions

    original = pyspark.pipelines.api.create_auto_cdc_flow

    def create_auto_cdc_flow(*args: Any, **kwargs: Any) -> None:
        call = signature(original).bind(*args, **kwargs)
        scd_type = call.arguments.pop("stored_as_scd_type", None)
        if str(scd_type) not in ("None", "1", "2"):
            raise DeclarationError(f"stored_as_scd_type is {scd_type!r}, and can be 1 or 2")
        registry.scd_type = int(scd_type or 1)
        original(**call.arguments)

    with ExitStack() as stack:
        for module in (pyspark.pipelines, pyspark.pipelines.api):
            stack.enter_context(_replaced(module, "create_auto_cdc_flow", create_auto_cdc_flow))
        loading = stack.enter_context(_inside_block())
        for name in ("col", "column", "expr"):
            choose = _switch(
                loading, getattr(connect_functions, name), getattr(spark_functions, name)
            )
            stack.enter_context(_replaced(spark_functions, name, choose))
        yield


def _switch(
    loading: Callable[[], bool], inside: Callable[..., Any], outside: Callable[..., Any]
) -> Callable[..., Any]:
    """A function that a file may keep: after the load it does what it usually does."""

    def chosen(*args: Any, **kwargs: Any) -> Any:
        return (inside if loading() else outside)(*args, **kwargs)

    return chosen


@contextmanager
def _inside_block() -> Iterator[Callable[[], bool]]:
    """A function that says whether the block is still running."""
    inside = [True]
    try:
        yield lambda: bool(inside)
    finally:
        inside.clear()


@contextmanager
def _replaced(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    # From __dict__, because getattr would bind a classmethod.
    before = owner.__dict__[name]
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, before)
