"""Does an expression give the value that SQL gives? DuckDB is the judge, NULLs included."""

from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from springhouse.flows.flow_graph import FlowError
from springhouse.flows.row_expressions import column, compile_expression, schema_of

ROWS = pa.record_batch(
    {
        "a": pa.array([1, 2, None, -4, 5], pa.int64()),
        "b": pa.array([0.5, None, 2.25, 4.0, -1.0], pa.float64()),
        "t": pa.array(["Oslo", " Bergen ", None, "", "oslo"], pa.string()),
        "p": pa.array([True, False, None, True, False]),
    }
)

SAME_AS_DUCKDB = [
    "a + 1",
    "a * b - 2",
    "-a",
    "a > 1",
    "b > 1",
    "2 <= b",
    "1 - b",
    "a < 1.5",
    "a <> 2 AND b > 0",
    "a = 2 OR b > 0",
    "NOT p",
    "a IS NULL",
    "a IS NOT NULL AND t IS NOT NULL",
    "p IS TRUE",
    "a BETWEEN 0 AND 3",
    "a IN (1, 5)",
    "a NOT IN (1, 5)",
    "t LIKE '%slo'",
    "t IN ('Oslo', 'oslo')",
    "upper(trim(t))",
    "lower(t)",
    "length(t)",
    "substring(t, 2, 3)",
    "substring(t, 2)",
    "t || '!'",
    "coalesce(a, 0)",
    "coalesce(b, a, 0.0)",
    "abs(a)",
    "round(b)",
    "CAST(a AS STRING)",
    "CAST(b AS DOUBLE) / 2",
    "a / 4",
    "CASE WHEN a > 1 THEN 'many' WHEN a = 1 THEN 'one' END",
    "CASE a WHEN 1 THEN 10 WHEN 2 THEN 20 ELSE 0 END",
    "1",
    "'x'",
]


@pytest.mark.parametrize("sql", SAME_AS_DUCKDB)
def test_the_same_as_sql(sql: str) -> None:
    found = column(compile_expression(sql, ROWS.schema, "test")(ROWS), ROWS.num_rows)
    with duckdb.connect() as database:
        database.register("rows", pa.Table.from_batches([ROWS]))
        wanted = database.sql(f"SELECT {sql} FROM rows").fetchall()
    assert found.to_pylist() == [value for (value,) in wanted]


AS_SPARK_HAS_IT = [
    ("t NOT LIKE '%slo'", [False, True, None, True, False]),
    ("a IN (-4)", [False, False, None, True, False]),
    ("a NOT IN (1, NULL)", [False, None, None, None, None]),
    ("round(a, -1)", [0, 0, None, 0, 10]),
    ("ltrim(t)", ["Oslo", "Bergen ", None, "", "oslo"]),
    ("trim(BOTH 'o' FROM lower(t))", ["sl", " bergen ", None, "", "sl"]),
    ("1.10 + 0.2", [Decimal("1.30")] * 5),
    ("CASE WHEN a = 1 THEN 0 ELSE 10 / (a - 1) END", [0, 10.0, None, -2.0, 2.5]),
    ("a % 3", [1, 2, None, -1, 2]),
    ("if(a > 1, 'x', NULL)", [None, "x", None, None, "x"]),
    ("nullif(a, 1)", [None, 2, None, -4, 5]),
    ("TRY_CAST(t AS INT)", [None] * 5),
    ("year(TIMESTAMP '2024-02-29 12:30:00')", [2024] * 5),
    ("sqrt(b - 10) = sqrt(b - 20)", [True, None, True, True, True]),
    ("- 0.0D = 0", [True] * 5),
    ("-12345678901234567890123456789.5", [Decimal("-12345678901234567890123456789.5")] * 5),
    ("'\\uD83D\\uDE00'", ["\U0001f600"] * 5),
    (" OR ".join(f"a = {n}" for n in range(3000)), [True, True, None, False, True]),
    ("(1 DIV (a - a)) / CAST(NULL AS INT)", [None] * 5),
]


@pytest.mark.parametrize(("sql", "wanted"), AS_SPARK_HAS_IT)
def test_what_was_once_wrong(sql: str, wanted: list[object]) -> None:
    found = column(compile_expression(sql, ROWS.schema, "test")(ROWS), ROWS.num_rows)
    assert found.to_pylist() == wanted


def test_an_expression_of_pyarrow() -> None:
    found = compile_expression(pc.field("a") > 1, ROWS.schema, "test")(ROWS)
    assert column(found, ROWS.num_rows).to_pylist() == [False, True, None, False, True]


REFUSED = [
    ("nowhere > 1", 'activity "test": it names a column "nowhere", which its rows don\'t have'),
    ("a >", '"a >" is not understood at its end'),
    ("a > 1 2", "is not understood at"),
    ("regexp_extract(t, 'x')", "a flow has no function regexp_extract"),
    ("t + p", "a flow can't compute \\+ of STRING, BOOLEAN"),
    ("CAST(a AS INTERVAL)", "a flow has no type"),
    ("CAST(b AS STRING)", "a flow can't cast DOUBLE to STRING"),
    ("t LIKE t", "a flow can't compute like of STRING, STRING"),
    ("count(DISTINCT a)", "is not understood"),
    ("NULL", "has no type, only NULLs"),
    ("t RLIKE 'a'", "is not understood"),
    ("DATE '2024-02-30'", "is not a DATE that a flow can read"),
    ("TRY_CAST('epoch' AS DATE)", "does not know the DATE 'epoch'"),
    ("1e400", "1e400 is too large a number"),
    ("-1e39F", "-1e39F is too large a number"),
    ("128Y", "128Y is too large a number"),
    ("1.0L", "1.0L is not a number"),
    ("'\\uD83D'", "has half a character"),
    ("'\\U00110000'", "there is no character"),
    ("trim(BOTH 'a')", "is not understood"),
    ("(" * 3000 + "a" + ")" * 3000, "nested too deeply"),
]


@pytest.mark.parametrize(("sql", "says"), REFUSED)
def test_what_can_not_be_computed_is_said_before_any_row_moves(sql: str, says: str) -> None:
    with pytest.raises(FlowError, match=says):
        compile_expression(sql, ROWS.schema, "test")


@pytest.mark.parametrize("sql", ["a * 9223372036854775807", "a / (a - 1)"])
def test_overflow_and_division_by_zero_are_errors_as_in_spark(sql: str) -> None:
    computed = compile_expression(sql, ROWS.schema, "test")
    with pytest.raises((pa.ArrowInvalid, ArithmeticError)):
        computed(ROWS)


def test_schemas_as_spark_writes_them() -> None:
    wanted = pa.schema({"id": pa.int64(), "at": pa.timestamp("us", tz="UTC"), "d": pa.date32()})
    assert schema_of("id BIGINT, at TIMESTAMP, d DATE", "read") == wanted
    with pytest.raises(FlowError, match="is not understood"):
        schema_of("id BIGINT (", "read")
