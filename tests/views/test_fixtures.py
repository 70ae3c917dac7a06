"""What delta SQL does each kind of query compile to, and does it keep the view up to date?

Each file in `fixtures/` is one example. A line `---- name` begins a section:

    ---- tables    CREATE TABLE and INSERT statements
    ---- query     the view's query
    ---- build     the statements that make the view from nothing
    ---- rows      the view's rows after that
    ---- change    DELETE and INSERT statements; a file has one or more of these
    ---- delta     the statements of the refresh; left out if they are the same as before
    ---- rows      the view's rows after the refresh

The test runs a file in DuckDB. It compares the SQL and the rows with the file, and the rows with a
new run of the query. `REWRITE=1` writes the compiler's current output into the files.
"""

import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from springhouse.views.compile import Compiled, compile_view
from springhouse.views.delta.statement import Bag, Keyed, Statement, Step, Top
from warehouse import Delta, Warehouse, shared_database

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.sql"))
MARK = "---- "

Section = tuple[str, str]
"""Its name, and its lines."""


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_the_view_follows_its_inputs_by_the_expected_sql(path: Path) -> None:
    title, sections = read(path)
    actual = list(replayed(sections))
    if os.environ.get("REWRITE"):
        path.write_text(written(title, actual))
        return
    assert actual == sections


def test_there_are_examples_of_every_kind_of_query() -> None:
    assert len(FIXTURES) >= 20


def read(path: Path) -> tuple[str, list[Section]]:
    """The comment at the top of a file, and its sections."""
    title, *rest = path.read_text().split(f"\n{MARK}")
    parts = [each.partition("\n") for each in rest]
    return title.strip(), [(name.strip(), body.strip()) for name, _, body in parts]


def written(title: str, sections: list[Section]) -> str:
    """The text of a file."""
    return "\n\n".join([title, *(f"{MARK}{name}\n{body}" for name, body in sections)]) + "\n"


def replayed(sections: list[Section]) -> Iterator[Section]:
    """The sections of a file with the current output of the compiler and the database."""
    (_, tables), (_, query), *_ = sections
    yield "tables", tables
    yield "query", query
    database = duckdb.connect()
    statements = sqlglot.parse(tables, read="spark")
    schemas = dict(map(_schema, (each for each in statements if isinstance(each, exp.Create))))
    for each in statements:
        assert each is not None
        database.execute(each.sql(dialect="duckdb"))
    text = query.rstrip(";")
    compiled = compile_view(text, schemas)
    warehouse = Warehouse(schemas, text, compiled, shared_database())
    warehouse.load({name: database.table(name).fetchall() for name in schemas})
    yield "build", _told((f"{_name(step)}: build", step.build) for step in compiled.build)
    yield "rows", _rows(warehouse, compiled)
    known: dict[frozenset[str], str] = {}
    for change in (body for name, body in sections if name == "change"):
        yield "change", change
        delta = _applied(database, change)
        warehouse.change(delta)
        changed = frozenset(delta)
        if changed not in known:
            steps = compiled.refresh(changed).steps
            known[changed] = _told(each for step in steps for each in _statements(step))
            yield "delta", known[changed]
        assert warehouse.stored() == warehouse.recomputed()
        yield "rows", _rows(warehouse, compiled)


def _schema(create: exp.Create) -> tuple[str, dict[str, str]]:
    columns = create.this.expressions
    types = {each.name: each.args["kind"].sql(dialect="spark").lower() for each in columns}
    return create.this.this.name, {name: kind.replace(" ", "") for name, kind in types.items()}


def _applied(database: duckdb.DuckDBPyConnection, change: str) -> dict[str, Delta]:
    """The rows that each table lost and gained."""
    found: dict[str, Delta] = {}
    for each in sqlglot.parse(change, read="spark"):
        assert isinstance(each, exp.Delete | exp.Insert)
        gone, come = found.setdefault(each.this.name, ([], []))
        rows = database.execute(f"{each.sql(dialect='duckdb')} RETURNING *").fetchall()
        found[each.this.name] = (
            ([*gone, *rows], come) if isinstance(each, exp.Delete) else (gone, [*come, *rows])
        )
    return found


def _statements(step: Step) -> Iterator[tuple[str, Statement]]:
    """The statements of a refresh, with their names."""
    match step:
        case Keyed():
            if step.merge is not None:
                yield f"{_name(step)}: merge", step.merge
            else:
                yield f"{_name(step)}: increments", step.increments
            yield f"{_name(step)}: recompute", step.recompute
        case Bag():
            yield f"{_name(step)}: change", step.change
        case Top():
            yield f"{_name(step)}: candidates", step.candidates or step.build


def _name(step: Step) -> str:
    return step.table or "the view"


def _told(statements: Iterator[tuple[str, Statement]]) -> str:
    """Statements in one format, each with its name above it."""
    return "\n\n".join(f"-- {name}\n{_formatted(each.sql)};" for name, each in statements)


def _formatted(text: str) -> str:
    return sqlglot.parse_one(text, read="spark").sql(dialect="spark", pretty=True)


def _rows(warehouse: Warehouse, compiled: Compiled) -> str:
    """The view's rows as comments, in order."""
    lines = [" | ".join(compiled.names), *(" | ".join(map(_value, r)) for r in warehouse.rows())]
    return "\n".join(f"-- {line}" for line in lines)


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
