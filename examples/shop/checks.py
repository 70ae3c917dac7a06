"""Is what the warehouse holds right?

Nothing here asks the warehouse itself. Tables are read with `deltalake`, as any other program
would read them. They are held against the generator's ledger; and every view against its own query,
run by plain Spark over those base tables, level by level: a view that reads views reads their
recomputation.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable
from ledger import COLUMNS, Account, Row, account_of
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from springhouse.project.declarations.declaration import PythonQuery, View

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what should be so, and what is wrong if it is not."""

    claim: str
    problem: str | None = None

    @property
    def ok(self) -> bool:
        return self.problem is None


Location = Callable[[str], str]
"""Says where the table of this name is."""

Read = Callable[[str], pa.Table]
"""Gives the rows of a table by its name, straight from its Delta files."""


def reader(location: Location) -> Read:
    """Reads tables where `location` says that they are; one that is not there has no rows."""

    def read(name: str) -> pa.Table:
        place = location(name)
        if not DeltaTable.is_deltatable(place):
            return pa.table({})
        return rows_at(place)

    return read


def rows_at(place: str, version: int | None = None) -> pa.Table:
    """The rows of one Delta table."""
    # By default `deltalake` lends Arrow's threads a file system of its own, a Python object. One
    # that is late to let go of it, when the interpreter ends, aborts the process.
    files = SubTreeFileSystem(place, LocalFileSystem())
    return DeltaTable(place, version=version).to_pyarrow_table(filesystem=files)


# Base tables


def check_tables(accounts: Mapping[str, Account], read: Read) -> Iterator[Finding]:
    """Every row that was sent and is good is in its table, once."""
    for table, sent in accounts.items():
        found = account_of(rows_of(read(table).select(COLUMNS[table])))
        yield Finding(
            f"{table} holds its {sent.rows:,} rows exactly once",
            _differs("rows", sent.rows, found.rows)
            or _differs("the checksum", sent.checksum, found.checksum),
        )


def check_quarantines(
    accounts: Mapping[str, Account], read: Read, suffix: str = "_quarantine"
) -> Iterator[Finding]:
    """Every record that was sent and is bad is in quarantine, once, and nothing else is."""
    for table, sent in accounts.items():
        aside = read(table + suffix)
        records = aside["record"].to_pylist() if aside.num_rows else []
        # Broken or not, the first number in a record is its id.
        found = sorted(int(_NUMBER.findall(record)[0]) for record in records)
        if found or sent.quarantined:
            yield Finding(
                f"{table} has its {len(sent.quarantined)} bad records in quarantine, and no other",
                _differs("the ids", sorted(sent.quarantined), found),
            )


def check_violations(
    accounts: Mapping[str, Account], counted: Callable[[str], Mapping[str, int]]
) -> Iterator[Finding]:
    """Rows that broke an expectation were counted, whether they were kept or dropped."""
    for table, sent in accounts.items():
        expected = Counter(sent.noted)
        if sent.dropped:
            expected["positive_quantity"] += sent.dropped
        if not expected:
            continue
        found = {name: counted(table).get(name, 0) for name in expected}
        told = ", ".join(f"{name} {count}" for name, count in expected.items())
        yield Finding(
            f"{table} counted the rows that broke an expectation: {told}",
            _differs("the counts", dict(expected), found),
        )


def check_clicks(read: Read) -> Iterator[Finding]:
    """The clicks are numbered without a gap, so none was lost or read twice."""
    ids = sorted(read("clicks")["click_id"].to_pylist())
    yield Finding(
        f"clicks holds its {len(ids):,} rows exactly once",
        None if ids == list(range(len(ids))) else "their numbers have gaps or come twice",
    )


# Views


def check_views(
    spark: "SparkSession", tables: Sequence[str], views: Sequence[View], read: Read
) -> Iterator[Finding]:
    """Every view equals its query, run over the base tables by Spark alone; `views` in order."""
    for table in tables:
        spark.createDataFrame(read(table)).createOrReplaceTempView(table)
    try:
        for view in views:
            again = _recomputed(spark, view)
            spark.createDataFrame(again).createOrReplaceTempView(view.name)
            problem = difference(read(view.name), again)
            yield Finding(f"{view.name} ({again.num_rows:,} rows)", problem)
    finally:
        for name in (*tables, *(view.name for view in views)):
            spark.catalog.dropTempView(name)


def _recomputed(spark: "SparkSession", view: View) -> pa.Table:
    query = view.query
    rows = query.function() if isinstance(query, PythonQuery) else spark.sql(query.text)
    table: pa.Table = rows.toArrow()
    return table


def difference(stored: pa.Table, recomputed: pa.Table) -> str | None:
    """How two tables differ as bags of rows, whatever the order of rows and columns; or None."""
    if set(stored.schema.names) != set(recomputed.schema.names):
        return f"has the columns {stored.schema.names}, not {recomputed.schema.names}"
    ours = Counter(rows_of(stored.select(recomputed.schema.names)))
    theirs = Counter(rows_of(recomputed))
    if ours == theirs:
        return None
    extra, missing = ours - theirs, theirs - ours
    shown = "".join(
        f"; {what} {row}"
        for what, rows in (("only stored:", extra), ("only recomputed:", missing))
        for row in list(rows)[:1]
    )
    return f"{extra.total()} rows too many, {missing.total()} missing{shown}"


def check_diamond(location: str) -> Iterator[Finding]:
    """No version that `reconciliation` ever had mixes two states of `orders`."""
    newest = DeltaTable(location).version()
    versions = range(newest + 1)
    mixed = []
    for version in versions:
        rows = rows_at(location, version).to_pylist()
        if any(row["orders_billed"] != row["orders_in_ledger"] for row in rows):
            mixed.append(version)
    yield Finding(
        f"reconciliation was consistent in all of its {len(versions)} versions",
        f"versions {mixed} mix two states of orders" if mixed else None,
    )


def rows_of(table: pa.Table) -> list[Row]:
    """The rows as tuples."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _differs(what: str, expected: object, found: object) -> str | None:
    return None if expected == found else f"{what}: sent {expected}, found {found}"
