"""Does sqlglot, as flows use it, parse expressions by Spark's grammar?

`tests/spark/test_flow_sql.py` compares the values of such expressions with a real Spark.
"""

from decimal import Decimal

import pyarrow as pa
import pytest

from springhouse.flows.flow_graph import FlowError
from springhouse.flows.sql.parser import (
    parse_column,
    parse_expression,
    parse_order,
    parse_schema,
)
from springhouse.flows.sql.syntax_tree import STAR, Call, CastTo, Literal, Name

A, B = Name(("a",)), Name(("b",))
ONE = Literal(1, pa.int32())

THE_SAME = [
    ("a | b & c", "a | (b & c)"),
    ("a | b ^ c", "a | (b ^ c)"),
    ("a ^ b & c + 1", "a ^ (b & (c + 1))"),
    ("a || b + c", "(a || b) + c"),
    ("a + b || c", "(a + b) || c"),
    ("a - b * c DIV d", "a - ((b * c) DIV d)"),
    ("a = b < c", "(a = b) < c"),
    ("a < b = c", "(a < b) = c"),
    ("a <=> b <> c", "(a <=> b) <> c"),
    ("a = b IS NULL", "(a = b) IS NULL"),
    ("a > b IN (TRUE)", "(a > b) IN (TRUE)"),
    ("a = b BETWEEN c AND d", "(a = b) BETWEEN c AND d"),
    ("a = b LIKE 'x'", "(a = b) LIKE 'x'"),
    ("a IS DISTINCT FROM b = c", "a IS DISTINCT FROM (b = c)"),
    ("a BETWEEN 1 AND 2 AND b", "(a BETWEEN 1 AND 2) AND b"),
    ("NOT a = b", "NOT (a = b)"),
    ("NOT a IS NULL AND b", "(NOT (a IS NULL)) AND b"),
    ("!a OR b", "(NOT a) OR b"),
    ("a NOT IN (1) OR b", "(NOT (a IN (1))) OR b"),
    ("a AND b OR c AND d", "(a AND b) OR (c AND d)"),
    ("-a::INT", "-(a::INT)"),
    ("-1::INT", "(-1)::INT"),
    ("- a * b", "(-a) * b"),
    ("a % b / c", "(a % b) / c"),
    ("a -1", "a - (1)"),
    ("a == b", "a = b"),
    ("a != b", "a <> b"),
    ("'x' 'y' r'z'", "'xyz'"),
    ("'it''s'", '"it\'s"'),
    ("DATE '2024-02-29'::STRING", "(DATE '2024-02-29')::STRING"),
    ("substr(a FROM 2 FOR b)", "substring(a, 2, b)"),
    ("trim(BOTH 'x' FROM a)", "trim('x', a)"),
    ("trim(TRAILING 'x' FROM a)", "rtrim('x', a)"),
    ("EXTRACT(YEAR FROM a)", "year(a)"),
    ("CASE a WHEN 1 THEN b END", "CASE WHEN a = 1 THEN b END"),
    ("a /* b /* c */ */ + 1 -- d", "a + 1"),
]


@pytest.mark.parametrize(("text", "in_brackets"), THE_SAME)
def test_operators_bind_and_words_mean_as_in_spark(text: str, in_brackets: str) -> None:
    assert parse_expression(text) == parse_expression(in_brackets)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("nvl(a, b)", Call("nvl", (A, B))),
        ("IFNULL(a, b)", Call("ifnull", (A, B))),
        ("date_add(a, 1)", Call("date_add", (A, ONE))),
        ("datediff(a, b)", Call("datediff", (A, B))),
        ("mod(a, b)", Call("mod", (A, B))),
        ("if(a, b, 1)", Call("if", (A, B, ONE))),
        ("count(*)", Call("count", (STAR,))),
        ("+1", Call("positive", (ONE,))),
        ("- -1", Call("negative", (Literal(-1, pa.int32()),))),
        ("-(1)", Call("negative", (ONE,))),
        ("- 1", Literal(-1, pa.int32())),
        ("-128Y", Literal(-128, pa.int8())),
        ("1L", Literal(1, pa.int64())),
        (".5", Literal(Decimal("0.5"), pa.decimal128(1, 1))),
        (".5D", Literal(0.5, pa.float64())),
        ("1::BIGINT", CastTo(ONE, pa.int64())),
        ("CAST(a AS BIGINT)", CastTo(A, pa.int64())),
        ("TRY_CAST(a AS BIGINT)", CastTo(A, pa.int64(), tries=True)),
        ("a.b.c.d.e.f", Name(("a", "b", "c", "d", "e", "f"))),
        ("(a).b", Call("field", (A, Literal("b", pa.string())))),
        ("a.end", Name(("a", "end"))),
        ("`a``b`", Name(("a`b",))),
        ("X'aFF'", Literal(b"\x0a\xff", pa.binary())),
    ],
)
def test_nothing_is_rewritten(text: str, tree: object) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    "word",
    ["table", "values", "left", "group", "order", "date", "timestamp", "key", "limit", "text"],
)
def test_a_word_without_a_meaning_in_expressions_names_a_column(word: str) -> None:
    assert parse_expression(f"{word} + 1") == Call("+", (Name((word,)), ONE))
    assert parse_column(f"a AS {word}") == (word, A)
    assert parse_schema(f"{word} INT") == pa.schema({word: pa.int32()})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a BETWEEN 1 2", ""),
        ("CASE WHEN a 1 END", ""),
        ("CASE WHEN a THEN 1", "1"),
        ("CAST(a AS INT", ""),
        ("coalesce(a,)", ")"),
        ("a IN ()", "a IN ()"),
        ("a NOT IS NULL", "IS NULL"),
        ("a = NOT b", "NOT b"),
        ("a IS NULL IS NULL", "NULL"),
        ("a IS NULL::INT", "INT"),
        ("a IS b", "b"),
        ("a RLIKE 'x'", "'x'"),
        ("a + INTERVAL '1' DAY", "'1' DAY"),
        ("a; b", "; b"),
        ("a[0]", "[0]"),
        ("a -> b", "> b"),
        ("a ?? b", "?? b"),
        ("0x1F", "0x1F"),
        ("a#b", "#b"),
        ("(SELECT 1)", "1)"),
        ("sum(a) OVER ()", "()"),
        ("sum(DISTINCT a)", "a)"),
        ("`+`(a, b)", "`+`(a, b)"),
        ("CAST(a AS VARCHAR(3))", "VARCHAR(3))"),
        ("CAST(a AS DATE()) > b", "CAST(a AS DATE()) > b"),
        ("substring(a FOR 3)", "a FOR 3)"),
        ("a b", "b"),
        ("", ""),
    ],
)
def test_what_spark_or_a_flow_does_not_have_is_refused_with_its_place(
    text: str, place: str
) -> None:
    with pytest.raises(FlowError) as refused:
        parse_expression(text)
    shown = f'"{place}"' if place else "its end"
    assert str(refused.value) == f'"{text}" is not understood at {shown}'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1a", "1a is not a number"),
        ("X'1 2'", "not made of hexadecimal digits|is not SQL"),
        ("EXTRACT(WEEK FROM a)", "can't extract WEEK"),
        ("CAST(a AS INTERVAL)", "a flow has no type INTERVAL"),
        ("CAST(a AS DECIMAL(39, 1))", r"there is no type DECIMAL\(39,1\)"),
        ("'a", "is not SQL"),
        ("a --b\\\n + 1", "a comment that goes on"),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(FlowError, match=says):
        parse_expression(text)


def test_columns_and_orders() -> None:
    assert parse_column("a") == ("a", A)
    assert parse_column("s.a") == ("a", Name(("s", "a")))
    assert parse_column("a + 1 total") == ("total", Call("+", (A, ONE)))
    assert parse_column("a + 1") == (None, Call("+", (A, ONE)))
    assert parse_order("a DESC NULLS FIRST, b NULLS LAST, a DESC, b") == [
        (A, True, True),
        (B, False, False),
        (A, True, False),
        (B, False, True),
    ]
    for text in ("a AS 'x'", "a AS", "a AS (x, y)"):
        with pytest.raises(FlowError, match="is not understood"):
            parse_column(text)


def test_schemas() -> None:
    made = parse_schema(
        "id LONG NOT NULL COMMENT 'it', `a b`: DECIMAL(12,2), "
        "s STRUCT<date: DATE, at TIMESTAMP_NTZ>, l ARRAY<ARRAY<REAL>>"
    )
    inner = pa.struct({"date": pa.date32(), "at": pa.timestamp("us")})
    assert made == pa.schema(
        {
            "id": pa.int64(),
            "a b": pa.decimal128(12, 2),
            "s": inner,
            "l": pa.list_(pa.list_(pa.float32())),
        }
    )
    for text in ("id", "id INT DEFAULT 1", "id INT NULL", "id BOOL", "id INT,"):
        with pytest.raises(FlowError, match="is not understood"):
            parse_schema(text)
