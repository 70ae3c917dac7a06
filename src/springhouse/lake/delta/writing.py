"""How do rows become files that a commit can add?

Small results come to this process as Arrow, which writes them in milliseconds. Spark's tasks write
large results into a new folder inside the table. Both ways give a list of `AddAction`s with the
statistics that Delta readers prune by. A file that no commit names is invisible, and the next
vacuum deletes it.
"""

import json
import uuid
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from springhouse.lake.delta.row_counter import RowCounter
from springhouse.lake.delta.tables import url_path
from springhouse.lake.storage.clock import steady_clock
from springhouse.lake.storage.presence import FileLost
from springhouse.lake.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HIDDEN = "__springhouse_"
"""The prefix of columns that are in files but in no schema."""

_STATISTICS_COLUMNS = 32
_LONGEST_STRING = 64


def write_arrow(storage: Storage, table: pa.Table, folder: str = "", name: str = "") -> AddAction:
    """Write a Parquet file into the table (in `folder`, if given); the action that adds it."""
    file = f"{name}{'-' if name else ''}{uuid.uuid4().hex}.parquet"
    path = f"{folder}/{file}" if folder else file
    target = f"{storage.path}/{path}"
    (storage.inside(folder) if folder else storage).make()
    with storage.filesystem.open_output_stream(target) as stream:
        writer = pq.ParquetWriter(stream, table.schema, compression="snappy")
        writer.write_table(table)
        writer.close()
        size = stream.tell()
    with storage.filesystem.open_input_file(target) as written:
        return add_action(path, size, pq.read_metadata(written))


def write_with_spark(
    storage: Storage, rows: "DataFrame", folder: str = "", apart_by: str | None = None
) -> list[AddAction]:
    """Let Spark write the rows, one file per partition; gives the actions that add the files.

    Rows that differ in the column `apart_by` go to different files, in folders named after it.
    """
    place = f"{folder}/{uuid.uuid4().hex}" if folder else f"part-{uuid.uuid4().hex}"
    counted = RowCounter(rows)
    writer = counted.rows.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    if apart_by is not None:
        writer = writer.partitionBy(apart_by)
    writer.parquet(f"{storage.root}/{place}")
    adds = describe_files(storage, place)
    _validate_whole(storage, place, rows_of(adds), counted.count())
    return adds


def _validate_whole(storage: Storage, folder: str, found: int, told: int | None) -> None:
    """Raise `FileLost` if the files do not hold as many rows as the tasks counted."""
    if told is not None and found != told:
        what = f"has {found} rows, and {told} were written: files of it were deleted meanwhile"
        raise FileLost(storage, folder, what)


def describe_files(storage: Storage, folder: str) -> list[AddAction]:
    """The actions that add the Parquet files in a folder of the table."""
    found = []
    for info in storage.inside(folder).files(recursive=True):
        if not info.base_name.endswith(".parquet") or info.base_name.startswith((".", "_")):
            continue
        with storage.filesystem.open_input_file(info.path) as file:
            metadata = pq.read_metadata(file)
        if metadata.num_rows:
            found.append(
                add_action(info.path.removeprefix(f"{storage.path}/"), info.size, metadata)
            )
    return found


def rows_of(adds: Iterable[AddAction]) -> int:
    """The number of rows in the files."""
    return sum(int(json.loads(add.stats)["numRecords"]) for add in adds)


def add_action(path: str, size: int, metadata: pq.FileMetaData) -> AddAction:
    """The action that adds a file, by its path inside the table."""
    return AddAction(
        path=url_path(path),
        size=size,
        partition_values={},
        modification_time=int(steady_clock() * 1000),
        data_change=True,
        stats=json.dumps(_statistics(metadata)),
    )


def _statistics(metadata: pq.FileMetaData) -> dict[str, Any]:
    """The row count, and the bounds and NULL counts of the first plain columns, for the log."""
    found_low, found_high, nulls = bounds_of(metadata, _STATISTICS_COLUMNS, hidden=False)
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for name in found_low:
        bounds = _bound(found_low[name]), _bound(found_high[name])
        if None not in bounds:
            low[name], high[name] = bounds
    statistics: dict[str, Any] = {"numRecords": metadata.num_rows}
    if nulls:
        statistics |= {"minValues": low, "maxValues": high, "nullCount": nulls}
    return statistics


def bounds_of(
    metadata: pq.FileMetaData, most_columns: int = 1_000, *, hidden: bool = True
) -> tuple[dict[str, Any], dict[str, Any], dict[str, int]]:
    """The smallest and largest values and the NULL counts of plain columns, over all row groups."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for index in range(min(metadata.num_columns, most_columns)):
        column = metadata.schema.column(index)
        # A dot in the path means a nested field. Readers need no statistics for it.
        if column.path != column.name or (not hidden and column.name.startswith(HIDDEN)):
            continue
        groups = range(metadata.num_row_groups)
        merged = _merged([metadata.row_group(g).column(index) for g in groups])
        if merged is None:
            continue
        minimum, maximum, nulls[column.name] = merged
        if minimum is not None and maximum is not None:
            low[column.name], high[column.name] = minimum, maximum
    return low, high, nulls


def _merged(chunks: Sequence[pq.ColumnChunkMetaData]) -> tuple[Any, Any, int] | None:
    found = [chunk.statistics for chunk in chunks]
    if not found or any(s is None or not s.has_null_count for s in found):
        return None
    nulls = sum(s.null_count for s in found)
    bounded = [s for s in found if s.has_min_max]
    if len(bounded) < len([s for s in found if s.num_values]):
        return None, None, nulls
    try:
        return (
            min((s.min for s in bounded), default=None),
            max((s.max for s in bounded), default=None),
            nulls,
        )
    except (TypeError, ValueError, OverflowError):
        # Parquet and Spark have years before 1 and after 9999; Python's dates do not.
        return None, None, nulls


def _bound(value: Any) -> Any:
    """A bound as the Delta log writes it; None for values that get no bounds."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int) or (isinstance(value, float) and value - value == 0):
        return value
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_STRING else None
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text + ("Z" if value.tzinfo is not None else "")
    if isinstance(value, date):
        return value.isoformat()
    return None


def paths_of(adds: Iterable[AddAction]) -> tuple[str, ...]:
    """The relative paths of files, for a note."""
    return tuple(add.path for add in adds)
