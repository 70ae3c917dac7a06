"""Which rows did some versions of a table change?

As in `lake/delta/changes.py`, a change is read from the cheapest place that has it: the added files
of a commit that only adds, the change files of a commit that rewrites. Arrow reads both, one batch
at a time, so a sink needs no Spark, and little memory for a large table. Only if another writer
rewrote files, Spark computes the difference of two versions.

Changes are not combined over several versions: a version has the same changes in every range.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from springhouse.lake.delta import key_codes
from springhouse.lake.delta.changes import WEIGHT, strong_delta
from springhouse.lake.delta.commit_entry import Commit
from springhouse.lake.delta.tables import arrow_schema
from springhouse.lake.sinks.sink import CHANGE_TYPE, DELETE, INSERT, TIMESTAMP, VERSION
from springhouse.lake.sources.source import Range
from springhouse.units import Instant

if TYPE_CHECKING:
    from springhouse.lake.lake import Lake

_BATCH_ROWS = 20_000

_MARKS = (
    pa.field(CHANGE_TYPE, pa.string()),
    pa.field(VERSION, pa.int64()),
    pa.field(TIMESTAMP, pa.timestamp("us", tz="UTC")),
)


@dataclass(frozen=True)
class _ChangePart:
    """The rows of one version, from files or computed by Spark."""

    version: int
    at: Instant
    rows: "Callable[[], Iterator[pa.RecordBatch]]"  # all are inserts, without WEIGHT


class TableChanges:
    """The changes of a range of versions of one table."""

    def __init__(self, lake: "Lake", table: str, versions: Range) -> None:
        self._lake = lake
        self._log = lake.log(table)
        self._table = lake.open(table, versions.end - 1)
        self._names = self._table.schema.fieldNames()
        self._versions = versions
        self._fields = arrow_schema(self._table.schema)
        self.columns = pa.schema([*self._fields, *_MARKS])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, deletes before inserts in each version."""
        for part in self._parts():
            for wanted in (DELETE, INSERT):
                for batch in part.rows():
                    yield from self._changed(batch, part, wanted)

    def _parts(self) -> Iterator[_ChangePart]:
        start, end = self._versions
        commits = {commit.version: commit for commit in self._log.commits()}
        if start == 0:
            last = commits[end - 1]
            yield _ChangePart(end - 1, last.at, self._snapshot)
            return
        for version in range(start, end):
            commit = commits.get(version)
            if commit is None:
                # The log was cleaned: only the difference of the two ends is known.
                yield _ChangePart(
                    end - 1, commits[end - 1].at, self._difference(start - 1, end - 1)
                )
                return
            if commit.changes_data:
                yield _ChangePart(version, commit.at, self._rows_of(commit))

    def _rows_of(self, commit: Commit) -> "Callable[[], Iterator[pa.RecordBatch]]":
        change_files = commit.note.changes if commit.note else None
        if change_files is not None:
            return lambda: self._from_files(change_files)
        if commit.appends_only and not self._table.delta.metadata().partition_columns:
            return lambda: self._from_files(commit.added)
        return self._difference(commit.version - 1, commit.version)

    def _snapshot(self) -> Iterator[pa.RecordBatch]:
        if self._table.is_plain:
            yield from self._from_files([file.path for file in self._table.files])
            return
        yield from self._table.read(self._lake.spark.session()).toArrow().to_batches()

    def _from_files(self, paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
        storage = self._log.storage
        for path in paths:
            with storage.filesystem.open_input_file(f"{storage.path}/{path}") as file:
                parquet = pq.ParquetFile(file)
                names = parquet.schema_arrow.names
                wanted = [name for name in (*self._names, WEIGHT) if name in names]
                yield from parquet.iter_batches(_BATCH_ROWS, columns=wanted)

    def _difference(self, before: int, after: int) -> "Callable[[], Iterator[pa.RecordBatch]]":
        def rows() -> Iterator[pa.RecordBatch]:
            spark = self._lake.spark.session()
            yield from strong_delta(spark, self._log, before, after).toArrow().to_batches()

        return rows

    def _changed(
        self, rows: pa.RecordBatch, part: _ChangePart, wanted: str
    ) -> Iterator[pa.RecordBatch]:
        """The rows with one kind of change, a row for each copy, with the three marks."""
        if WEIGHT in rows.schema.names:
            sign = 1 if wanted == INSERT else -1
            weights = pc.multiply(rows[WEIGHT], sign)
            chosen = pa.Table.from_batches([rows]).filter(pc.greater(weights, 0))
            copies = chosen[WEIGHT].to_numpy() * sign
            table = key_codes.repeat_rows(chosen, copies) if (copies != 1).any() else chosen
        elif wanted == INSERT:
            table = pa.Table.from_batches([rows])
        else:
            return
        if not table.num_rows:
            return
        arrays = [self._column(table, field) for field in self._fields]
        at = datetime.fromtimestamp(part.at, UTC)
        marks = [
            pa.array([value] * table.num_rows, field.type)
            for field, value in zip(_MARKS, (wanted, part.version, at), strict=True)
        ]
        yield from pa.Table.from_arrays([*arrays, *marks], schema=self.columns).to_batches()

    def _column(self, table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
        if field.name not in table.schema.names:
            return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        return table[field.name].cast(field.type)
