"""Does SQL in flows give Spark's results? For all types, with NULL, NaN, -0.0 and extremes.

The tests try every function and operator with every combination of types. They skip an expression
that a flow refuses. For an accepted expression, a flow must give Spark's type, and Spark's value
for every row. A flow must also fail for the same rows as Spark.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import product
from math import inf, nan
from random import Random

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import springhouse
from springhouse.flows.declare import Draft
from springhouse.flows.flow_graph import FlowError
from springhouse.flows.flow_rows import Rows
from springhouse.flows.row_expressions import column, term_of
from springhouse.flows.sql.types import type_name

SAMPLES: dict[pa.DataType, list[object]] = {
    pa.int8(): [None, 0, 1, -1, 5, -7, 127, -128],
    pa.int16(): [None, 0, 1, -1, 25, -15, 32767, -32768],
    pa.int32(): [None, 0, 2, -1, 5, -45, 2**31 - 1, -(2**31)],
    pa.int64(): [None, 0, 3, -1, 10, -2, 2**63 - 1, -(2**63)],
    pa.float32(): [None, 0.0, -0.0, nan, inf, 2.5, -0.125, 3.4028234663852886e38],
    pa.float64(): [None, 0.0, -0.0, nan, -inf, 2.5, -1.005, 1.7976931348623157e308],
    pa.decimal128(5, 2): [None, "0.00", "0.01", "-1.25", "2.50", "10.00", "999.99", "-999.99"],
    pa.decimal128(15, 4): [None, "0", "1.0000", "-2.5000", "0.0001", "7.1250", "9" * 11, "-0.0001"],
    pa.decimal128(18, 6): [None, "0", "1", "-1.000001", "0.000001", "3.3", "9" * 12, "-2.5"],
    pa.decimal128(38, 10): [None, "0", "1", "-1.5", "0.0000000001", "3", "9" * 28, "-" + "9" * 28],
    pa.decimal128(38, 0): [None, "0", "1", "-1", "25", "3", "9" * 38, "-" + "9" * 38],
    pa.bool_(): [None, True, False, True, False, None, True, False],
    pa.string(): [None, "", " a ", "Straße İ ΑΣ", "12", "-1.50", "2024-02-29", "a%b_c\\😀"],
    pa.binary(): [None, b"", b"\x00", b"\xff\xfe", b"abc", b"abd", b" a ", b"12"],
    pa.date32(): [
        None,
        date(1970, 1, 1),
        date(1969, 12, 31),
        date(1, 1, 1),
        date(9999, 12, 31),
        date(2024, 2, 29),
        date(2000, 3, 1),
        date(1582, 10, 15),
    ],
    pa.timestamp("us", tz="UTC"): [
        None,
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 30, 15, 500_000, tzinfo=UTC),
        datetime(2000, 3, 1, tzinfo=UTC),
        datetime(1900, 1, 1, 0, 0, 1, 10, tzinfo=UTC),
    ],
}
SAMPLES[pa.timestamp("us")] = [
    None if moment is None else moment.replace(tzinfo=None)  # type: ignore[attr-defined]
    for moment in SAMPLES[pa.timestamp("us", tz="UTC")]
]
TYPES = list(SAMPLES)


def values_of(kind: pa.DataType) -> list[object]:
    if pa.types.is_decimal(kind):
        return [None if v is None else Decimal(str(v)) for v in SAMPLES[kind]]
    return SAMPLES[kind]


def every_pair() -> pa.RecordBatch:
    """Two columns of each type, x0, y0, x1, …: all pairs of values of any two types."""
    columns: dict[str, pa.Array] = {}
    for number, kind in enumerate(TYPES):
        values = values_of(kind)
        columns[f"x{number}"] = pa.array([v for v in values for _ in values], kind)
        columns[f"y{number}"] = pa.array([v for _ in values for v in values], kind)
    return pa.record_batch(columns)


PAIRS = every_pair()
ONES = PAIRS.take(pa.array(range(0, PAIRS.num_rows, 8)))


@dataclass
class Tried:
    """A flow's result for an expression: its type, the value of each row, and rows that fail."""

    sql: str
    type: pa.DataType
    values: list[object]
    fails: list[bool]


def tried(sql: str, rows: pa.RecordBatch) -> Tried | None:
    """A flow's result for an expression; None if the flow refuses it."""
    try:
        term = term_of(sql, rows.schema, "test")
    except FlowError:
        return None
    if term.type == pa.null():
        return None
    try:
        made = column(term.compute(rows), rows.num_rows)
        assert made.type == term.type, (sql, made.type, term.type)
        return Tried(sql, term.type, python_values(made), [False] * rows.num_rows)
    except FAILURES:
        pass
    values: list[object] = []
    fails = []
    for number in range(rows.num_rows):
        try:
            values += python_values(column(term.compute(rows.slice(number, 1)), 1))
            fails.append(False)
        except FAILURES:
            values.append(None)
            fails.append(True)
    return Tried(sql, term.type, values, fails)


# Spark raises one of these; which one depends on the place where Spark notices the error.
SPARK_FAILS = (PySparkException, Py4JJavaError)


def python_values(values: pa.Array | pa.ChunkedArray) -> list[object]:
    """Values for comparison. Python's own dates only cover the years 1 to 9999."""
    if pa.types.is_date(values.type):
        return values.cast(pa.int32()).to_pylist()
    return (values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values).to_pylist()


FAILURES = (pa.ArrowException, ArithmeticError, ValueError, FlowError)


@pytest.fixture(scope="module")
def ansi(spark: SparkSession) -> SparkSession:
    """A session with the settings that flows guarantee: ANSI, in UTC."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.ansi.enabled", "true")
    return session


@pytest.fixture(scope="module")
def interpreted(ansi: SparkSession) -> SparkSession:
    """Without generated code: it takes longer to compile than thousands of rows to compute."""
    session = ansi.newSession()
    for name, value in (
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.sql.ansi.enabled", "true"),
        ("spark.sql.codegen.wholeStage", "false"),
        ("spark.sql.codegen.factoryMode", "NO_CODEGEN"),
    ):
        session.conf.set(name, value)
    return session


def spelled_out(value: object) -> object:
    """A value that is equal only to itself: -0.0 is not 0.0, NaN is NaN."""
    return repr(value) if isinstance(value, float | dict) else value


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    return spark.createDataFrame(table, schema)


def differences(spark: SparkSession, rows: pa.RecordBatch, all_tried: Sequence[Tried]) -> list[str]:
    """The expressions and rows for which Spark gives another result."""
    found: list[str] = []
    for first in range(0, len(all_tried), 150):
        chosen = all_tried[first : first + 150]
        good = [[not each.fails[n] for each in chosen] for n in range(rows.num_rows)]
        table = pa.table([*rows.columns, pa.array(good)], names=[*rows.schema.names, "good"])
        frame = frame_of(spark, table)
        texts = [
            f"CASE WHEN good[{n}] THEN ({each.sql}) END AS c{n}" for n, each in enumerate(chosen)
        ]
        try:
            made = frame.selectExpr(*texts).toArrow()
        except SPARK_FAILS:  # one of them: find out which
            made = None
        for number, each in enumerate(chosen):
            try:
                given = (
                    frame.selectExpr(texts[number]).toArrow().column(0)
                    if made is None
                    else made.column(number)
                )
            except SPARK_FAILS as error:
                found.append(f"{each.sql}: Spark fails: {str(error).splitlines()[0][:200]}")
                continue
            found += _difference(each, given, rows)
    return found


def _difference(each: Tried, given: pa.ChunkedArray, rows: pa.RecordBatch) -> list[str]:
    if type_name(given.type) != type_name(each.type):
        return [f"{each.sql}: {type_name(each.type)} here, {type_name(given.type)} in Spark"]
    for number, value in enumerate(python_values(given)):
        if spelled_out(value) != spelled_out(each.values[number]) and not each.fails[number]:
            row = rows.slice(number, 1).to_pylist()[0]
            used = {name: v for name, v in row.items() if name in each.sql.replace("(", " ")}
            return [f"{each.sql}: {each.values[number]!r} here, {value!r} in Spark, of {used}"]
    return []


def fails_in_spark(spark: SparkSession, rows: pa.RecordBatch, sql: str) -> bool:
    try:
        frame_of(spark, pa.Table.from_batches([rows])).selectExpr(sql).toArrow()
    except SPARK_FAILS:
        return True
    return False


def wrongly_failed(
    spark: SparkSession, rows: pa.RecordBatch, all_tried: Sequence[Tried], most: int = 12
) -> list[str]:
    """Some randomly chosen rows for which a flow fails and Spark does not."""
    failing = [(each, n) for each in all_tried for n, fails in enumerate(each.fails) if fails]
    # A flow refuses digits that depend on the version of Java. Spark returns some of them.
    failing = [(each, n) for each, n in failing if "round(" not in each.sql]
    chosen = Random(7).sample(failing, min(most, len(failing)))
    return [
        f"{each.sql} fails here, and not in Spark, of row {number}"
        for each, number in chosen
        if not fails_in_spark(spark, rows.slice(number, 1), each.sql)
    ]


SIGNS = ("+", "-", "*", "/", "%", "DIV", "&", "|", "^", "||")
SIGNS += ("=", "<>", "<", ">=", "<=>")
BINARY = [
    *(f"{{x}} {sign} {{y}}" for sign in SIGNS),
    "{x} BETWEEN {y} AND {x}",
    "{x} IN ({y}, {x})",
    "coalesce({x}, {y})",
    "nullif({x}, {y})",
    "greatest({x}, {y})",
    "least({x}, {y})",
    "if({y} IS NULL, {x}, {y})",
    "CASE {x} WHEN {y} THEN {x} ELSE {y} END",
    "replace({x}, {y}, 'z')",
    "startswith({x}, {y})",
    "endswith({x}, {y})",
    "contains({x}, {y})",
    "substring({x}, {y})",
    "date_add({x}, {y})",
    "datediff({x}, {y})",
    "{x} AND {y}",
    "{x} OR {y}",
]


def test_every_operator_of_every_two_types(interpreted: SparkSession) -> None:
    found = [
        each
        for text in BINARY
        for one, other in product(range(len(TYPES)), repeat=2)
        if (each := tried(text.format(x=f"x{one}", y=f"y{other}"), PAIRS)) is not None
    ]
    assert len(found) > 2400
    assert differences(interpreted, PAIRS, found) == []
    assert wrongly_failed(interpreted, PAIRS, found) == []


NAMES = (
    "negative",
    "positive",
    "abs",
    "sqrt",
    "sign",
    "signum",
    "floor",
    "ceil",
    "ceiling",
    "round",
    "bround",
    "isnull",
    "isnotnull",
    "isnan",
    "upper",
    "lower",
    "ucase",
    "lcase",
    "length",
    "len",
    "char_length",
    "trim",
    "ltrim",
    "rtrim",
    "year",
    "quarter",
    "month",
    "day",
    "dayofmonth",
    "dayofyear",
    "dayofweek",
    "weekday",
    "hour",
    "minute",
    "second",
    "to_date",
    "date",
    "concat",
    "coalesce",
)
UNARY = [
    *(f"{name}({{x}})" for name in NAMES),
    "- {x}",
    "~ {x}",
    "NOT {x}",
    "{x} IS NULL",
    "{x} IS NOT NULL",
    "{x} IS TRUE",
    "{x} IS NOT FALSE",
    "{x} IS UNKNOWN",
    "round({x}, 1)",
    "round({x}, 2)",
    "round({x}, -1)",
    "round({x}, -3)",
    "bround({x}, 1)",
    "bround({x}, -1)",
    "{x} + 1",
    "{x} - 1Y",
    "2 * {x}",
    "{x} * 1.50",
    "{x} / 4",
    "{x} / 0.3",
    "1 / {x}",
    "{x} % 3",
    "{x} % 0.7",
    "{x} % -2.5D",
    "{x} + 1L",
    "{x} + 1.5F",
    "{x} > 1",
    "{x} = -1",
    "{x} < 2.5",
    "{x} >= '12'",
    "{x} = '2024-02-29'",
    "{x} > DATE '2000-01-01'",
    "{x} <= TIMESTAMP '2024-02-29 12:30:15.5'",
    "{x} < TIMESTAMP_NTZ '2024-02-29 12:30:15.5'",
    "{x} IN (1, -1)",
    "{x} NOT IN (1, -1)",
    "{x} NOT IN (1, NULL)",
    "{x} IN (0, 2.5)",
    "{x} IN ('', '12')",
    "{x} IN (-0.0D, 2.5D)",
    "{x} IN (CAST('NaN' AS DOUBLE), 0)",
    "{x} BETWEEN -1 AND 5",
    "{x} NOT BETWEEN 0 AND 2.5",
    "nullif({x}, 0)",
    "coalesce({x}, 0)",
    "coalesce({x}, NULL)",
    "{x} + NULL",
    "{x} = NULL",
    "{x} <=> NULL",
    "greatest({x}, 0, NULL)",
    "{x} LIKE '%a%'",
    "{x} NOT LIKE '%a%'",
    "{x} LIKE '_a_'",
    "{x} LIKE 'a\\%b%'",
    "{x} LIKE 'a!%b!_%' ESCAPE '!'",
    "{x} LIKE ''",
    "{x} LIKE '%'",
    "{x} LIKE '%é_😀'",
    "substring({x}, 2)",
    "substring({x}, -3, 2)",
    "substring({x}, 0, 2)",
    "substring({x}, 2, -1)",
    "substring({x} FROM 2 FOR 3)",
    "trim(BOTH ' a' FROM {x})",
    "trim(LEADING 'S ' FROM {x})",
    "trim(TRAILING '9Σ' FROM {x})",
    "ltrim('-', {x})",
    "rtrim('0', {x})",
    "trim('' FROM {x})",
    "trim('-', {x})",
    "replace({x}, 'a')",
    "replace({x}, '', 'b')",
    "{x} || '!'",
    "1 || {x}",
    "EXTRACT(YEAR FROM {x})",
    "{x} + 31",
    "{x} - 1",
    "date_add({x}, -365)",
    "datediff({x}, DATE '2000-01-01')",
    "CASE WHEN {x} IS NULL THEN 1 ELSE 2.5 END",
    "CASE WHEN {x} = 0 THEN 0 ELSE 10 / {x} END",
    "if({x} = 0, NULL, 10 % {x})",
    "{x} <> 0 AND 10 / {x} > 1",
    "{x} = 0 OR 10 DIV {x} > 1",
    "coalesce({x}, 1 / 0)",
    "{x} <= 0.5F",
    "{x} > 2.5D",
    "{x} IS DISTINCT FROM 1",
    "mod({x}, 3)",
    "concat({x}, 1)",
    "nvl2({x}, 1, 2.5)",
]


def test_every_function_of_every_type(ansi: SparkSession) -> None:
    """With the code that Spark generates, because a cluster runs that code."""
    found = [
        each
        for text in UNARY
        for number in range(len(TYPES))
        if (each := tried(text.format(x=f"x{number}"), ONES)) is not None
    ]
    assert len(found) > 800
    assert differences(ansi, ONES, found) == []
    assert wrongly_failed(ansi, ONES, found) == []


CASTS = "TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL(3,1) DECIMAL(10) DECIMAL(15,10)"
CASTS += " DECIMAL(38,18) BOOLEAN STRING BINARY DATE TIMESTAMP TIMESTAMP_NTZ"
TEXTS = """0|1|-1|+5|127|128|-129| 12 |1.5|-.5|5.|1e3|1E-2|12d|NaN|nan|-Infinity|inf|Inf |0x10|abc
1_000|9223372036854775807|9223372036854775808|99999999999999999999999999999999999999|1e400|1e-400
true|T|yes|n|off|2024|2024-2|2024-02-29|2023-02-29|2024-2-9 x|2024-02-29T|0001-01-01|+2024-01-01
2024-02-29 12:30:15|2024-02-29T12:30:15.123456789|2024-02-29 12:30:15Z|2024-02-29 12:30:15+01:00
2024-02-29 12:30|2024-02-29 24:00:00|2024-13-01|12:30|1.005|2.5|-2.5|0.15|1234567.895
0x1p3|-0X1.8P1d|0x1p99999|+nan|-nan|+NaN|-inf|NaNd|Infinity|0e99|0e37|1e38|0.0e-50|1e-50
2024-02-29 12|2024-02-29 12:|2024-02-29 12:30Z|2024-02-29 1:2:3.|2024-02-29 1:2:3.1234567890123
2024-02-29 1:2:3GMT|2024-02-29 1:2:3 UT+1|2024-02-29 1:2:3+1|2024-02-29 1:2:3+0130
2024-02-29 1:2:3+1:3|2024-02-29 1:2:3+18:01|2024-02-29 1:2:3+01:60
2024-02-29 1:2:3-18:00|2024-02-29 1:2:3+01:02:03"""


def texts() -> pa.RecordBatch:
    spellings = [each for line in TEXTS.splitlines() for each in line.split("|")]
    spellings += ["", " ", "\t7\n", "\u30007", "1\u00a0", "७"]
    spellings += [f"{text}\x7f" for text in ("1", "1.5", "true", "2024-02-29", "2024-02-29 1:2:3")]
    return pa.record_batch({"x0": pa.array([*spellings, None], pa.string())})


def test_every_cast(ansi: SparkSession) -> None:
    found, of_texts = [], []
    for kind, function in product(CASTS.split(), ("CAST", "TRY_CAST")):
        for number in range(len(TYPES)):
            each = tried(f"{function}(x{number} AS {kind})", ONES)
            found += [each] if each is not None else []
        each = tried(f"{function}(x0 AS {kind})", texts())
        of_texts += [each] if each is not None else []
    assert len(found) > 300
    assert differences(ansi, ONES, found) == []
    assert differences(ansi, texts(), of_texts) == []
    assert wrongly_failed(ansi, ONES, found) == []
    assert wrongly_failed(ansi, texts(), of_texts, 60) == []


def test_letters_of_every_script(ansi: SparkSession) -> None:
    chosen = [
        chr(n) for n in range(0x1F000) if not 0x3400 <= n < 0xA490 and not 0xA980 <= n < 0xFB00
    ]
    words = [text.format(letter) for letter in chosen for text in ("{}", "A{}")]
    rows = pa.record_batch({"x0": pa.array(words)})
    found = [each for name in ("upper", "lower", "length") if (each := tried(f"{name}(x0)", rows))]
    assert len(found) == 3
    assert differences(ansi, rows, found) == []


def test_digits_of_fractions(ansi: SparkSession) -> None:
    """Rounding depends on the digits of a double, so try many digits, sizes, and halves."""
    chance = Random(11)
    numbers = [chance.uniform(-1, 1) * 10.0 ** chance.randint(-12, 22) for _ in range(800)]
    numbers += [chance.randint(-(10**9), 10**9) / 1000 for _ in range(800)]
    numbers += [chance.randint(-(10**7), 10**7) * 10.0 ** chance.randint(-8, 8) for _ in range(800)]
    numbers += [(2 * chance.randint(0, 2**20) + 1) / 2 ** chance.randint(1, 20) for _ in range(800)]
    small = pa.array(numbers, pa.float64()).cast(pa.float32(), safe=False)
    rows = pa.record_batch({"x0": pa.array(numbers, pa.float64()), "x1": small})
    wanted = [
        *(f"round(x0, {places})" for places in (0, 1, 2, 5, -2)),
        "bround(x0, 2)",
        "CAST(x0 AS DECIMAL(38,4))",
        "CAST(x1 AS DECIMAL(38,2))",
        "CAST(x0 AS BIGINT)",
        "CAST(x0 AS FLOAT)",
        "x0 / 3",
        "x0 % 0.7D",
        "sqrt(abs(x0))",
        "floor(x0)",
        "ceil(x1)",
    ]
    found = [each for sql in wanted if (each := tried(sql, rows)) is not None]
    assert len(found) == len(wanted)
    assert max(each.fails.count(True) for each in found) < 800, "only the largest are refused"
    assert differences(ansi, rows, found) == []


KEYS = [nan, -0.0, 0.0, None, inf, -inf, 1.5, -1.5, nan, 0.0]


def keyed_rows() -> pa.Table:
    """Groups with NaN and both zeros as keys and as values, and one column of each type."""
    chance = Random(3)
    count = 120
    columns: dict[str, pa.Array] = {
        "id": pa.array(range(count), pa.int64()),
        "k": pa.array([chance.choice(KEYS) for _ in range(count)], pa.float64()),
        "g": pa.array([chance.choice(["a", "b", None]) for _ in range(count)]),
        "f": pa.array([chance.choice(KEYS) for _ in range(count)], pa.float32()),
        "s": pa.array([{"n": n % 5, "T": str(n)} if n % 7 else None for n in range(count)]),
    }
    for number, kind in enumerate(TYPES):
        values = values_of(kind)
        columns[f"v{number}"] = pa.array([chance.choice(values) for _ in range(count)], kind)
    return pa.table(columns)


def made_by(rows: pa.Table, declare: Callable[[Rows], Rows]) -> pa.Table:
    @springhouse.flow
    def tested(flow: Draft) -> None:
        declare(flow.read("rows")).write("made")

    return tested.run({"rows": rows}, pack_bytes=700)["made"]


def in_digits(table: pa.Table) -> list[tuple[object, ...]]:
    columns = [[spelled_out(v) for v in python_values(c)] for c in table.columns]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("keys", [["k"], ["g"], ["f", "g"], []], ids=str)
def test_aggregates(keys: list[str], ansi: SparkSession) -> None:
    """Without sums of fractions: they depend on the order of rows, in Spark too."""
    rows = keyed_rows()
    measures = {"rows": "count(*)", "both": "count(k, g)", "all_of_it": "count(f, k, v3)"}
    for number, kind in enumerate(TYPES):
        measures |= {f"n{number}": f"count(v{number})"}
        measures |= {f"{word}{number}": f"{word}(v{number})" for word in ("min", "max")}
        if pa.types.is_decimal(kind) and kind.precision < 20:
            measures |= {f"{word}{number}": f"{word}(v{number})" for word in ("sum", "avg")}
        if pa.types.is_integer(kind) and kind.bit_width < 64:
            measures |= {f"{word}{number}": f"{word}(v{number})" for word in ("sum", "avg")}
    made = made_by(rows, lambda read: read.aggregate(keys, **measures))
    texts = [*keys, *(f"{sql} AS {name}" for name, sql in measures.items())]
    view = "rows_to_aggregate"
    frame_of(ansi, rows).createOrReplaceTempView(view)
    group = f"GROUP BY {', '.join(keys)}" if keys else ""
    wanted = ansi.sql(f"SELECT {', '.join(texts)} FROM {view} {group}").toArrow()
    assert [type_name(kind) for kind in made.schema.types] == [
        type_name(kind) for kind in wanted.schema.types
    ]

    def shown(table: pa.Table) -> list[str]:
        # If a group holds both zeros, Spark returns the one that comes first.
        return sorted(repr(row).replace("'-0.0'", "'0.0'") for row in in_digits(table))

    assert shown(made) == shown(wanted)


ORDERS = [
    ("k DESC NULLS LAST", "id"),
    ("k DESC, id",),
    ("f NULLS LAST", "id DESC"),
    ("g ASC NULLS FIRST, k DESC NULLS FIRST, id",),
    ("s.n DESC", "s.t", "id"),
    ("k + 1 DESC", "length(g) NULLS LAST, id % 3, id DESC"),
    *((f"v{number} DESC", "id") for number in range(len(TYPES))),
    *((f"v{number} NULLS LAST", "id") for number in range(len(TYPES))),
]


def test_orders(interpreted: SparkSession) -> None:
    rows = keyed_rows()
    frame = frame_of(interpreted, rows)
    frame.createOrReplaceTempView("rows_to_sort")
    # One query covers all orders: it gives the position of each row in each order.
    places = ", ".join(
        f"row_number() OVER (ORDER BY {', '.join(keys)}) AS o{n}" for n, keys in enumerate(ORDERS)
    )
    wanted = interpreted.sql(f"SELECT id, {places} FROM rows_to_sort").toArrow().to_pylist()
    for number, keys in enumerate(ORDERS):
        made = made_by(rows, partial(_sorted, keys=keys))
        by_place = sorted(wanted, key=lambda row, name=f"o{number}": row[name])
        assert made["id"].to_pylist() == [row["id"] for row in by_place], keys


def _sorted(read: Rows, keys: tuple[str, ...]) -> Rows:
    return read.sort(*keys)


LITERALS = r"""
0|-0|- 1|00012|-128Y|127y|32767S|-2147483648|2147483648|-9223372036854775808|9223372036854775808
-0.0D|- 0.0D|-(0.0D)|-0e0|0.00|0.|.5|00.50|-.5|1E2|1e-3|-1.5e+2D|4.9e-324|2e-324
1.7976931348623157e308|-12345678901234567890123456789012345678|-12345678901234567890123456789.5
-0.00000000000000000000000000001|1.00000017881393432617187499F|1.00000017881393432617187501F
1.000000178813934326171875F|1e-46F|0.1F
1e3BD|1.5e3BD|1e-3BD|0e5BD|0.000BD|-5BD|1e400|-1e400|1e400D|1e39F|-1e50F|1.0L|1e2S|128Y|1e39BD
'\u00e9'|'\uD83D\uDE00'|'\U0001F600'|'\101\0\x\Z'|'it''s'|'a' "b"|r'a\b'|'\%\_\\%'|X'1'|X'0aFF'
TIMESTAMP '2024-02-29 12:30+01:00'|TIMESTAMP_NTZ '2024-02-29 12:30:00+19:00'|TIMESTAMP '2024-02'
TIMESTAMP '2024-02-29 12:30:15.1234567 GMT+1'|TIMESTAMP '2024-02-29T1:2:3+01:30:15'
DATE '2024-2-9 x'|DATE 'epoch'|TIMESTAMP 'now'|CAST('epoch' AS DATE)|TRY_CAST('today' AS DATE)
to_date(' Epoch ')|TRY_CAST('epoch' AS DATE) IS NULL|TIMESTAMP '1970-01-01 00:00:00' = 'epoch'
trim(BOTH 'a')|CAST(1 AS INT) + 1.5|1::INT * 0.25|+1 + 1.5|(1) + 1.5|-(1) + 1.5|- -1 + 1.5
round(1) + 1.5|1Y * 0.5|1S * 0.5|if(true, 1, 2) + 1.5|coalesce(1) + 1.5|abs(-1) % 1.5|1 + 1.5
1.5 / 100L|floor(CAST(5 AS DECIMAL(5,0)))|ceil(CAST(5 AS DECIMAL(38,0)))|ceil(0.99)|floor(-0.99)
CAST(12345678901234567 AS DECIMAL(17,3)) % 0.0000000000000000000000000000000000001
0.27615659048997178638376255082592137689 / 56452206806359478012892209251300411439|1e37BD % 0.1
99999999999999999999999999999999999999 % 0.5|1e20BD % 0.0000000000000000007
"""


def test_what_stands_in_the_text(ansi: SparkSession) -> None:
    """Literals, and expressions of literals: a flow gives Spark's value or refuses them."""
    rows = ONES.slice(0, 1)
    texts = [text for line in LITERALS.strip().splitlines() for text in line.split("|")]
    found = [each for sql in texts if (each := tried(sql, rows)) is not None]
    assert len(found) > 70
    good = [each for each in found if not each.fails[0]]
    assert differences(ansi, rows, good) == []
    assert wrongly_failed(ansi, rows, found, 20) == []


FAILS = "(1 DIV x2)"
COMPUTED = [
    *(f"x1 {sign} {FAILS}" for sign in SIGNS),
    *(f"{FAILS} {sign} x1" for sign in SIGNS),
    *(f"x6 {sign} CAST({FAILS} AS DECIMAL(5,1))" for sign in "+-*/%"),
    *(f"CAST({FAILS} AS DECIMAL(5,1)) {sign} x6" for sign in "+-*/%"),
    *(f"x11 {word} {FAILS} > 0" for word in ("AND", "OR")),
    *(f"{FAILS} > 0 {word} x11" for word in ("AND", "OR")),
    f"x1 IN ({FAILS}, 1)",
    f"{FAILS} IN (x1, NULL)",
    f"x1 BETWEEN {FAILS} AND x1",
    f"coalesce(x1, {FAILS})",
    f"nvl2(x1, {FAILS}, 1)",
    f"nullif({FAILS}, x1)",
    f"greatest(x1, {FAILS})",
    f"if(x11, x1, {FAILS})",
    f"CASE WHEN x11 THEN {FAILS} ELSE x1 END",
    f"CASE {FAILS} WHEN x1 THEN 1 ELSE 2 END",
    f"substring(x12, x2, CAST({FAILS} AS INT))",
    f"replace(x12, x12, CAST({FAILS} AS STRING))",
    f"contains(CAST({FAILS} AS STRING), x12)",
    f"x12 || {FAILS}",
    f"concat(x12, {FAILS}, x12)",
    f"{FAILS} || x12",
    f"date_add(x14, CAST({FAILS} AS INT))",
    "date_add(x14, x2)",
    f"datediff(x14, date_add(x14, CAST({FAILS} AS INT)))",
]


@pytest.mark.parametrize("engine", ["ansi", "interpreted"])
def test_what_is_computed_beside_a_null(engine: str, request: pytest.FixtureRequest) -> None:
    """Each side fails where the other side is NULL. Spark computes that side there, or skips it."""
    spark = request.getfixturevalue(engine)
    place = TYPES.index(pa.int32())
    others = [1, 6, 11, 12, 14]
    columns = {f"x{number}": PAIRS[f"x{number}"] for number in others}
    rows = pa.record_batch(columns | {"x2": PAIRS[f"y{place}"]})
    rows = rows.take(pa.array([n for n in range(64) if n // 8 in (0, 1, 2) and n % 8 < 4]))
    found = [each for sql in COMPUTED if (each := tried(sql, rows)) is not None]
    assert len(found) > 45
    assert differences(spark, rows, found) == []
    assert wrongly_failed(spark, rows, found, 60) == []


BOUND = """x2 | y2 & 3 ^ 1;x2 ^ y2 | 5 & x2;x2 & 7 + 1;x2 + 1 || 'a';'a' || x2 + 1;x2 = y2 IS NULL
x2 > y2 = x11;x2 = y2 < x11;x2 <=> y2 <> x11;x2 = y2 IN (TRUE, NULL);x2 = y2 BETWEEN y11 AND x11
NOT x2 = y2;!x11 OR y11;NOT x11 IS NULL AND y11;NOT x11 AND y11 OR x11;x11 OR y11 AND NOT x11
x2 IS DISTINCT FROM y2;x2 IS NOT DISTINCT FROM y2;x11 IS DISTINCT FROM x2 = y2
x2 BETWEEN 1 AND 5 AND x11;x2 NOT BETWEEN 1 AND 5 OR x11;-x2 % 3;- 3 % x2;-1::STRING;-128Y::STRING
~x2 + 1;- ~x2;x2 - -1;x2 -1;x2 * y2 DIV 3;7 % 4 DIV 2;x2 / y2 * 3;1 - 2 - x2;2 - x2 + 1
CASE WHEN x2 = 2 THEN 1 WHEN x11 THEN 2 END IS NULL;x2 IN (1, 2) = x11;(x2 IN (1, 2)) = x11
DATE '2024-02-29'::STRING;x2::BIGINT + 2147483647;x12 LIKE 'a' || '%';x12 NOT LIKE '1' '%'"""


def test_operators_bind_as_in_spark(interpreted: SparkSession) -> None:
    wanted = [text for line in BOUND.splitlines() for text in line.split(";")]
    found = [each for sql in wanted if (each := tried(sql, PAIRS)) is not None]
    assert len(found) > 35
    assert differences(interpreted, PAIRS, found) == []


def test_fields_and_names(ansi: SparkSession) -> None:
    rows = keyed_rows().combine_chunks().to_batches()[0]
    wanted = [
        "s.n",
        "S.`t`",
        "s.n + 1",
        "`id`",
        "ID",
        "s.t || s.n",
        "s.n IN (1, NULL)",
        "id::STRING",
    ]
    found = [each for sql in wanted if (each := tried(sql, rows)) is not None]
    assert len(found) == len(wanted)
    assert differences(ansi, rows, found) == []


def test_joins_and_lookups_by_fractions(ansi: SparkSession) -> None:
    rows = keyed_rows().select(["id", "k"])
    known = pa.table({"k": pa.array(KEYS[:8], pa.float64()), "number": list(range(8))})
    frame_of(ansi, rows).createOrReplaceTempView("rows_to_join")
    frame_of(ansi, known).createOrReplaceTempView("known_to_join")
    query = "SELECT id, number FROM rows_to_join r {} JOIN known_to_join n ON r.k = n.k"

    def join(flow: Draft, outer: bool, name: str) -> None:
        read = flow.read("rows").join(flow.read("known"), on="k", outer=outer)
        read.select("id", "number").write(f"{name} joined")
        looked = flow.read("rows").lookup(
            flow.read("known"), on="k", take="number", required=not outer
        )
        looked.select("id", "number").write(f"{name} looked up")

    @springhouse.flow
    def joined(flow: Draft) -> None:
        join(flow, outer=False, name="inner")
        join(flow, outer=True, name="left")

    made = joined.run({"rows": rows, "known": known})
    assert len(made) == 4
    for name, table in made.items():
        wanted = ansi.sql(query.format(name.split()[0])).toArrow()
        assert sorted(in_digits(table), key=repr) == sorted(in_digits(wanted), key=repr)
