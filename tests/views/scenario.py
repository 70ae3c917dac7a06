"""A view over a few rows, in a form that reads aloud.

    view = View(
        "SELECT shop, count(*) AS sales FROM sales GROUP BY shop",
        sales=("shop string, amount int", [("north", 5), (None, 7)]),
    )
    view.insert("sales", ("north", 1))
    assert view.rows == [(None, 1), ("north", 2)]

Every change refreshes the view, which must then equal a new run of its query.
"""

import re
from collections.abc import Sequence

from springhouse.views.compile import Compiled, compile_view
from springhouse.views.delta.statement import RelationRead, Statement
from warehouse import Delta, Row, Warehouse, shared_database

Table = tuple[str, Sequence[Row]]
"""The columns with their types, as in CREATE TABLE, and the rows."""


class View:
    """A view and the tables that it reads."""

    def __init__(self, query: str, **tables: Table) -> None:
        schemas = {name: schema(columns) for name, (columns, _) in tables.items()}
        self.compiled = compile_view(query, schemas)
        self._warehouse = Warehouse(schemas, query, self.compiled, shared_database())
        self._warehouse.load({name: rows for name, (_, rows) in tables.items()})
        self._compare()

    @property
    def rows(self) -> list[Row]:
        """The rows that a reader sees, in order; NULL comes first."""
        return self._warehouse.rows()

    def change(self, **changes: Delta) -> None:
        """Delete and insert rows of several tables at once."""
        self._warehouse.change(changes)
        self._compare()

    def insert(self, table: str, *rows: Row) -> None:
        self.change(**{table: ([], rows)})

    def delete(self, table: str, *rows: Row) -> None:
        self.change(**{table: (rows, [])})

    def update(self, table: str, old: Row, new: Row) -> None:
        self.change(**{table: ([old], [new])})

    def _compare(self) -> None:
        assert self._warehouse.stored() == self._warehouse.recomputed()


def schema(columns: str) -> dict[str, str]:
    """Columns and their types.

    >>> schema("k int, amount decimal(12,2)")
    {'k': 'int', 'amount': 'decimal(12,2)'}
    """
    # Do not split at the comma inside of `decimal(12,2)`.
    pairs = [each.split() for each in re.split(r",\s+", columns)]
    return dict(pairs)


def compiled(query: str, **tables: str) -> Compiled:
    """A compiled view without data."""
    return compile_view(query, {name: schema(columns) for name, columns in tables.items()})


def read(statement: Statement) -> dict[str, RelationRead]:
    """The relations that a statement reads, by name."""
    return {reading.name: reading for reading in statement.reads}
