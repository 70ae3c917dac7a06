"""A warehouse of one view, in DuckDB: the oracle for compiled statements.

It does with Arrow tables what the lake does with Delta tables: it runs the statements of a refresh
in their order, and applies their results. `recomputed` is a new run of the view's own query.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

from springhouse.lake.views.reach import out_of_reach
from springhouse.views.compile import Compiled, compile_view
from springhouse.views.delta.row_select import WEIGHT, Near, touched_name
from springhouse.views.delta.statement import (
    STALE,
    Bag,
    Keyed,
    RelationKind,
    RelationRead,
    Statement,
    Step,
    Top,
)
from springhouse.views.variants import regrouped, synchronous

Row = tuple[Any, ...]
Delta = tuple[Sequence[Row], Sequence[Row]]
"""Rows that are deleted, rows that are inserted."""


@lru_cache(maxsize=64)
def in_duckdb(text: str) -> str:
    """A Spark statement, translated into DuckDB's SQL."""
    return _with_double_averages(sqlglot.parse_one(text, read="spark")).sql(dialect="duckdb")


def _with_double_averages(query: sqlglot.exp.Expr) -> sqlglot.exp.Expr:
    """DuckDB's averages of decimals are doubles, so make averages from states doubles, too."""

    def swap(each: sqlglot.exp.Expr) -> sqlglot.exp.Expr:
        is_average = isinstance(each, sqlglot.exp.Cast) and isinstance(each.this, sqlglot.exp.Div)
        return each.this if is_average else each

    return query.transform(swap, copy=False)


class Database:
    """A DuckDB. Creating one takes longer than most cases do, so warehouses may share it."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        # The tables are tiny: optimizing a plan takes longer than running it.
        self._connection.execute("PRAGMA disable_optimizer")
        self._registered: dict[str, pa.Table] = {}

    def register(self, name: str, table: pa.Table) -> None:
        """Let statements read a table under a name."""
        if self._registered.get(name) is not table:
            self._connection.register(name, table)
            self._registered[name] = table

    def query(self, text: str) -> pa.Table:
        """The result of a query in Spark's SQL."""
        with warnings.catch_warnings():
            # Copying the rows is cheap here; the recommended call binds each statement twice.
            warnings.filterwarnings("ignore", message="Arrow output on a DB-API result")
            return self._connection.execute(in_duckdb(text)).to_arrow_table()


@lru_cache(maxsize=1)
def shared_database() -> Database:
    """One database for all warehouses of a process."""
    return Database()


class Warehouse:
    """Base tables, and one view over them that is refreshed step by step."""

    def __init__(
        self,
        schemas: Mapping[str, Mapping[str, str]],
        query: str,
        compiled: Compiled | None = None,
        database: Database | None = None,
    ) -> None:
        self._db = database or Database()
        self._schemas = {
            name: pa.schema([(c, _arrow(t)) for c, t in schema.items()])
            for name, schema in schemas.items()
        }
        self._query = query
        self.compiled = compiled or compile_view(query, schemas)
        self._rows: dict[str, list[Row]] = {name: [] for name in schemas}
        self._tables: dict[str, pa.Table] = {}
        # Statements must work with and without rows that are not near, so refreshes take turns.
        # The query decides the first turn, so that the cases together cover every combination.
        self._prunes = len(query) % 2 == 0
        self._turn = False
        self._refreshes = 0

    def load(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Fill the base tables, and build the view from nothing."""
        for name, given in rows.items():
            self._rows[name] = list(given)
        self._settle()
        for step in self.compiled.build:
            self._tables[_stored(step)] = self._run(step.build)

    def change(self, changes: Mapping[str, Delta]) -> None:
        """Change base tables, and refresh the view."""
        self._prunes = not self._prunes
        for name, (deleted, inserted) in changes.items():
            schema = self._schemas[name].append(pa.field(WEIGHT, pa.int64()))
            weighted = [(*row, -1) for row in deleted] + [(*row, 1) for row in inserted]
            self._tables[f"change {name}"] = _table(weighted, schema)
            self._tables[f"before {name}"] = self._tables[f"after {name}"]
            for row in deleted:
                self._rows[name].remove(row)
            self._rows[name] += inserted
        self._settle()
        changed = frozenset(changes) & self.compiled.inputs
        if changed:
            self._refreshes += 1
            variant = synchronous(self.compiled, changed)
            if self._refreshes % 3 == 0:
                # Sometimes use the other way, which must lead to the same state.
                variant = regrouped(self.compiled, changed) or variant
            assert variant.refresh is not None
            for step in variant.refresh.steps:
                self._perform(step)

    def stored(self) -> "Counter[Row]":
        """The rows that a reader of the view sees."""
        return bag(_rows(self._tables["after "].select(self.compiled.names)))

    def rows(self) -> list[Row]:
        """The rows that a reader of the view sees, as they are, in an order: NULL comes first."""
        found = _rows(self._tables["after "].select(self.compiled.names))
        return sorted(found, key=lambda row: [(value is not None, value) for value in row])

    def recomputed(self) -> "Counter[Row]":
        """The rows of the view's query."""
        for name in self._rows:
            self._db.register(name, self._tables[f"after {name}"])
        return bag(_rows(self._db.query(self._query)))

    def _settle(self) -> None:
        for name, rows in self._rows.items():
            self._tables[f"after {name}"] = _table(rows, self._schemas[name])

    # One step

    def _perform(self, step: Step) -> None:
        place = _stored(step)
        old = self._tables[place]
        match step:
            case Keyed():
                new = self._keyed(step, old)
            case Bag():
                new = self._bag(step, old)
            case Top():
                new = self._top(step, old)
        self._tables[f"before {step.table}"], self._tables[place] = old, new
        if step.table:
            visible = list(step.layout.visible)
            parts = [
                table.select(visible).append_column(WEIGHT, pa.array([w] * len(table), pa.int64()))
                for table, w in ((old, -1), (new, 1))
            ]
            self._tables[f"change {step.table}"] = pa.concat_tables(parts)

    def _keyed(self, step: Keyed, old: pa.Table) -> pa.Table:
        given = self._run(step.increments)
        keys = [] if step.is_one_group else given.schema.names[: len(step.layout.keys)]
        touched = set(_keys(given, keys))
        stale, kept = touched, old.slice(0, 0)
        if step.merge is not None and step.merge_given is not None:
            # Both ways must give the same rows; refreshes take turns.
            self._turn = not self._turn
            merge = step.merge if self._turn else step.merge_given
            merged = self._run(merge, stored=old, increments=given)
            flags = merged[STALE].to_pylist()
            own = list(_keys(merged, step.layout.keys))
            stale = {key for key, flag in zip(own, flags, strict=True) if flag}
            counts = merged[step.count].to_pylist()
            alive = [
                not flag and (count > 0 or step.is_one_group)
                for flag, count in zip(flags, counts, strict=True)
            ]
            kept = merged.filter(pa.array(alive, pa.bool_())).select(old.schema.names)
        fresh = old.slice(0, 0)
        if stale:
            asked = [key in stale for key in _keys(given, keys)]
            named = given.select(keys).rename_columns([touched_name(key) for key in keys])
            fresh = self._run(step.recompute, touched=named.filter(pa.array(asked, pa.bool_())))
        rest = [key not in touched for key in _keys(old, step.layout.keys)]
        parts = [old.filter(pa.array(rest, pa.bool_())), kept, fresh.select(old.schema.names)]
        return pa.concat_tables(part.cast(old.schema) for part in parts)

    def _bag(self, step: Bag, old: pa.Table) -> pa.Table:
        found = self._run(step.change)
        weights: Counter[Row] = Counter()
        rows: dict[Row, Row] = {}
        for *values, weight in _rows(found):
            assert weight in (1, -1), "weights are +1 and -1"
            rows[_normal(values)] = tuple(values)
            weights[_normal(values)] += weight
        for row in _rows(old):
            rows[_normal(row)] = row
            weights[_normal(row)] += 1
        assert all(count >= 0 for count in weights.values()), "a row was deleted that is not there"
        new = [rows[key] for key, count in weights.items() for _ in range(count)]
        return _table(new, found.drop_columns([WEIGHT]).schema).cast(old.schema)

    def _top(self, step: Top, old: pa.Table) -> pa.Table:
        if self._prunes and len(old) >= step.limit and self._is_out_of_reach(step, old):
            return old
        first = self._run(step.candidates, stored=old) if step.candidates else old
        whole = step.candidates is not None and len(old) < step.limit
        lost = STALE not in first.schema.names or not len(first) or any(first[STALE].to_pylist())
        if not whole and lost:
            first = self._run(step.build)
        return first.select(old.schema.names).cast(old.schema)

    def _is_out_of_reach(self, step: Top, old: pa.Table) -> bool:
        if step.leading is None or step.candidates is None:
            return False
        reads = {each.name: each for each in step.candidates.reads}
        among = [(reads[name], column) for name, column in step.leading.among]
        if any(reading.kind is not RelationKind.CHANGE for reading, _ in among):
            return False
        changed = [self._relation(reading, {})[column] for reading, column in among]
        return out_of_reach(step.leading, old[step.leading.stored], changed)

    def _run(self, statement: Statement, **given: pa.Table) -> pa.Table:
        """The result of a statement, with its relations in front of it."""
        relations = {each.name: self._relation(each, given) for each in statement.reads}
        for reading in statement.reads:
            table = relations[reading.name]
            for near in reading.near if self._prunes else ():
                table = _only(table, near, relations)
            for condition in reading.where if self._prunes else ():
                self._db.register("unpruned", table)
                table = self._db.query(
                    f"SELECT * FROM unpruned WHERE {condition.sql(dialect='spark')}"
                )
            relations[reading.name] = table
            self._db.register(reading.name, table)
        return self._db.query(statement.sql)

    def _relation(self, reading: RelationRead, given: Mapping[str, pa.Table]) -> pa.Table:
        if reading.kind is RelationKind.STORED:
            return given["stored"]
        if reading.kind is RelationKind.GIVEN:
            return given[reading.of]
        return self._tables[f"{reading.kind.value} {reading.of}"]


def bag(rows: Iterable[Sequence[Any]]) -> "Counter[Row]":
    """Rows without an order, with numbers of all kinds made comparable."""
    return Counter(_normal(row) for row in rows)


def _rows(table: pa.Table) -> list[Row]:
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _keys(table: pa.Table, names: Sequence[str]) -> list[Row]:
    return [_normal(row) for row in _rows(table.select(list(names)))]


def _only(table: pa.Table, near: Near, others: Mapping[str, pa.Table]) -> pa.Table:
    """The rows whose column value occurs in the other relations."""
    wanted = {key for name, source in near.among for key in _keys(others[name], [source])}
    kept = [key in wanted for key in _keys(table, [near.column])]
    return table if all(kept) else table.filter(pa.array(kept, pa.bool_()))


def _table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _normal(row: Sequence[Any]) -> Row:
    return tuple(_value(value) for value in row)


def _value(value: Any) -> Any:
    if isinstance(value, Decimal | float):
        # 1.0, 1.00 and a double with an error in its last digits are one value.
        return round(float(value), 7) + 0.0
    if isinstance(value, bool):
        return str(value)
    return tuple(map(_value, value)) if isinstance(value, list | tuple) else value


def _stored(step: Step) -> str:
    return f"after {step.table}"


def _arrow(spark: str) -> pa.DataType:
    """The Arrow type for a Spark type."""
    plain = {
        "int": pa.int32(),
        "bigint": pa.int64(),
        "string": pa.string(),
        "double": pa.float64(),
        "date": pa.date32(),
        "boolean": pa.bool_(),
    }
    if spark.startswith("decimal"):
        precision, scale = spark.removeprefix("decimal(").removesuffix(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    if spark.startswith("array<"):
        return pa.list_(_arrow(spark.removeprefix("array<").removesuffix(">")))
    return plain[spark]
