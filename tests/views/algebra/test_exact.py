"""Which values add up exactly? Integers and decimals do; any value in doubt does not."""

import pytest
from scenario import schema
from sqlglot import parse_one

from springhouse.views.algebra.exact import ExactTypes
from springhouse.views.algebra.query_tree import Scan
from springhouse.views.read.parse_query import parse

TABLE = schema("i int, l bigint, m decimal(12,2), x double, s string, b boolean, e date")


def kind(text: str) -> str:
    """The type of an expression over the table, if it is an exact number."""
    columns = tuple(TABLE)
    found = ExactTypes(Scan("t", columns, columns), {"t": TABLE}).kind(
        parse_one(text, read="spark")
    )
    return str(found or "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Columns and literals.
        *[("i", "int"), ("l", "bigint"), ("m", "decimal(12,2)"), ("x", ""), ("s", ""), ("b", "")],
        *[("7", "int"), ("7.5", "decimal(2,1)"), ("7e0", ""), ("'7'", ""), ("NULL", "")],
        # Arithmetic.
        *[
            ("i + l", "bigint"),
            ("i * m", "decimal(23,2)"),
            ("-m", "decimal(12,2)"),
            ("i % 3", "int"),
        ],
        *[("i + x", ""), ("m * x", ""), ("abs(m)", "decimal(12,2)"), ("(i)", "int")],
        # Spark divides integers as doubles.
        *[("i / l", ""), ("m / m", "decimal(27,15)"), ("m / 2", "decimal(16,6)")],
        # Spark counts the digits of a literal, and cuts a result that does not fit into 38.
        *[
            ("m * 0.05", "decimal(15,4)"),
            ("1 - m", "decimal(13,2)"),
            ("m * m * m", "decimal(38,6)"),
        ],
        *[("m % 7", "decimal(3,2)"), ("m + l", "decimal(23,2)"), ("l div 2", "bigint")],
        # Casts.
        *[("CAST(s AS INT)", "int"), ("CAST(x AS DECIMAL(10,2))", "decimal(10,2)")],
        *[("CAST(i AS DOUBLE)", ""), ("CAST(i AS STRING)", "")],
        # A choice is exact if all of its branches are.
        ("CASE WHEN b THEN i ELSE 0 END", "int"),
        ("CASE WHEN b THEN i END", "int"),
        ("CASE WHEN b THEN i ELSE m END", "decimal(12,2)"),
        ("CASE WHEN b THEN i ELSE x END", ""),
        ("CASE WHEN b THEN NULL END", ""),
        ("if(b, m, 0)", "decimal(12,2)"),
        ("coalesce(i, NULL, m)", "decimal(12,2)"),
        ("nullif(i, x)", "int"),
        # Functions.
        *[("year(e)", "int"), ("length(s)", "int"), ("sqrt(i)", ""), ("some_function(i)", "")],
    ],
)
def test_the_kind_of_a_value(text: str, expected: str) -> None:
    assert kind(text) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT i + 1 AS v FROM t", "int"),
        ("SELECT w * 2 AS v FROM (SELECT m AS w FROM t) AS q", "decimal(14,2)"),
        ("SELECT sum(m) AS v FROM t GROUP BY s", "decimal(22,2)"),
        ("SELECT count(*) AS v FROM t GROUP BY s", "bigint"),
        ("SELECT max(x) AS v FROM t GROUP BY s", ""),
        ("SELECT avg(m) AS v FROM t GROUP BY s", "decimal(16,6)"),
        ("SELECT avg(i) AS v FROM t GROUP BY s", ""),
        ("SELECT median(i) AS v FROM t GROUP BY s", ""),
        ("SELECT sum(i) FILTER (WHERE b) AS v FROM t GROUP BY s", "bigint"),
        ("SELECT i AS v FROM t UNION ALL SELECT m FROM t", "decimal(12,2)"),
        ("SELECT i AS v FROM t UNION ALL SELECT x FROM t", ""),
        ("SELECT v FROM (VALUES (1), (2)) AS q(v)", "int"),
        ("SELECT v FROM (VALUES (1), (2.5)) AS q(v)", "decimal(11,1)"),
        ("SELECT v FROM (VALUES (1), (2e0)) AS q(v)", ""),
    ],
)
def test_the_kind_of_a_column_of_a_query(query: str, expected: str) -> None:
    found = parse(query, {"t": TABLE})
    (name,) = found.root.columns
    assert str(ExactTypes(found.root, {"t": TABLE}).kind(parse_one(name)) or "") == expected
