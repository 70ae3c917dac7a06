"""A warehouse of one view, in DuckDB: the oracle that compiled statements are held against.

It does with DuckDB's tables what the lake does with Delta's: it runs the statements of a refresh in
their order, and applies what they give. `recomputed` is the view's own query, run anew.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import sqlglot

from springhouse.views.compile import Compiled, compile_view
from springhouse.views.rows import WEIGHT, touched_name
from springhouse.views.statement import STALE, Bag, Keyed, Kind, Statement, Step, Top

Row = tuple[Any, ...]
Delta = tuple[Sequence[Row], Sequence[Row]]
"""Rows that are deleted, rows that are inserted."""


@cache
def in_duckdb(text: str) -> str:
    """A statement of Spark's in DuckDB's words."""
    return sqlglot.transpile(text, read="spark", write="duckdb")[0]


class Warehouse:
    """Base tables, and one view over them that is refreshed step by step."""

    def __init__(
        self, schemas: Mapping[str, Mapping[str, str]], query: str, compiled: Compiled | None = None
    ) -> None:
        self._db = duckdb.connect(config={"threads": 1})
        self._schemas = schemas
        self._query = query
        self.compiled = compiled or compile_view(query, schemas)
        self._columns: dict[str, Sequence[str]] = {}
        for name, schema in schemas.items():
            columns = ", ".join(f'"{c}" {_type(t)}' for c, t in schema.items())
            self._db.execute(f'CREATE TABLE "base_{name}" ({columns})')
            self._db.execute(f'CREATE VIEW "{name}" AS SELECT * FROM "base_{name}"')

    def load(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Fill the base tables, and build the view from nothing."""
        for name, given in rows.items():
            self._insert(f"base_{name}", given)
        for step in self.compiled.build:
            self._bind(step.build, frozenset())
            table = _table(step)
            self._db.execute(f'CREATE OR REPLACE TABLE "{table}" AS {in_duckdb(step.build.sql)}')

    def change(self, changes: Mapping[str, Delta]) -> None:
        """Change base tables, and refresh the view."""
        changed = frozenset(changes) & self.compiled.inputs
        for name, (deleted, inserted) in changes.items():
            self._db.execute(f'CREATE OR REPLACE TABLE "old_{name}" AS FROM "base_{name}"')
            self._db.execute(
                f'CREATE OR REPLACE TABLE "change_{name}" AS '
                f'SELECT *, 1::BIGINT AS {WEIGHT} FROM "base_{name}" WHERE FALSE'
            )
            weighted = [(*row, -1) for row in deleted] + [(*row, 1) for row in inserted]
            self._insert(f"change_{name}", weighted)
            self._delete(name, deleted)
            self._insert(f"base_{name}", inserted)
        if changed:
            for step in self.compiled.refresh(changed).steps:
                self._perform(step, changed)

    def stored(self) -> "Counter[Row]":
        """The rows that a reader of the view sees."""
        names = ", ".join(f'"{name}"' for name in self.compiled.names)
        return bag(self._db.execute(f"SELECT {names} FROM view").fetchall())

    def recomputed(self) -> "Counter[Row]":
        """The rows that the view's query gives."""
        return bag(self._db.execute(in_duckdb(self._query)).fetchall())

    # One step

    def _perform(self, step: Step, changed: frozenset[str]) -> None:
        table = _table(step)
        self._db.execute(f'CREATE OR REPLACE TABLE "was_{table}" AS FROM "{table}"')
        match step:
            case Keyed():
                self._keyed(step, table, changed)
            case Bag():
                self._bag(step, table, changed)
            case Top():
                self._top(step, table, changed)
        if step.table:
            visible = ", ".join(f'"{name}"' for name in step.layout.visible)
            self._db.execute(
                f'CREATE OR REPLACE TABLE "change_{step.table}" AS '
                f'SELECT {visible}, -1 AS {WEIGHT} FROM "was_{table}" '
                f'UNION ALL SELECT {visible}, 1 AS {WEIGHT} FROM "{table}"'
            )

    def _keyed(self, step: Keyed, table: str, changed: frozenset[str]) -> None:
        self._bind(step.increments, changed)
        self._db.execute(f"CREATE OR REPLACE TABLE now_given AS {in_duckdb(step.increments.sql)}")
        pairs = list(zip(step.layout.keys, self._keys_of_given(), strict=False))
        match = " AND ".join(f'"{table}"."{s}" IS NOT DISTINCT FROM given."{g}"' for s, g in pairs)
        if step.merge is not None:
            assert step.merge_given is not None
            # Both ways must give the same; they are taken in turn.
            self._turn = not getattr(self, "_turn", False)
            merge = step.merge if self._turn else step.merge_given
            self._bind(merge, changed, stored=table)
            self._db.execute(f"CREATE OR REPLACE TABLE merged AS {in_duckdb(merge.sql)}")
        else:
            none = f'SELECT *, TRUE AS {STALE} FROM "{table}" LIMIT 0'
            self._db.execute(f"CREATE OR REPLACE TABLE merged AS {none}")
        keys = ", ".join(f'"{g}" AS "{touched_name(g)}"' for _, g in pairs)
        stale = "TRUE"
        if step.merge is not None:
            own = [f'merged."{s}" IS NOT DISTINCT FROM given."{g}"' for s, g in pairs]
            stale = f"EXISTS (SELECT 1 FROM merged WHERE {' AND '.join([STALE, *own])})"
        asked = f"SELECT {keys or '1 AS one'} FROM now_given AS given WHERE {stale}"
        self._db.execute(f"CREATE OR REPLACE TABLE now_touched AS {asked}")
        self._bind(step.recompute, changed)
        fresh = in_duckdb(step.recompute.sql)
        self._db.execute(f'DELETE FROM "{table}" USING now_given AS given WHERE {match or "TRUE"}')
        columns = ", ".join(f'"{name}"' for name in step.layout.columns)
        alive = f"AND {step.count} > 0" if step.count and not step.is_one_group else ""
        kept = f"SELECT {columns} FROM merged WHERE NOT {STALE} {alive}"
        self._db.execute(f'INSERT INTO "{table}" ({columns}) {kept}')
        if self._db.execute("SELECT count(*) FROM now_touched").fetchall()[0][0]:
            self._db.execute(f'INSERT INTO "{table}" ({columns}) SELECT {columns} FROM ({fresh})')

    def _keys_of_given(self) -> list[str]:
        described = self._db.execute("DESCRIBE now_given").fetchall()
        return [name for name, *_ in described]

    def _bag(self, step: Bag, table: str, changed: frozenset[str]) -> None:
        self._bind(step.change, changed)
        found = self._db.execute(in_duckdb(step.change.sql)).fetchall()
        weights: Counter[Row] = Counter()
        rows: dict[Row, Row] = {}
        for *values, weight in found:
            assert weight in (1, -1), "weights are +1 and -1"
            key = _normal(values)
            rows[key] = tuple(values)
            weights[key] += weight
        now = self._db.execute(f'FROM "{table}"').fetchall()
        for row in now:
            rows[_normal(row)] = row
            weights[_normal(row)] += 1
        assert all(count >= 0 for count in weights.values()), "a row was deleted that is not there"
        self._db.execute(f'DELETE FROM "{table}"')
        self._insert(table, [rows[key] for key, count in weights.items() for _ in range(count)])

    def _top(self, step: Top, table: str, changed: frozenset[str]) -> None:
        self._bind(step.candidates, changed, stored=table)
        self._db.execute(f"CREATE OR REPLACE TABLE merged AS {in_duckdb(step.candidates.sql)}")
        many = self._db.execute(f'SELECT count(*) FROM "{table}"').fetchall()[0][0]
        left, stale = self._db.execute(f"SELECT count(*), max({STALE}) FROM merged").fetchall()[0]
        columns = ", ".join(f'"{name}"' for name in step.layout.columns)
        whole = many < step.limit
        if not whole and (stale or not left):
            self._bind(step.build, changed)
            self._db.execute(f"CREATE OR REPLACE TABLE merged AS {in_duckdb(step.build.sql)}")
        self._db.execute(f'DELETE FROM "{table}"')
        self._db.execute(f'INSERT INTO "{table}" ({columns}) SELECT {columns} FROM merged')

    def _bind(self, statement: Statement, changed: frozenset[str], stored: str = "") -> None:
        """Put the relations that a statement names in front of it."""
        for reading in statement.reads:
            base = reading.of in self._schemas
            match reading.kind:
                case Kind.CHANGE:
                    source = f"change_{reading.of}"
                case Kind.AFTER:
                    source = f"base_{reading.of}" if base else f"hidden_{reading.of}"
                case Kind.BEFORE if base:
                    source = f"old_{reading.of}"
                case Kind.BEFORE:
                    source = f"was_hidden_{reading.of}"
                case Kind.STORED:
                    source = stored
                case Kind.GIVEN:
                    source = "now_given" if reading.of == "increments" else "now_touched"
            self._db.execute(f'CREATE OR REPLACE TEMP VIEW "{reading.name}" AS FROM "{source}"')

    # Rows

    def _insert(self, table: str, rows: Sequence[Row]) -> None:
        if rows:
            marks = ", ".join("?" for _ in rows[0])
            self._db.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)

    def _delete(self, name: str, rows: Sequence[Row]) -> None:
        """One copy of each row."""
        for row in rows:
            same = " AND ".join(f'"{c}" IS NOT DISTINCT FROM ?' for c in self._schemas[name])
            self._db.execute(
                f'DELETE FROM "base_{name}" WHERE rowid = '
                f'(SELECT min(rowid) FROM "base_{name}" WHERE {same})',
                list(row),
            )

    def close(self) -> None:
        self._db.close()


def bag(rows: Iterable[Sequence[Any]]) -> "Counter[Row]":
    """Rows without an order, with numbers of all kinds made comparable."""
    return Counter(_normal(row) for row in rows)


def _normal(row: Sequence[Any]) -> Row:
    return tuple(_value(value) for value in row)


def _value(value: Any) -> Any:
    if isinstance(value, Decimal | float):
        # 1.0, 1.00 and a double that is off in its last digits are one value.
        return round(float(value), 7) + 0.0
    if isinstance(value, bool):
        return str(value)
    return tuple(map(_value, value)) if isinstance(value, list) else value


def _table(step: Step) -> str:
    return f"hidden_{step.table}" if step.table else "view"


def _type(spark: str) -> str:
    return sqlglot.exp.DataType.build(spark, dialect="spark").sql(dialect="duckdb")
