"""Do new rows fit the columns of a table?

New rows may lack columns (they become NULL) or have new ones (the table gets them). They may have
narrower types (the values are widened) or wider types (the table's column is widened). A difference
that could lose a value is an error, because a warehouse that guesses is worse than one that stops.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from pyspark.sql import types as t
from pyspark.sql.types import StructType

from springhouse.errors import SchemaError
from springhouse.lake.delta.tables import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def parsed_schema(session: "SparkSession", ddl: str, where: str) -> StructType:
    """The columns that a text such as `id BIGINT, name STRING` declares."""
    try:
        return _parsed(session, ddl)
    except PySparkException as error:
        first = str(error).splitlines()[0]
        raise SchemaError(
            f"the columns can't be read: {first}", where=where, hint=f"They are: {ddl}"
        ) from error


@lru_cache(maxsize=512)
def _parsed(session: "SparkSession", ddl: str) -> StructType:
    # An empty DataFrame is the only parser that classic Spark and Spark Connect share.
    return session.createDataFrame([], ddl).schema


def align(rows: "DataFrame", schema: StructType, where: str) -> "DataFrame":
    """The rows with the columns of a table: missing columns are NULL, others at most widened."""
    given_schema = rows.schema
    if same_columns(given_schema, schema):
        return rows
    have = {name.lower(): name for name in given_schema.fieldNames()}
    columns = []
    for column in schema.fields:
        name = have.pop(column.name.lower(), None)
        if name is None:
            columns.append(sf.lit(None).cast(column.dataType).alias(column.name))
            continue
        given = given_schema[name].dataType
        if given != column.dataType and not _widens(given, column.dataType):
            wanted = column.dataType.simpleString().upper()
            raise SchemaError(
                f'the column "{column.name}" is {wanted} in the table '
                f"and {given.simpleString().upper()} in the new rows",
                where=where,
                hint=f"Cast it in the flow, CAST({column.name} AS {wanted}), "
                "or send it to a new table.",
            )
        columns.append(sf.col(quoted(name)).cast(column.dataType).alias(column.name))
    return rows.select(*columns)


def validate_types(schema: StructType, where: str) -> None:
    """Raise an error if our tables can't store the type of a column."""
    for column in schema.fields:
        kind = None if isinstance(column.dataType, t.NullType) else _unkept(column.dataType)
        if kind is not None:
            raise SchemaError(
                f'the column "{column.name}" has the type {kind}, which no table can keep',
                where=where,
                hint="Keep it as STRING, or leave it out.",
            )


def _unkept(kind: t.DataType) -> str | None:
    """A type, in a column or nested in it, that our tables can't store; None if all are fine."""
    if isinstance(
        kind, t.VariantType | t.YearMonthIntervalType | t.CalendarIntervalType | t.NullType
    ):
        return kind.simpleString().upper()
    if isinstance(kind, StructType) and not kind.fields:
        return "STRUCT<>"
    parts: list[t.DataType] = []
    if isinstance(kind, StructType):
        parts = [field.dataType for field in kind.fields]
    elif isinstance(kind, t.ArrayType):
        parts = [kind.elementType]
    elif isinstance(kind, t.MapType):
        parts = [kind.keyType, kind.valueType]
    return next((found for part in parts if (found := _unkept(part)) is not None), None)


def same_columns(one: StructType, other: StructType) -> bool:
    """Whether both have the same names and types in the same order, apart from nullability."""
    return [(f.name, f.dataType) for f in one.fields] == [
        (f.name, f.dataType) for f in other.fields
    ]


def widened(stored: StructType, wanted: StructType) -> StructType:
    """The columns of a table, each with its type in `wanted` if that type is wider."""
    given = {field.name.lower(): field.dataType for field in wanted.fields}
    return StructType(
        [
            t.StructField(f.name, kind if _outgrows(kind, f.dataType) else f.dataType, f.nullable)
            for f in stored.fields
            for kind in [given.get(f.name.lower(), f.dataType)]
        ]
    )


def _outgrows(given: object, stored: object) -> bool:
    """Whether the given type holds every stored value, with the same meaning."""
    # The moment of a date depends on the time zone of the session.
    is_moment = isinstance(stored, t.DateType) and isinstance(given, t.TimestampType)
    if given == stored or is_moment or isinstance(stored, t.StringType | t.NullType):
        return False
    return _widens(stored, given) and not _widens(given, stored)


def new_columns(rows: "DataFrame", schema: StructType) -> StructType:
    """The columns of the rows that the table does not have yet."""
    have = {name.lower() for name in schema.fieldNames()}
    return StructType([f for f in rows.schema.fields if f.name.lower() not in have])


_DIGITS: dict[type[t.DataType], int] = {
    t.ByteType: 3,
    t.ShortType: 5,
    t.IntegerType: 10,
    t.LongType: 19,
}
"""The largest number of digits of each integer type, the narrowest type first."""


def _widens(given: object, wanted: object) -> bool:
    """Whether every value of one type is a value of the other."""
    match given:
        case t.NullType():
            return True
        case t.ByteType() | t.ShortType() | t.IntegerType() | t.LongType():
            return _widens_whole_number(given, wanted)
        case t.DecimalType():
            return isinstance(wanted, t.DecimalType) and _widens_decimal(given, wanted)
        case t.FloatType():
            return isinstance(wanted, t.DoubleType)
        case t.StringType():
            return isinstance(wanted, t.StringType)
        case t.DateType():
            return isinstance(wanted, t.TimestampType | t.TimestampNTZType)
        case t.StructType() | t.ArrayType() | t.MapType():
            return _nested_equal(given, wanted)
        case _:
            return False


def _widens_whole_number(given: t.DataType, wanted: object) -> bool:
    digits = _DIGITS[type(given)]
    match wanted:
        case t.ByteType() | t.ShortType() | t.IntegerType() | t.LongType():
            return digits <= _DIGITS[type(wanted)]
        case t.DecimalType():
            return wanted.precision - wanted.scale >= digits
        case t.DoubleType():
            return not isinstance(given, t.LongType)
        case _:
            return False


def _widens_decimal(given: t.DecimalType, wanted: t.DecimalType) -> bool:
    whole_digits = given.precision - given.scale
    return wanted.precision - wanted.scale >= whole_digits and wanted.scale >= given.scale


def _nested_equal(given: object, wanted: object) -> bool:
    """Whether two nested types are equal, apart from nullability."""
    return getattr(given, "simpleString", str)() == getattr(wanted, "simpleString", str)()


def with_declared_columns(rows: "DataFrame", columns: str | None, where: str) -> "DataFrame":
    """The rows with the columns that a view declares, by position, cast to the declared types."""
    if columns is None:
        return rows
    schema = parsed_schema(rows.sparkSession, columns, where)
    if len(schema.fields) != len(rows.columns):
        raise SchemaError(
            f"{len(schema.fields)} columns are declared and the query gives {len(rows.columns)}",
            where=where,
            hint=f"The query gives: {', '.join(rows.columns)}",
        )
    return rows.select(
        *(
            sf.col(quoted(name)).cast(field.dataType).alias(field.name)
            for name, field in zip(rows.columns, schema.fields, strict=True)
        )
    )
