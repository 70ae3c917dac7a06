"""Which rows of a table can join the change, and how do they reach this process?

A join with a small change needs few rows of the large table. Spark would read all files that may
hold such a row, and would plan, schedule and shuffle for it. For a few million rows it is much
faster to decode the files here, to keep only rows with the values that the change has, and to give
these rows to Spark. The statement says which rows may be left out (`near`). Spark still checks the
join condition, so extra rows do no harm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from springhouse.lake.delta.column_cache import COLUMNS
from springhouse.lake.delta.file_pruning import Ranges, ranges_of
from springhouse.lake.delta.tables import DataFile
from springhouse.lake.storage.parallel import in_parallel
from springhouse.lake.storage.presence import validate_files
from springhouse.lake.storage.storage import Storage
from springhouse.planner.placement import filters_here, hands_over, searches_here, takes_whole


@dataclass(frozen=True)
class Sought:
    """A search for the rows with the `wanted` values that meet a condition.

    `mentioned` are the columns in the condition.
    """

    wanted: Mapping[str, pa.Array]
    condition: pc.Expression | None = None
    mentioned: frozenset[str] = frozenset()

    @cached_property
    def ranges(self) -> dict[str, Ranges]:
        """The ranges of the wanted values, by column."""
        found = {name: ranges_of(values) for name, values in self.wanted.items()}
        return {name: ranges for name, ranges in found.items() if ranges is not None}

    def is_worth_it(self, rows: int) -> bool:
        """Whether to search this number of rows here, in place of Spark."""
        if self.wanted:
            return searches_here(rows, min(map(len, self.wanted.values())))
        return takes_whole(rows) if self.condition is None else filters_here(rows)

    @property
    def _filter(self) -> pc.Expression | None:
        parts = [self.ranges[name].expression(name) for name in self.wanted]
        parts += [pc.field(name).isin(values) for name, values in self.wanted.items()]
        parts += [self.condition] if self.condition is not None else []
        return reduce(and_, parts) if parts else None

    def look_up(
        self, storage: Storage, files: Sequence[DataFile], schema: pa.Schema, columns: Sequence[str]
    ) -> pa.Table | None:
        """These columns of the rows that were found; None if the rows are too many.

        Also None if the files do not match the schema: Spark can convert more types.
        """
        if not files:
            return pa.schema([schema.field(name) for name in columns]).empty_table()
        names = sorted({*columns, *self.wanted, *self.mentioned})
        fields = [schema.field(name) for name in names]
        remembered = bool(self.wanted) and COLUMNS.holds(fields, sum(file.rows for file in files))
        try:
            if remembered:
                parts = in_parallel(lambda file: self._in_file(storage, file, fields), files)
                found = pa.concat_tables(parts).select(list(columns))
            else:
                found = self._scanned(storage, files, schema, columns)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            return None
        return found if hands_over(found.num_rows) else None

    def _in_file(self, storage: Storage, file: DataFile, fields: Sequence[pa.Field]) -> pa.Table:
        """The rows found in one file; the key columns are read first, and kept for next time."""
        keys = [each for each in fields if each.name in self.wanted]
        asked = COLUMNS.read(storage, file.path, keys)
        hits = [pc.is_in(asked[name], value_set=values) for name, values in self.wanted.items()]
        places = pc.indices_nonzero(reduce(pc.and_, hits))
        if not len(places):
            return pa.schema(fields).empty_table()
        rows = COLUMNS.read(storage, file.path, fields).take(places)
        return rows if self.condition is None else rows.filter(self.condition)

    def _scanned(
        self, storage: Storage, files: Sequence[DataFile], schema: pa.Schema, columns: Sequence[str]
    ) -> pa.Table:
        """The rows of all files, filtered while they are decoded."""
        validate_files(storage, {file.path: file.size for file in files})
        paths = [f"{storage.path}/{file.path}" for file in files]
        source = ds.dataset(
            paths, schema=schema, format=ds.ParquetFileFormat(), filesystem=storage.filesystem
        )
        return source.to_table(columns=list(columns), filter=self._filter)


def values_for(kind: pa.DataType, sources: Sequence[pa.ChunkedArray]) -> pa.Array | None:
    """The distinct values of some columns, converted to this type.

    None if only Spark can compare them: Spark has its own rules for different types, for
    floating-point numbers and for nested values.
    """
    if not _is_plain(kind) or any(not _alike(kind, each.type) for each in sources):
        return None
    try:
        same = [chunk.cast(kind) for each in sources for chunk in each.chunks]
    except pa.ArrowInvalid:
        return None
    return pc.unique(pa.chunked_array(same, kind))


def _is_plain(kind: pa.DataType) -> bool:
    return any(
        asked(kind)
        for asked in (
            pa.types.is_integer,
            pa.types.is_date,
            pa.types.is_timestamp,
            pa.types.is_decimal,
            pa.types.is_string,
        )
    )


def _alike(left: pa.DataType, right: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_decimal)
    return bool(left == right) or any(asked(left) and asked(right) for asked in kinds)
