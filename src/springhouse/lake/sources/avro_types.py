"""Which types of Avro and of tables correspond to each other?

`spark_schema` translates an Avro schema as Spark's own Avro reader would; `avro_schema` writes one
for the columns of a table. `fastavro` reads and writes the records. Spark's reader would need one
more jar, and would hide which record of a file is bad.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from springhouse.errors import LakeError, SchemaError

_PLAIN: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
    "fixed": BinaryType(),
    "enum": StringType(),
}
_LOGICAL: Mapping[str, DataType] = {
    "date": DateType(),
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-millis": TimestampNTZType(),
    "local-timestamp-micros": TimestampNTZType(),
    "uuid": StringType(),
}


def fastavro() -> Any:
    """The module `fastavro`."""
    try:
        return import_module("fastavro")
    except ImportError as error:
        raise LakeError(
            "the Avro library is not installed",
            hint="pip install 'springhouse[avro]'",
        ) from error


def spark_schema(avro: Any) -> StructType:
    """The columns of records with this schema, as `fastavro` parsed it."""
    kind = _spark_type(avro, {})
    if not isinstance(kind, StructType):
        raise SchemaError("the Avro schema is not a record")
    return kind


def _spark_type(avro: Any, named: dict[str, DataType]) -> DataType:
    if isinstance(avro, list):
        choices = [each for each in avro if each != "null"]
        if len(choices) != 1:
            raise SchemaError(
                f"an Avro union of {len(choices)} types has no type in a table",
                hint="Only a union of null and one other type can be a column.",
            )
        return _spark_type(choices[0], named)
    if isinstance(avro, str):
        kind = _PLAIN.get(avro) or named.get(avro)
        if kind is None:
            raise SchemaError(f'the Avro type "{avro}" is not known, or holds itself')
        return kind
    return _complex_type(avro, named)


def _complex_type(avro: Mapping[str, Any], named: dict[str, DataType]) -> DataType:
    logical, plain = str(avro.get("logicalType")), avro["type"]
    kind: DataType
    if logical == "decimal":
        kind = DecimalType(avro["precision"], avro.get("scale", 0))
    elif logical in _LOGICAL:
        kind = _LOGICAL[logical]
    elif plain in ("record", "error"):
        kind = StructType(
            [StructField(each["name"], _spark_type(each["type"], named)) for each in avro["fields"]]
        )
    elif plain == "array":
        kind = ArrayType(_spark_type(avro["items"], named))
    elif plain == "map":
        kind = MapType(StringType(), _spark_type(avro["values"], named))
    else:
        kind = _spark_type(plain, named)
    if "name" in avro:
        named[avro["name"]] = kind
    return kind


def avro_schema(columns: pa.Schema, name: str) -> dict[str, Any]:
    """The schema of records with these columns, each of which may be NULL."""
    return _record(list(columns), name)


def _record(fields: list[pa.Field], name: str) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": f.name, "type": ["null", _avro_type(f.type, f"{name}_{f.name}")]}
            for f in fields
        ],
    }


def _avro_type(kind: pa.DataType, name: str) -> Any:
    is_a = pa.types
    if is_a.is_struct(kind):
        return _record([kind.field(at) for at in range(kind.num_fields)], name)
    if is_a.is_map(kind):
        return {"type": "map", "values": ["null", _avro_type(kind.item_type, f"{name}_value")]}
    if is_a.is_list(kind) or is_a.is_large_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type, f"{name}_item")]}
    return _flat_avro_type(kind)


def _flat_avro_type(kind: pa.DataType) -> Any:
    """The Avro type of a value without values inside; text for what Avro has no type for."""
    is_a = pa.types
    if is_a.is_decimal(kind):
        digits = {"precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", "logicalType": "decimal", **digits}
    if is_a.is_timestamp(kind):
        local = "" if kind.tz else "local-"
        return {"type": "long", "logicalType": f"{local}timestamp-micros"}
    if is_a.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if is_a.is_integer(kind):
        return "long" if kind.bit_width == 64 else "int"
    if is_a.is_floating(kind):
        return "double" if kind.bit_width == 64 else "float"
    if is_a.is_boolean(kind):
        return "boolean"
    return "bytes" if is_a.is_binary(kind) or is_a.is_large_binary(kind) else "string"
