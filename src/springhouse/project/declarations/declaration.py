"""What did the user declare?

One immutable value, `Project`, holds everything that the files of a project declare: tables and the
flows into them, views, temporary views, promises and expectations. Each declaration knows its place
in the files. The readers (`from_yaml`, `from_sql`, `from_python`) make the parts, and `checks/`
examines the whole. No other room reads a file of the project.

A query keeps the user's own text. Its inputs are listed as spans of that text (`Reference`), so
that a span can be replaced by the name of a snapshot without printing the SQL again.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

from springhouse.units import Seconds


@dataclass(frozen=True, order=True)
class Place:
    """A line of a file, in the form that editors accept: `transformations/sales.sql:3`."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class SourceCall:
    """`read_files('data/orders', format => 'json')`: a source plug-in by name, with its options.

    `arguments` are those without a name. A value is the text that the user wrote, without quotes.
    """

    plugin: str
    arguments: tuple[str, ...]
    options: Mapping[str, str] = field(hash=False)
    place: Place


@dataclass(frozen=True)
class SinkCall:
    """`'springhouse.sink.<name>' = '<plugin>'`: a sink that gets the changes of a table or view.

    `options` are the properties `'springhouse.sink.<name>.<option>' = …`, as text.
    """

    name: str
    plugin: str
    options: Mapping[str, str] = field(hash=False)
    place: Place
    arguments: tuple[str, ...] = ()


class ReadMode(Enum):
    """How a query reads one of its inputs."""

    TABLE = "table"  # FROM orders: all rows, as of one version
    STREAM = "stream"  # FROM STREAM(orders), FROM STREAM orders: the rows since the last refresh
    SOURCE = "source"  # FROM STREAM read_files(…): a source plug-in
    DELTA = "delta"  # FROM delta.`path`: a Delta table that others write
    DELTA_STREAM = "delta_stream"  # FROM STREAM delta.`path`
    OTHER = "other"  # parquet.`path`, range(10), …: only Spark reads it; changes are unknown


@dataclass(frozen=True)
class Reference:
    """One span `text[start:end]` of a query's text, and the input that it names.

    `name` is the normalised name of a table, the path of a Delta table, or the plug-in of a source.
    `alias_needed` says that the text gives the span no alias: a replacement of the span needs
    `AS name` after it, so that `name.column` keeps its meaning.
    """

    start: int
    end: int
    reading: ReadMode
    name: str
    place: Place
    source: SourceCall | None = None
    alias_needed: bool = False


@dataclass(frozen=True)
class SqlQuery:
    """A SELECT in the user's own words, with the spans that name its inputs, in order.

    `fingerprint` is the fingerprint of the Python file that contains the query, because that file
    may define functions that the query calls. It is empty for a query in an SQL file.
    """

    text: str
    references: tuple[Reference, ...]
    place: Place
    fingerprint: str = ""

    def spliced(self, replacement: Callable[[Reference], str | None]) -> str:
        """The text with each reference replaced, unless its replacement is None."""
        pieces, at = [], 0
        for reference in self.references:
            new = replacement(reference)
            if new is None:
                continue
            pieces += [self.text[at : reference.start], new]
            at = reference.end
        return "".join([*pieces, self.text[at:]])


@dataclass(frozen=True)
class PythonQuery:
    """A function that returns a DataFrame.

    `reads` are the tables that its code names in plain strings. A call of the function may read
    more. `fingerprint` changes whenever the file of the function changes.
    """

    function: Callable[[], Any]
    reads: tuple[Reference, ...]
    fingerprint: str
    place: Place

    @property
    def references(self) -> tuple[Reference, ...]:
        return self.reads


Query = SqlQuery | PythonQuery


class OnViolation(Enum):
    """What happens to a row that violates an expectation."""

    KEEP = "keep"
    DROP_ROW = "drop row"
    FAIL_UPDATE = "fail update"
    QUARANTINE = "quarantine"


@dataclass(frozen=True)
class Expectation:
    """`CONSTRAINT name EXPECT (condition) ON VIOLATION …`."""

    name: str
    condition: str
    on_violation: OnViolation
    place: Place


class RefreshMode(Enum):
    """`springhouse.refresh`."""

    AUTO = "auto"
    INCREMENTAL = "incremental"
    FULL = "full"


@dataclass(frozen=True)
class Promise:
    """What the owner of a table is promised: bounds on lag and inconsistency, and a weight."""

    staleness_seconds: Seconds | None = None
    staleness_by_pathway: Mapping[str, Seconds] = field(default_factory=dict)  # "clicks>score"
    inconsistency_seconds: Seconds = Seconds(0.0)
    priority: float = 1.0

    @property
    def is_relaxed(self) -> bool:
        """Whether a snapshot may reflect its inputs as of different moments."""
        return self.inconsistency_seconds > 0

    def staleness_along(self, course: Sequence[str], inputs: Collection[str]) -> Seconds:
        """How long data may wait that comes along the tables of `course`; 0 means not at all.

        Of the bounds that name tables of the course in their order, the bound with the most names
        counts. A bound that ends with a direct input applies only to data that comes through that
        input last.

        >>> promise = Promise(None, {"news": Seconds(9.0), "log>news": Seconds(5.0)})
        >>> promise.staleness_along(["log", "cleaned", "news"], inputs={"news", "log"})
        5.0
        >>> promise.staleness_along(["log"], inputs={"news", "log"})
        0.0
        """
        bounds = [
            (-len(names), seconds)
            for pathway, seconds in self.staleness_by_pathway.items()
            if _passes(course, names := pathway.split(">"), inputs)
        ]
        return min(bounds)[1] if bounds else self.staleness_seconds or Seconds(0.0)

    @property
    def named(self) -> frozenset[str]:
        """The tables that occur in bounds on pathways."""
        pathways = self.staleness_by_pathway
        return frozenset(name for pathway in pathways for name in pathway.split(">"))

    @property
    def strictest_seconds(self) -> Seconds | None:
        """The smallest bound on the lag; None if some data has no bound.

        >>> Promise(Seconds(60.0), {"orders": Seconds(10.0)}).strictest_seconds
        10.0
        """
        if self.staleness_seconds is None:
            return None
        return min((self.staleness_seconds, *self.staleness_by_pathway.values()))


def _passes(course: Sequence[str], names: Sequence[str], inputs: Collection[str]) -> bool:
    if names[-1] in inputs and names[-1] != course[-1]:
        return False
    rest = iter(course)
    return all(name in rest for name in names)


@dataclass(frozen=True)
class Table:
    """A base table: flows append rows to it or apply changes to it."""

    name: str
    place: Place
    schema: str | None = None  # DDL, as declared: `id BIGINT NOT NULL, amount DECIMAL(12,2)`
    comment: str | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    promise: Promise = Promise()
    expectations: tuple[Expectation, ...] = ()
    timestamp: str | None = None
    lateness_seconds: Seconds = Seconds(0.0)
    period_seconds: Seconds = Seconds(1.0)
    sinks: tuple[SinkCall, ...] = ()
    flow_settings: Mapping[str, str] = field(default_factory=dict)  # before the project's own
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """A materialized view."""

    name: str
    place: Place
    query: Query
    schema: str | None = None
    comment: str | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    promise: Promise = Promise()
    expectations: tuple[Expectation, ...] = ()
    refresh: RefreshMode = RefreshMode.AUTO
    sinks: tuple[SinkCall, ...] = ()
    flow_settings: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TemporaryView:
    """A name for a query inside the project. Its rows are not stored."""

    name: str
    place: Place
    query: Query


@dataclass(frozen=True)
class AppendFlow:
    """Appends the rows of a query over streams to a table. A `once` flow runs a single time."""

    name: str
    target: str
    place: Place
    query: Query
    by_name: bool = True
    once: bool = False


@dataclass(frozen=True)
class CdcFlow:
    """AUTO CDC: applies the events of a stream to a table, by key, in the order of a sequence.

    `columns` and `except_columns` choose the stored columns (None: all columns). `scd_type` 1 keeps
    the last state of each key; 2 keeps its history in `__START_AT` and `__END_AT`. A `once` flow
    runs a single time.
    """

    name: str
    target: str
    place: Place
    source: Reference
    keys: tuple[str, ...]
    sequence_by: str
    delete_when: str | None = None
    columns: tuple[str, ...] | None = None
    except_columns: tuple[str, ...] = ()
    scd_type: int = 1
    once: bool = False


Flow = AppendFlow | CdcFlow


@dataclass(frozen=True)
class Project:
    """A checked project: its names are unique, its inputs exist, and nothing reads itself."""

    name: str
    folder: Path
    storage: str  # a path or URI; a relative one is relative to `folder`
    catalog: str | None
    database: str | None
    configuration: Mapping[str, str]
    tables: Mapping[str, Table]
    views: Mapping[str, View]
    temporary_views: Mapping[str, TemporaryView]
    flows: tuple[Flow, ...]
    sources: Mapping[str, type]  # source plug-ins from the project's own Python files
    sinks: Mapping[str, type] = field(default_factory=dict)  # and sink plug-ins

    @cached_property
    def named(self) -> frozenset[str]:
        """The tables in bounds on pathways: the planner tracks which data passes through them."""
        return frozenset(name for view in self.views.values() for name in view.promise.named)

    def flows_into(self, table: str) -> tuple[Flow, ...]:
        """The flows whose target is `table`, in the order of their declaration."""
        return tuple(flow for flow in self.flows if flow.target == table)

    def sinks_of(self, name: str) -> tuple[SinkCall, ...]:
        """The sinks that get the changes of a table or view."""
        declared = self.tables.get(name) or self.views.get(name)
        return declared.sinks if declared is not None else ()
