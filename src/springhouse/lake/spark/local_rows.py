"""How do the small relations of a statement reach Spark?

All at once. Each relation that Springhouse sends to Spark costs a round trip, a temporary view and
a piece of a plan: ten milliseconds and more. A statement reads up to a dozen relations. So they
travel as one table of one row, whose columns are lists of rows:

    orders_change                        lineitem_before
    [(7, 'open', +1), (9, 'paid', -1)]   [(7, 1, 10.00), (7, 2, 3.50)]

The statement unfolds each relation where it names it. A relation without rows is not sent. The
statement contains an empty query in its place, so that Spark leaves out the joins with it.
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
    """Rows for Spark, with their Spark types."""

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
    """One of the relations that were sent together, as a table in FROM.

    With `whole`, a hint tells Spark that the relation is one partition, so Spark does not shuffle
    it.
    """
    hint = "/*+ COALESCE(1) */ " if whole else ""
    return f"(SELECT {hint}INLINE({quoted(name)}) FROM {{{GIVEN}}})"


def empty_relation(shape: StructType) -> str:
    """A relation without rows, as a table in FROM."""
    items = (
        f"CAST(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}"
        for field in shape.fields
    )
    # In a text with parameters, Spark reads single braces as parameters.
    text = ", ".join(items).replace("{", "{{").replace("}", "}}")
    return f"(SELECT {text} WHERE FALSE)"


def _as_list(rows: pa.Table) -> pa.Array:
    columns = [
        pa.concat_arrays(each.chunks) if each.chunks else _none(each) for each in rows.columns
    ]
    # One list per relation. Its fields keep the column names of the rows.
    all_of_them = pa.StructArray.from_arrays(columns, names=rows.schema.names)
    return pa.ListArray.from_arrays(pa.array([0, len(all_of_them)], pa.int32()), all_of_them)


def _none(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([], column.type)
