"""How do the small relations of a statement come to Spark?

All at once. Each relation that is given to Spark costs a round trip, a temporary view and a piece
of a plan, ten milliseconds and more, and a statement reads up to a dozen. So they travel as one
table of one row, whose columns are lists of rows:

    orders_change                        lineitem_before
    [(7, 'open', +1), (9, 'paid', -1)]   [(7, 1, 10.00), (7, 2, 3.50)]

and each relation is unfolded where the statement names it. One without rows is not sent at all: it
is written as a query that gives none, so that Spark leaves out whatever would be joined with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, StructField, StructType

from springhouse.lake.delta.tables import quoted

GIVEN = "given"


@dataclass(frozen=True)
class LocalRows:
    """Rows for Spark, with the types that they have there."""

    rows: pa.Table
    shape: StructType

    @staticmethod
    def of(rows: pa.Table, shape: StructType | None) -> "LocalRows":
        return LocalRows(rows, shape if shape is not None else from_arrow_schema(rows.schema))


def send_together(relations: Mapping[str, LocalRows]) -> LocalRows:
    """All relations as one row: a list of rows for each."""
    lists = [_as_list(given.rows) for given in relations.values()]
    fields = [
        StructField(name, ArrayType(given.shape, containsNull=False))
        for name, given in relations.items()
    ]
    return LocalRows(pa.table(lists, names=list(relations)), StructType(fields))


def unfold(name: str, *, whole: bool) -> str:
    """One of the relations that came together, as a table in FROM.

    With `whole`, in one partition, as Spark has to be told: then nobody shuffles it.
    """
    hint = "/*+ COALESCE(1) */ " if whole else ""
    return f"(SELECT {hint}INLINE({quoted(name)}) FROM {{{GIVEN}}})"


def empty_relation(shape: StructType) -> str:
    """A relation without rows, as a table in FROM."""
    items = (
        f"CAST(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}"
        for field in shape.fields
    )
    # Braces are Spark's own where a text has parameters.
    text = ", ".join(items).replace("{", "{{").replace("}", "}}")
    return f"(SELECT {text} WHERE FALSE)"


def _as_list(rows: pa.Table) -> pa.Array:
    columns = [
        pa.concat_arrays(each.chunks) if each.chunks else _none(each) for each in rows.columns
    ]
    # A list per relation, whose fields keep the names that the rows have.
    all_of_them = pa.StructArray.from_arrays(columns, names=rows.schema.names)
    return pa.ListArray.from_arrays(pa.array([0, len(all_of_them)], pa.int32()), all_of_them)


def _none(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([], column.type)
