"""How does a declared query become a DataFrame?

The user's SQL stays as the user wrote it, except for the names of its inputs. A parameter replaces
each name, and Spark gets the DataFrame of the chosen snapshot for the parameter. Python functions
call `spark.table`, `spark.read.table`, `spark.readStream.table` and `spark.sql` as they do under
spark-pipelines. While a function runs, those four methods look names up here first. So one thread
can read `orders` at version 7 while another reads version 9, and threads share no temporary views.
`SparkSession.getActiveSession()` and `builder.getOrCreate()` give the session that runs the
function.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from springhouse.errors import DeclarationError, LakeError, SpringhouseError
from springhouse.lake.spark.session_copies import activated
from springhouse.lake.spark.working_folder import working_in
from springhouse.project.declarations.declaration import (
    Place,
    PythonQuery,
    Query,
    ReadMode,
    Reference,
    SqlQuery,
)
from springhouse.project.declarations.names import Names
from springhouse.project.sql.references import find_references
from springhouse.project.sql.sql_text import SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOG = logging.getLogger("springhouse.spark")

Resolve = Callable[[Reference], "DataFrame | None"]
"""Gives the DataFrame for a name in a query; None leaves the name to Spark."""


def frame(
    session: SparkSession, query: Query, resolve: Resolve, folder: Path | None = None
) -> "DataFrame":
    """The query's rows; `resolve` gives the inputs that it knows.

    A Python function runs in `folder`, as spark-pipelines runs it in the project's folder.
    """
    with errors_at(query.place):
        if isinstance(query, SqlQuery):
            return run_sql(session, query, resolve)
        return _call(session, query, resolve, folder)


def run_sql(session: SparkSession, query: SqlQuery, resolve: Resolve) -> "DataFrame":
    """A query in SQL, with its inputs as parameters."""
    frames: dict[str, Any] = {}

    def parameter(reference: Reference) -> str | None:
        found = resolve(reference)
        if found is None:
            return None
        name = f"input_{len(frames)}"
        frames[name] = found
        alias = f" AS `{reference.name.rpartition('.')[2]}`" if reference.alias_needed else ""
        return f"\0{name}\0{alias}"

    text = query.spliced(parameter)
    if not frames:
        return session.sql(text)
    # Spark formats a text that has parameters: the user's own braces must survive that.
    text = text.replace("{", "{{").replace("}", "}}")
    for name in frames:
        text = text.replace(f"\0{name}\0", f"{{{name}}}")
    return session.sql(text, **frames)


@contextmanager
def errors_at(place: Place | str) -> Iterator[None]:
    """Turn Spark's error about a query into an error that names the line of the query."""
    try:
        yield
    except SpringhouseError as error:
        error.where = error.where or str(place)
        raise
    except PySparkException as error:
        raise LakeError(_plainly(error), where=str(place)) from error


def error_line(error: Exception) -> str:
    """The message of an error, in one line."""
    if isinstance(error, PySparkException):
        return _plainly(error)
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}"[:600]


def _plainly(error: PySparkException) -> str:
    """Spark's message, without the plan and the stack."""
    lines = []
    for line in str(error).splitlines():
        if line.startswith(("==", "'", "\tat", "+-", ":-", "JVM stacktrace")):
            break
        if line.strip():
            lines.append(line.strip())
    return " ".join(lines)[:600] or type(error).__name__


def _call(
    session: SparkSession, query: PythonQuery, resolve: Resolve, folder: Path | None
) -> "DataFrame":
    _look_names_up_first()
    token = _resolving.set((resolve, query.place))
    running = _running.set(session)
    try:
        with working_in(folder), activated(session):
            made = query.function()
    except (SpringhouseError, PySparkException):
        raise
    except Exception as error:
        raise LakeError(
            f"the function failed: {type(error).__name__}: {error}", where=str(query.place)
        ) from error
    finally:
        _running.reset(running)
        _resolving.reset(token)
    if not hasattr(made, "schema"):
        raise LakeError(
            f"the function returned {type(made).__name__}, not a DataFrame", where=str(query.place)
        )
    frame: DataFrame = made
    return frame


_resolving: ContextVar[tuple[Resolve, Place] | None] = ContextVar("resolving", default=None)
_running: ContextVar[SparkSession | None] = ContextVar("running", default=None)


def _look_names_up_first() -> None:
    """Patch Spark's readers, once, to try the running function's resolver before the catalog."""
    _teach(SparkSession, "table", _named(ReadMode.TABLE))
    _teach(SparkSession, "sql", _in_sql)
    _teach(DataFrameReader, "table", _named(ReadMode.TABLE))
    _teach(DataStreamReader, "table", _named(ReadMode.STREAM))
    _give_running_session(SparkSession)
    try:
        from pyspark.sql.connect import readwriter as remote_reader
        from pyspark.sql.connect import session as remote_session
        from pyspark.sql.connect.streaming import readwriter as remote_stream
    except Exception as error:  # noqa: BLE001  the client of Spark Connect is optional
        LOG.debug("there is no client of Spark Connect: %s", error)
        return
    _teach(remote_session.SparkSession, "table", _named(ReadMode.TABLE))
    _teach(remote_session.SparkSession, "sql", _in_sql)
    _teach(remote_reader.DataFrameReader, "table", _named(ReadMode.TABLE))
    _teach(remote_stream.DataStreamReader, "table", _named(ReadMode.STREAM))
    _give_running_session(remote_session.SparkSession)


def _give_running_session(owner: Any) -> None:
    """Patch a session class, once, to give the session that runs the current function."""
    for place, name in (
        *((owner, name) for name in ("active", "getActiveSession")),
        (owner.Builder, "getOrCreate"),
    ):
        original = place.__dict__.get(name)
        is_of_class = isinstance(original, classmethod)
        function = original.__func__ if is_of_class else original
        if hasattr(function, "__springhouse__"):
            continue
        given = _running_or(function)
        taught: Any = classmethod(given) if is_of_class else given
        setattr(place, name, taught)


def _running_or(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def give(owner: Any, *args: Any, **kwargs: Any) -> Any:
        session = _running.get()
        return session if session is not None else original(owner, *args, **kwargs)

    give.__springhouse__ = True  # type: ignore[attr-defined]
    return give


_Lookup = Callable[[Any, tuple[Resolve, Place], str, Mapping[str, Any]], "DataFrame | None"]


def _teach(owner: type, method: str, look_up: _Lookup) -> None:
    original = owner.__dict__.get(method)
    if original is None or hasattr(original, "__springhouse__"):
        return

    @wraps(original)
    def first_here(self: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
        current = _resolving.get()
        if current is not None and isinstance(name, str) and not args:
            # The lookup's own calls to Spark are not the user's: they go straight through.
            token = _resolving.set(None)
            try:
                found = look_up(self, current, name, kwargs)
            finally:
                _resolving.reset(token)
            if found is not None:
                return found
        return original(self, name, *args, **kwargs)

    first_here.__springhouse__ = True  # type: ignore[attr-defined]
    setattr(owner, method, first_here)


def _named(reading: ReadMode) -> _Lookup:
    def look_up(
        reader: Any, current: tuple[Resolve, Place], name: str, options: Mapping[str, Any]
    ) -> "DataFrame | None":
        resolve, place = current
        plain = name.replace("`", "").lower()
        return resolve(Reference(0, 0, reading, plain, place))

    return look_up


def _in_sql(
    session: Any, current: tuple[Resolve, Place], text: str, parameters: Mapping[str, Any]
) -> "DataFrame | None":
    resolve, place = current
    if parameters:
        return None
    try:
        # `resolve` knows the project and handles prefixes, so the names keep their prefixes here.
        references = find_references(SqlText(text, place.file, place.line), Names("", ""))
    except DeclarationError:
        return None  # Not a query (SHOW, SET, …): Spark runs it.
    return run_sql(session, SqlQuery(text, references, place), resolve)
