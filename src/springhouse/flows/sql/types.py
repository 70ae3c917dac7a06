"""Which types does a flow have, and in which common type are two values compared or combined?

An Arrow type stands for each type of Spark. The rules are those of Spark's ANSI mode:

    whole numbers       the wider of the two
    with FLOAT          FLOAT with FLOAT; DOUBLE with any other number
    with DECIMAL        enough digits before and behind the point for both; a whole number counts as
                        DECIMAL(3|5|10|20, 0); DOUBLE with FLOAT or DOUBLE
    DATE, TIMESTAMP_NTZ, TIMESTAMP    the later in this list
    NULL                the other type
"""

import pyarrow as pa

BOOLEAN, STRING, BINARY, DATE, NULL = (
    pa.bool_(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.null(),
)
TINYINT, SMALLINT, INT, BIGINT = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
TIMESTAMP, TIMESTAMP_NTZ = pa.timestamp("us", tz="UTC"), pa.timestamp("us")

_NAMES = {
    TINYINT: "TINYINT",
    SMALLINT: "SMALLINT",
    INT: "INT",
    BIGINT: "BIGINT",
    FLOAT: "FLOAT",
    DOUBLE: "DOUBLE",
    BOOLEAN: "BOOLEAN",
    STRING: "STRING",
    BINARY: "BINARY",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMP_NTZ: "TIMESTAMP_NTZ",
    NULL: "VOID",
}
INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)
_NUMBERS = (*INTEGERS, FLOAT, DOUBLE)
_MOMENTS = (DATE, TIMESTAMP_NTZ, TIMESTAMP)
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
MOST_DIGITS = 38
_LEAST_SCALE = 6


def type_name(kind: pa.DataType) -> str:
    """The type as SQL names it.

    >>> type_name(pa.decimal128(12, 2)), type_name(pa.list_(pa.int64()))
    ('DECIMAL(12,2)', 'ARRAY<BIGINT>')
    """
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{f.name}: {type_name(f.type)}' for f in kind)}>"
    return _NAMES.get(kind, str(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether it is a type of numbers."""
    return kind in _NUMBERS or pa.types.is_decimal128(kind)


def is_fraction(kind: pa.DataType) -> bool:
    """Whether it is FLOAT or DOUBLE. These types have NaN and two zeros."""
    return kind in (FLOAT, DOUBLE)


def is_moment(kind: pa.DataType) -> bool:
    """Whether it is a date or a timestamp."""
    return kind in _MOMENTS


def is_plain(kind: pa.DataType) -> bool:
    """Whether a flow can compare, order and group its values. Nested types are not plain."""
    return kind in _NAMES or bool(pa.types.is_decimal128(kind))


def type_in_flows(kind: pa.DataType) -> pa.DataType | None:
    """The type that a flow uses for a column of this Arrow type; None if Spark has none."""
    if is_plain(kind) or pa.types.is_nested(kind):
        return kind
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return STRING
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return BINARY
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return TIMESTAMP if kind.tz else TIMESTAMP_NTZ
    return None


def decimal_of(kind: pa.DataType) -> pa.DataType:
    """The DECIMAL that holds all values of an integer type. A DECIMAL stays as it is."""
    return pa.decimal128(_DIGITS[kind], 0) if kind in _DIGITS else kind


def limit_digits(precision: int, scale: int) -> pa.DataType:
    """The DECIMAL of a result. If it has too many digits, it loses digits behind the point.

    >>> limit_digits(40, 10), limit_digits(76, 36)
    (Decimal128Type(decimal128(38, 8)), Decimal128Type(decimal128(38, 6)))
    """
    if precision <= MOST_DIGITS:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE)))


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that can hold values of both types; None if there is none."""
    if one == other or other == NULL:
        return one
    if one == NULL:
        return other
    if is_number(one) and is_number(other):
        return _common_number(one, other)
    if is_moment(one) and is_moment(other):
        return max(one, other, key=_MOMENTS.index)
    return None


def _common_number(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if one in _NUMBERS and other in _NUMBERS:
        wider = max(one, other, key=_NUMBERS.index)
        return DOUBLE if wider == FLOAT else wider
    if is_fraction(one) or is_fraction(other):
        return DOUBLE
    one, other = decimal_of(one), decimal_of(other)
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    # With more digits, Spark would drop digits of one of the values, so there is no common type.
    return pa.decimal128(whole + scale, scale) if whole + scale <= MOST_DIGITS else None


def compared_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type for comparing values of both types. A text is cast to the other side's type."""
    for text, read in ((one, other), (other, one)):
        if text == STRING and read not in (STRING, NULL, BINARY):
            if read in INTEGERS:
                return BIGINT
            if is_number(read):
                return DOUBLE
            return read if is_plain(read) else None
    result = common_type(one, other)
    return result if result is None or is_plain(result) else None
