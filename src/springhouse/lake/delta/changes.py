"""Which rows changed between two versions of a table?

The strong delta of 004 section 2.2 gives each changed row a weight, +n for inserted and -n for
deleted, in the column `__springhouse_weight`. It comes from the cheapest place that has it:

    a commit that only adds rows     its added files, weight 1
    a commit of ours that rewrites   its change files under `_changes/`
    any other commit                 the files that only one of the two versions has, netted

`difference` works in the other direction: it compares two states of the rows, and a commit writes
the resulting delta.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StructField, StructType

from springhouse.errors import LakeError
from springhouse.lake.delta import key_codes
from springhouse.lake.delta.commit_entry import Commit
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.tables import (
    DataFile,
    TableVersion,
    arrow_schema,
    open_table,
    quoted,
    read_arrow,
    read_parquet,
    union_of,
)
from springhouse.lake.storage.presence import RemoteScans
from springhouse.lake.storage.storage import Storage
from springhouse.planner.placement import change_fits_here, remembers_change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WEIGHT = "__springhouse_weight"
FOLDER = "_changes"


def strong_delta(
    spark: "SparkSession",
    log: TableLog,
    start: int | None,
    end: int,
    scans: RemoteScans | None = None,
) -> "DataFrame":
    """The change from version `start` (None: from an empty table) to `end`, netted where needed.

    `scans` records the files that a remote engine reads.
    """
    after = _opened(log, end)
    if start is None:
        return after.read(spark, scans=scans).withColumn(WEIGHT, sf.lit(1).cast("long"))
    between = [c for c in log.commits() if start < c.version <= end]
    if len(between) != end - start or not all(map(_is_told, between)):
        return net(_file_difference(spark, _opened(log, start), after, scans))
    changing = [commit for commit in between if commit.changes_data]
    parts = _parts(spark, log, changing, after, scans)
    if not parts:
        empty = spark.createDataFrame([], after.schema)
        return empty.withColumn(WEIGHT, sf.lit(1).cast("long"))
    whole = union_of(parts)
    monotone = all(commit.appends_only for commit in changing)
    netted = len(changing) == 1 and changing[0].note is not None
    return whole if monotone or netted else net(whole)


def small_delta(log: TableLog, start: int, after: TableVersion) -> pa.Table | None:
    """The change from version `start` to `after` in this process, one row per copy.

    Weights are +1 and -1. None if the change is large, or if the commits do not state it.
    """
    found = after.deltas.get(start)
    if found is None:
        found = _small_delta(log, start, after)
        if found is not None and remembers_change(found.nbytes):
            after.deltas[start] = found
    return found


def _small_delta(log: TableLog, start: int, after: TableVersion) -> pa.Table | None:
    changing = _small_commits(log, start, after)
    if changing is None:
        return None
    after.validate_readable()
    names = after.schema.fieldNames()
    schema = arrow_schema(after.schema).append(pa.field(WEIGHT, pa.int64()))
    parts = [_shaped(_rows_of_commit(log.storage, each, names), schema) for each in changing]
    whole = pa.concat_tables([schema.empty_table(), *parts])
    plain = not any(pa.types.is_nested(field.type) for field in schema)
    if plain and len(changing) > 1 and not all(c.appends_only for c in changing):
        found = key_codes.net_rows(whole, names, whole[WEIGHT].to_numpy())
        whole = _shaped(found.rename_columns([*names, WEIGHT]), schema)
    return _one_by_one(whole)


def _small_commits(log: TableLog, start: int, after: TableVersion) -> list[Commit] | None:
    """The commits of a change, if this process can read their rows and the rows are few."""
    changing = _changing(log, start, after.version)
    if changing is None or after.delta.metadata().partition_columns:
        return None
    if any(not _is_readable(commit) for commit in changing):
        return None
    rows = sum(c.note.rows_added + c.note.rows_removed for c in changing if c.note is not None)
    return changing if change_fits_here(rows) else None


def _is_readable(commit: Commit) -> bool:
    return commit.note is not None and (commit.note.changes is not None or commit.appends_only)


def _rows_of_commit(storage: Storage, commit: Commit, names: Sequence[str]) -> pa.Table:
    """The rows that a commit changed, with weights, from its change files or its added files."""
    noted = _noted(commit)
    if noted is not None:
        return read_arrow(storage, noted, [*names, WEIGHT])
    return _weighted(read_arrow(storage, commit.added, names), 1)


def _shaped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly these columns; missing columns are NULL."""
    have = set(rows.schema.names)
    arrays = [
        rows[field.name].cast(field.type)
        if field.name in have
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _one_by_one(rows: pa.Table) -> pa.Table:
    """Every copy of a row as a separate row, with the weight +1 or -1."""
    weights = rows[WEIGHT].to_numpy()
    if (abs(weights) == 1).all():
        return rows
    spread = key_codes.repeat_rows(rows, abs(weights))
    place = spread.schema.get_field_index(WEIGHT)
    signs = pa.array(np.sign(spread[WEIGHT].to_numpy()), pa.int64())
    return spread.set_column(place, spread.schema.field(place), signs)


def one_by_one(delta: "DataFrame") -> "DataFrame":
    """The delta with every copy of a row as a separate row, with the weight +1 or -1."""
    names = [quoted(name) for name in delta.columns if name != WEIGHT]
    copies = sf.array_repeat(sf.signum(WEIGHT).cast("long"), sf.abs(sf.col(WEIGHT)).cast("int"))
    return delta.select(*map(sf.col, names), sf.explode(copies).alias(WEIGHT))


def only_appended(log: TableLog, start: int | None, end: int) -> bool:
    """Whether all changes after version `start`, up to `end`, only add files with new rows."""
    if start is None:
        return True
    between = _changing(log, start, end)
    return between is not None and all(each.appends_only for each in between)


def only_added(log: TableLog, start: int, end: int) -> bool:
    """Whether no row was changed or deleted after version `start`, up to version `end`.

    A commit of a view may rewrite files and still only add rows: its change files show this.
    """
    between = _changing(log, start, end)
    return between is not None and all(each.only_adds for each in between)


def _changing(log: TableLog, start: int, end: int) -> list[Commit] | None:
    """The commits between two versions that change data; None if the log lacks some."""
    between = [commit for commit in log.commits() if start < commit.version <= end]
    if len(between) != end - start:
        return None
    return [commit for commit in between if commit.changes_data]


def net(delta: "DataFrame") -> "DataFrame":
    """The delta with the weights of equal rows added up, without rows whose sum is zero."""
    columns = [name for name in delta.columns if name != WEIGHT]
    if any(not _comparable(delta.schema[name].dataType) for name in columns):
        # Spark can't group by a map. A delta that is not netted is larger, but still right.
        return delta
    grouped = delta.groupBy(*(sf.col(quoted(name)) for name in columns))
    return grouped.agg(sf.sum(WEIGHT).alias(WEIGHT)).where(sf.col(WEIGHT) != 0)


def difference(old: pa.Table, new: pa.Table) -> pa.Table | None:
    """The strong delta from `old` to `new`, in this process; None if Arrow can't compare rows."""
    columns = new.schema.names
    if old.num_rows == 0:
        return _weighted(new, 1)
    if any(pa.types.is_nested(field.type) for field in new.schema):
        return None
    if old.schema.names != columns:
        return pa.concat_tables(
            [_weighted(old, -1), _weighted(new, 1)], promote_options="permissive"
        )
    both = pa.concat_tables([_weighted(old.cast(new.schema), -1), _weighted(new, 1)])
    summed = both.group_by(columns, use_threads=False).aggregate([(WEIGHT, "sum")])
    summed = summed.rename_columns([*columns, WEIGHT])
    return summed.filter(pc.not_equal(summed[WEIGHT], 0))


def spark_difference(old: "DataFrame", new: "DataFrame") -> "DataFrame":
    """The strong delta from `old` to `new`, where both have the same columns."""
    minus = old.withColumn(WEIGHT, sf.lit(-1).cast("long"))
    plus = new.withColumn(WEIGHT, sf.lit(1).cast("long"))
    return net(minus.unionByName(plus, allowMissingColumns=True))


def netted_difference(gone: pa.Table, come: pa.Table) -> pa.Table:
    """The strong delta that deletes the rows of `gone` and inserts those of `come`."""
    names = come.schema.names
    both = pa.concat_tables([_weighted(gone.cast(come.schema), -1), _weighted(come, 1)])
    found = key_codes.net_rows(both, names, both[WEIGHT].to_numpy())
    return found.rename_columns([*names, WEIGHT])


def rows_between(log: TableLog, before: TableVersion, after: TableVersion) -> int:
    """About how many rows a change has, according to the log."""
    between = [c for c in log.commits() if before.version < c.version <= after.version]
    if len(between) == after.version - before.version and all(c.note for c in between):
        return sum(c.note.rows_added + c.note.rows_removed for c in between if c.note)
    old = {file.path: file.rows for file in before.files}
    new = {file.path: file.rows for file in after.files}
    gone = sum(rows for path, rows in old.items() if path not in new)
    return gone + sum(rows for path, rows in new.items() if path not in old)


def weights(delta: pa.Table) -> tuple[int, int]:
    """How many rows the delta inserts, and how many it deletes."""
    weight = delta[WEIGHT]
    inserted = pc.sum(pc.if_else(pc.greater(weight, 0), weight, 0)).as_py() or 0
    deleted = pc.sum(pc.if_else(pc.less(weight, 0), weight, 0)).as_py() or 0
    return int(inserted), -int(deleted)


def spark_weights(spark: "SparkSession", storage: Storage, paths: Sequence[str]) -> tuple[int, int]:
    """How many rows the delta in these files inserts, and how many it deletes."""
    if not paths:
        return 0, 0
    only = StructType([StructField(WEIGHT, LongType())])
    sums = read_parquet(spark, storage, paths, only).agg(
        sf.sum(sf.greatest(WEIGHT, sf.lit(0))), sf.sum(sf.least(WEIGHT, sf.lit(0)))
    )
    inserted, deleted = sums.collect()[0]
    return int(inserted), -int(deleted)


def _is_told(commit: Commit) -> bool:
    """Whether a commit states its change: it only adds files, or its note names change files."""
    return not commit.changes_data or commit.appends_only or _noted(commit) is not None


def _noted(commit: Commit) -> tuple[str, ...] | None:
    return commit.note.changes if commit.note else None


def _parts(
    spark: "SparkSession",
    log: TableLog,
    changing: Sequence[Commit],
    after: TableVersion,
    scans: RemoteScans | None,
) -> "list[DataFrame]":
    """The changes of these commits: a frame of all change files, and frames of added files."""
    # Change files have the columns of their own version; missing columns are NULL.
    weighted = StructType([*after.schema.fields, StructField(WEIGHT, LongType())])
    noted = [path for commit in changing for path in _noted(commit) or ()]
    parts = [read_parquet(spark, log.storage, noted, weighted, scans)] if noted else []
    added = [commit for commit in changing if _noted(commit) is None]
    for commits in _with_same_columns(added):
        # Later versions may lack these files, so open the version of the group's last commit.
        newest = changing[-1].columns == commits[-1].columns
        made = after if newest else _opened(log, commits[-1].version)
        rows = made.read_files(spark, _added_files(log, made, commits), scans=scans)
        parts.append(_as(rows, after.schema).withColumn(WEIGHT, sf.lit(1).cast("long")))
    return parts


def _with_same_columns(commits: Sequence[Commit]) -> list[list[Commit]]:
    """The commits in order, in groups with the same columns of the table."""
    groups: list[list[Commit]] = []
    last: Commit | None = None
    for commit in commits:
        if last is None or commit.columns != last.columns:
            groups.append([])
        groups[-1].append(commit)
        last = commit
    return groups


def _added_files(log: TableLog, made: TableVersion, commits: Sequence[Commit]) -> list[DataFile]:
    """The files that these commits added, including those that a later compaction merged."""
    known = {file.path: file for file in made.files}
    keys = made.delta.metadata().partition_columns
    files = []
    for commit in commits:
        missing = [path for path in commit.added if path not in known]
        if missing and keys:
            known |= {file.path: file for file in _opened(log, commit.version).files}
        files += [
            known.get(path) or DataFile(path, commit.sizes[path], 0, {}) for path in commit.added
        ]
    return files


def _file_difference(
    spark: "SparkSession", before: TableVersion, after: TableVersion, scans: RemoteScans | None
) -> "DataFrame":
    old, new = {f.path for f in before.files}, {f.path for f in after.files}
    gone = before.read_files(spark, [f for f in before.files if f.path not in new], scans=scans)
    come = after.read_files(spark, [f for f in after.files if f.path not in old], scans=scans)
    minus = _as(gone, after.schema).withColumn(WEIGHT, sf.lit(-1).cast("long"))
    return minus.unionByName(come.withColumn(WEIGHT, sf.lit(1).cast("long")))


def _as(rows: "DataFrame", schema: StructType) -> "DataFrame":
    """The rows with the columns of `schema`: missing ones are NULL, others are dropped."""
    have = set(rows.columns)
    columns = []
    for field in schema.fields:
        value = sf.col(quoted(field.name)) if field.name in have else sf.lit(None)
        columns.append(value.cast(field.dataType).alias(field.name))
    return rows.select(*columns)


def _opened(log: TableLog, version: int) -> TableVersion:
    opened = open_table(log.storage, version)
    if opened is None:
        raise LakeError(f'the table "{log.name}" is not there', where=log.storage.root)
    return opened


def _weighted(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column(WEIGHT, pa.array([weight] * rows.num_rows, pa.int64()))


def _comparable(kind: DataType) -> bool:
    if isinstance(kind, MapType):
        return False
    if isinstance(kind, ArrayType):
        return _comparable(kind.elementType)
    if isinstance(kind, StructType):
        return all(_comparable(field.dataType) for field in kind.fields)
    return True
