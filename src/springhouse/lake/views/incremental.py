"""How do the statements of a refresh become rows in files?

The compiler gives the statements (`views.compile`). This module binds each relation of a statement
to files or to rows in this process. Spark runs the statement, and the store of the step takes in
the small result. Steps run in order: a step reads the results of earlier steps. This module commits
nothing; the new files belong to no table until a commit names them.

    Keyed   merges the touched groups with the stored ones, and recomputes stale groups
    Bag     adds and removes rows
    Top     keeps the first of the stored and the new rows
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from springhouse.errors import LakeError
from springhouse.lake.delta.file_pruning import Ranges, chosen_files
from springhouse.lake.delta.key_codes import codes_of
from springhouse.lake.delta.stores import Rewritten, Store, change_rows, replace_keys
from springhouse.lake.delta.tables import DataFile, TableVersion, frame_of, quoted, read_parquet
from springhouse.lake.lake import Lake
from springhouse.lake.spark.conditions import decidable
from springhouse.lake.spark.local_rows import (
    GIVEN,
    LocalRows,
    empty_relation,
    send_together,
    unfold,
)
from springhouse.lake.spark.session_settings import LocalInput
from springhouse.lake.views.lookups import Sought, values_for
from springhouse.lake.views.reach import out_of_reach
from springhouse.planner.placement import is_quick, is_sent_together, reads_store_whole, takes_whole
from springhouse.views.delta.row_select import WEIGHT
from springhouse.views.delta.statement import (
    STALE,
    Bag,
    Keyed,
    Refresh,
    RelationKind,
    RelationRead,
    Statement,
    Step,
    Top,
)
from springhouse.views.sql.expressions import free_columns
from springhouse.views.sql.write_sql import braced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from springhouse.lake.spark.kept_change import SharedScan

_WEIGHT = StructField(WEIGHT, LongType())
_STORED = (RelationKind.BEFORE, RelationKind.AFTER, RelationKind.STORED)


Casts = dict[tuple[str, str], tuple[str, ...]]
"""The columns to select, with casts, by the text of a statement and its table.

Empty if the types need no cast. Spark gives the types only once, because that takes as long as a
small join.
"""


class StateMismatch(LakeError):
    """The stored state does not fit the change: the view has to be rebuilt."""


@dataclass(frozen=True)
class ChangedInput:
    """The change of an input, with about `rows` rows: `load` gives few rows, `read` many.

    Both read on demand, unless a `scan` has already read the change for several views.
    """

    rows: int
    load: Callable[[], pa.Table | None]
    read: "Callable[[], DataFrame]"
    scan: "SharedScan | None" = None

    @cached_property
    def arrow(self) -> pa.Table | None:
        return self.load()


@dataclass
class Work:
    """One refresh of one view: the relations of its statements and the results of its steps."""

    lake: Lake
    changes: Mapping[str, ChangedInput]
    before: Mapping[str, TableVersion]
    after: Mapping[str, TableVersion]
    stores: dict[str, Store]
    shapes: Mapping[str, StructType]
    casts: Casts = field(default_factory=dict)
    view_rows: int = 0
    rewritten: dict[str, Rewritten] = field(default_factory=dict)
    _changed: dict[RelationRead, pa.Table | None] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, float]:
        """The number of rows of each input, of each hidden table, and ("") of the view."""
        rows: dict[str, float] = {name: version.rows for name, version in self.after.items()}
        rows |= {name: store.rows for name, store in self.stores.items()}
        return {**rows, "": self.view_rows}

    # Bindings

    def run(self, statement: Statement, shape: str | None = None, **given: pa.Table) -> pa.Table:
        """The result of a statement, as an Arrow table with the column types of the table `shape`.

        Spark does the casts, not Arrow, so that averages are rounded as in a query.
        """
        known = self.casts.get((statement.sql, shape)) if shape is not None else ()
        frame = self.frame(statement, known or (), **given)
        if known is None:
            assert shape is not None
            known = self.casts[statement.sql, shape] = _casts(frame.schema, self.shapes[shape])
            frame = frame.selectExpr(*known) if known else frame
        return frame.toArrow()

    def frame(
        self, statement: Statement, select: Sequence[str] = (), **given: pa.Table
    ) -> "DataFrame":
        """A statement over its relations, not yet run; `select` chooses and casts its columns."""
        tables = self._tables(statement, given)
        session = self._session(statement, tables)
        local = all(table is not None for table in tables.values())
        frames: dict[str, Any] = {}
        small: dict[str, LocalRows] = {}
        places: dict[str, str] = {}
        for reading in statement.reads:
            places[reading.name] = f"{{{reading.name}}}"
            table = tables[reading.name]
            if table is None:
                frames[reading.name] = self._read(session, reading, self.near(reading, tables))
                continue
            # Only the columns that the statement needs go to Spark.
            needed = statement.columns[reading.name]
            names = [name for name in table.schema.names if name in needed]
            used = table.select(names) if names else table
            rows = LocalRows.of(used, self._shape(reading, used.schema.names))
            if not rows.rows.num_rows:
                places[reading.name] = empty_relation(rows.shape)
            elif is_sent_together(rows.rows.num_rows):
                small[reading.name] = rows
                places[reading.name] = unfold(reading.name, whole=local)
            else:
                frame = frame_of(session, rows.rows, rows.shape)
                # With one partition, Spark need not shuffle the rows.
                frames[reading.name] = frame.coalesce(1) if local else frame
        if small:
            every = send_together(small)
            frames[GIVEN] = frame_of(session, every.rows, every.shape)
        text = statement.template(in_one_place=local).format_map(places)
        if select:
            text = f"SELECT {', '.join(map(braced, select))} FROM (\n{text}\n)"
        # Spark formats the text a second time if it has frames as parameters.
        return session.sql(text, **frames) if frames else session.sql(text.format())

    def _session(
        self, statement: Statement, tables: Mapping[str, pa.Table | None]
    ) -> "SparkSession":
        """The session for small queries if this statement reads few rows, else the usual one."""
        asked = [r for r in statement.reads if r.kind in _STORED and tables[r.name] is None]
        rows = sum(f.rows for r in asked for f in self.files(r, self.near(r, tables)))
        large = any(change.arrow is None for change in self.changes.values())
        if large or not is_quick(rows):
            return self.lake.spark.session()
        here = [table.num_rows for table in tables.values() if table is not None]
        if len(here) < len(tables):
            return self.lake.spark.quick()
        return self.lake.spark.quick(LocalInput(sum(map(bool, here)), sum(here)))

    def _tables(
        self, statement: Statement, given: Mapping[str, pa.Table]
    ) -> dict[str, pa.Table | None]:
        """The relations that this process holds or can load; None for the others."""
        small = any(
            reading.kind in (RelationKind.CHANGE, RelationKind.GIVEN) for reading in statement.reads
        )
        small = small or takes_whole(self._stored_rows(statement))
        tables: dict[str, pa.Table | None] = {}
        for reading in statement.reads:
            table = self._arrow(reading, given)
            if table is None and small and reading.kind in _STORED:
                table = self._looked_up(reading, tables, statement.columns[reading.name])
            tables[reading.name] = table
        return tables

    def _stored_rows(self, statement: Statement) -> int:
        """The number of rows in the stored tables that a statement reads."""
        asked = [reading for reading in statement.reads if reading.kind in _STORED]
        return sum(file.rows for reading in asked for file in self.files(reading, {}))

    def _arrow(self, reading: RelationRead, given: Mapping[str, pa.Table]) -> pa.Table | None:
        """The rows of a relation, if this process holds them."""
        if reading.kind is RelationKind.GIVEN:
            return given[reading.of]
        if reading.kind is not RelationKind.CHANGE:
            return None
        if reading not in self._changed:
            self._changed[reading] = self._change(reading)
        return self._changed[reading]

    def _change(self, reading: RelationRead) -> pa.Table | None:
        """The changed rows of an input or a hidden table that meet the conditions of `reading`."""
        if reading.of in self.changes:
            change = self.changes[reading.of].arrow
        else:
            names = self.shapes[reading.of].fieldNames()
            change = _as_change(self.rewritten[reading.of], names)
        condition = decidable(reading.where, self._comparable(reading))
        return change if change is None or condition is None else change.filter(condition)

    def _is_idle(self, statement: Statement) -> bool:
        """Whether all changes that a statement reads are empty: then its result is empty, too."""
        asked = [reading for reading in statement.reads if reading.kind is RelationKind.CHANGE]
        changes = [self._arrow(reading, {}) for reading in asked]
        return bool(asked) and all(each is not None and not each.num_rows for each in changes)

    def _looked_up(
        self,
        reading: RelationRead,
        tables: Mapping[str, pa.Table | None],
        needed: frozenset[str],
    ) -> pa.Table | None:
        """The rows of a table that the statement can use; None if they are many."""
        version = self.version_of(reading)
        if version is not None and not version.is_plain:
            return None
        schema = self._columns(reading)
        condition = decidable(reading.where, self._comparable(reading))
        mentioned = frozenset().union(*map(free_columns, reading.where)) & {*schema.names}
        sought = Sought(self._wanted(reading, tables), condition, mentioned)
        files = self.files(reading, sought.ranges)
        if not sought.is_worth_it(sum(file.rows for file in files)):
            return None
        storage = version.storage if version is not None else self._store(reading).storage
        columns = [name for name in schema.names if name in needed]
        return sought.look_up(storage, files, schema, columns or schema.names[:1])

    def _read(
        self, session: "SparkSession", reading: RelationRead, near: Mapping[str, Ranges]
    ) -> "DataFrame":
        """A relation that Spark reads from files, without the files outside the ranges `near`."""
        if reading.kind is RelationKind.CHANGE:
            return self.changes[reading.of].read()
        files = self.files(reading, near)
        version = self.version_of(reading)
        if version is not None:
            frame = version.read_files(session, files, scans=self.lake.remote_scans)
        else:
            storage = self._store(reading).storage
            shape, scans = self.shapes[reading.of], self.lake.remote_scans
            frame = read_parquet(session, storage, files, shape, scans)
        for name, ranges in near.items():
            frame = frame.where(ranges.condition(name))
        return frame

    def version_of(self, reading: RelationRead) -> TableVersion | None:
        """The input version that a relation reads; None for the view's own tables."""
        if reading.kind is RelationKind.BEFORE:
            return self.before.get(reading.of)
        return self.after.get(reading.of) if reading.kind is RelationKind.AFTER else None

    def files(self, reading: RelationRead, near: Mapping[str, Ranges]) -> list[DataFile]:
        """The files of a relation that may hold rows in these ranges."""
        version = self.version_of(reading)
        return chosen_files(version.files if version else self._store(reading).files, near)

    def near(
        self, reading: RelationRead, tables: Mapping[str, pa.Table | None]
    ) -> dict[str, Ranges]:
        """The known ranges of the needed rows of a relation, by column."""
        return Sought(self._wanted(reading, tables)).ranges

    def _wanted(
        self, reading: RelationRead, tables: Mapping[str, pa.Table | None]
    ) -> dict[str, pa.Array]:
        """The known values of the needed rows of a relation, by column."""
        found: dict[str, pa.Array] = {}
        comparable = self._comparable(reading)
        for each in reading.near:
            sources = [(tables.get(relation), name) for relation, name in each.among]
            known = [table[name] for table, name in sources if table is not None]
            if len(known) < len(sources) or each.column not in comparable.names:
                continue
            values = values_for(comparable.field(each.column).type, known)
            best = found.get(each.column)
            if values is not None and (best is None or len(values) < len(best)):
                found[each.column] = values
        return found

    def _shape(self, reading: RelationRead, names: Sequence[str]) -> StructType | None:
        """The Spark types of these columns: Arrow does not know all of Spark's types."""
        if reading.kind is RelationKind.GIVEN:
            return None
        version = self.after.get(reading.of)
        whole = version.schema if version is not None else self.shapes[reading.of]
        fields = {field.name: field for field in (*whole.fields, _WEIGHT)}
        return StructType([fields[name] for name in names])

    def _comparable(self, reading: RelationRead) -> pa.Schema:
        """The columns whose values Spark and Arrow compare in the same way."""
        shape = self._shape(reading, self._columns(reading).names)
        collated = {field.name for field in shape or () if _is_collated(field.dataType)}
        return pa.schema([each for each in self._columns(reading) if each.name not in collated])

    def _columns(self, reading: RelationRead) -> pa.Schema:
        version = self.version_of(reading)
        if reading.kind is RelationKind.CHANGE and reading.of in self.after:
            version = self.after[reading.of]
        return version.arrow_schema if version is not None else self._store(reading).schema

    def _store(self, reading: RelationRead) -> Store:
        if reading.kind is RelationKind.AFTER and reading.of in self.rewritten:
            return self.rewritten[reading.of].store
        return self.stores[reading.of]

    # Steps

    def perform(self, refresh: Refresh) -> Rewritten | None:
        """Run the steps; gives the new state of the view itself, or None if it did not change."""
        for step in refresh.steps:
            done = self._step(step)
            if done is not None:
                self.rewritten[step.table] = done
            elif step.table:
                store = self.stores[step.table]
                empty = store.schema.empty_table()
                self.rewritten[step.table] = Rewritten(store, (), (), empty, empty)
        return self.rewritten.get("")

    def _step(self, step: Step) -> Rewritten | None:
        match step:
            case Keyed():
                return self._keyed(step)
            case Bag():
                return self._bag(step)
            case Top():
                return self._top(step)

    def _keyed(self, step: Keyed) -> Rewritten | None:
        if self._is_idle(step.increments):
            return None
        store = self.stores[step.table]
        if step.merge is None or step.merge_given is None:
            keys = self._touched(self.run(step.increments), step)
            if not keys.num_rows:
                return None
            return self._replaced(step, keys, self._recomputed(step, keys))
        if reads_store_whole(store.rows) or _knows_its_keys(step.merge):
            merged = self.run(step.merge, step.table)
        else:
            # Once the keys are known, Spark reads only the files that hold them.
            given = self.run(step.increments)
            merged = self.run(step.merge_given, step.table, increments=given)
        if not merged.num_rows:
            return None
        keys = merged.select(list(step.layout.keys))
        stale = pc.fill_null(merged[STALE], False)
        settled = merged.filter(pc.invert(stale))
        if step.count is not None and not step.is_one_group:
            if pc.any(pc.less(settled[step.count], 0)).as_py():
                raise StateMismatch("a group would have less than no rows")
            settled = settled.filter(pc.greater(settled[step.count], 0))
        rows = settled.select(store.schema.names).cast(store.schema)
        if pc.any(stale).as_py():
            rows = pa.concat_tables([rows, self._recomputed(step, keys.filter(stale))])
        return self._replaced(step, keys, rows)

    def _touched(self, increments: pa.Table, step: Keyed) -> pa.Table:
        """The keys of the touched groups, under the names of the stored columns."""
        if step.is_one_group:
            return increments.select([]) if increments.num_rows else increments
        count = len(step.layout.keys)
        keys = increments.select(increments.schema.names[:count])
        return keys.rename_columns(list(step.layout.keys))

    def _recomputed(self, step: Keyed, keys: pa.Table) -> pa.Table:
        """The groups with these keys, computed again from the rows of the inputs."""
        store = self.stores[step.table]
        touched = keys.rename_columns(list(step.touched_names))
        rows = self.run(step.recompute, step.table, touched=touched)
        return rows.select(store.schema.names).cast(store.schema)

    def _replaced(self, step: Keyed, keys: pa.Table, rows: pa.Table) -> Rewritten:
        return replace_keys(self.stores[step.table], step.layout.keys, keys, rows)

    def _bag(self, step: Bag) -> Rewritten | None:
        if self._is_idle(step.change):
            return None
        found = self.run(step.change, step.table)
        if not found.num_rows:
            return None
        done = change_rows(self.stores[step.table], found, found[WEIGHT].combine_chunks())
        if done is None:
            raise StateMismatch("a row is to be deleted that is not there")
        return done

    def _top(self, step: Top) -> Rewritten | None:
        store = self.stores[step.table]
        if step.candidates is not None and self._is_idle(step.candidates):
            return None
        if store.rows >= step.limit and self._is_out_of_reach(step):
            return None
        asked = None if takes_whole(self._stored_rows(step.build)) else step.candidates
        whole = asked is not None and store.rows < step.limit
        first = self.run(asked, step.table) if asked is not None else None
        if first is None or (not whole and (not first.num_rows or _any(first[STALE]))):
            first = self.run(step.build, step.table)
        rows = first.select(store.schema.names).cast(store.schema)
        if same_rows(store.read(), rows):
            return None
        return replace_keys(store, (), rows, rows)

    def _is_out_of_reach(self, step: Top) -> bool:
        """Whether the change is certainly behind the last stored row."""
        leading = step.leading
        if leading is None or step.candidates is None:
            return False
        if _is_collated(self.shapes[step.table][leading.stored].dataType):
            return False
        reads = {reading.name: reading for reading in step.candidates.reads}
        changes = {name: self._arrow(reads[name], {}) for name, _ in leading.among}
        changed = [
            table[column] for name, column in leading.among if (table := changes[name]) is not None
        ]
        if len(changed) < len(leading.among):
            return False
        return out_of_reach(leading, self.stores[step.table].read()[leading.stored], changed)


def _casts(found: StructType, wanted: StructType) -> tuple[str, ...]:
    """All columns, as SQL, with a cast where a type is wrong; empty if all types are right."""
    types = {field.name: field.dataType for field in wanted.fields}
    wrong = {
        f.name
        for f in found.fields
        if nullable(types.get(f.name, f.dataType)) != nullable(f.dataType)
    }
    if not wrong:
        return ()
    names = [(field.name, quoted(field.name)) for field in found.fields]
    return tuple(
        f"CAST({text} AS {types[name].simpleString()}) AS {text}" if name in wrong else text
        for name, text in names
    )


def nullable(kind: DataType) -> DataType:
    """A type whose elements, values and fields may be NULL."""
    match kind:
        case ArrayType():
            return ArrayType(nullable(kind.elementType), True)
        case MapType():
            return MapType(nullable(kind.keyType), nullable(kind.valueType), True)
        case StructType():
            return StructType(
                [StructField(f.name, nullable(f.dataType), True) for f in kind.fields]
            )
        case _:
            return kind


def _is_collated(kind: DataType) -> bool:
    """Whether Spark may treat different texts as equal."""
    return isinstance(kind, StringType) and kind != StringType()


def _knows_its_keys(merge: Statement) -> bool:
    """Whether the changes alone show which stored groups are touched."""
    return any(reading.kind is RelationKind.STORED and reading.near for reading in merge.reads)


def _any(flags: pa.ChunkedArray) -> bool:
    return any(bool(flag) for flag in flags.to_pylist())


def same_rows(left: pa.Table, right: pa.Table) -> bool:
    """Whether two tables hold the same rows, as bags."""
    if left.num_rows != right.num_rows:
        return False
    names = left.schema.names
    first, second = codes_of([left, right], [names, names])
    return bool((np.sort(first) == np.sort(second)).all())


def _as_change(done: Rewritten, names: Sequence[str]) -> pa.Table:
    """The change that a step made to a hidden table, for the steps after it."""
    visible = [name for name in names if not name.startswith("__springhouse_")]
    parts = [
        table.select(visible).append_column(
            WEIGHT, pa.array(np.full(len(table), weight), pa.int64())
        )
        for table, weight in ((done.gone, -1), (done.come, 1))
    ]
    both = pa.concat_tables(parts)
    if not both.num_rows:
        return both
    # A row that was rewritten with the same values is no change.
    codes = codes_of([both], [visible])[0]
    sums = np.bincount(np.unique(codes, return_inverse=True)[1], weights=both[WEIGHT].to_numpy())
    return both.filter(pa.array(sums[np.unique(codes, return_inverse=True)[1]] != 0))
