"""Which values add up exactly: integers and decimals do, and nothing that is in doubt."""

import pytest
from scenario import schema
from sqlglot import parse_one

from springhouse.views.algebra import Scan
from springhouse.views.exact import Kinds
from springhouse.views.parse import parse

TABLE = schema("i int, l bigint, m decimal(12,2), x double, s string, b boolean, e date")


def kind(text: str) -> str:
    """What kind of number an expression over the table is."""
    columns = tuple(TABLE)
    return Kinds(Scan("t", columns, columns), {"t": TABLE}).kind(parse_one(text, read="spark"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Columns and literals.
        *[("i", "whole"), ("l", "whole"), ("m", "decimal"), ("x", ""), ("s", ""), ("b", "")],
        *[("7", "whole"), ("7.5", "decimal"), ("7e0", ""), ("'7'", ""), ("NULL", "")],
        # Arithmetic.
        *[("i + l", "whole"), ("i * m", "decimal"), ("-m", "decimal"), ("i % 3", "whole")],
        *[("i + x", ""), ("m * x", ""), ("abs(m)", "decimal"), ("(i)", "whole")],
        # Spark divides integers as doubles.
        *[("i / l", ""), ("m / m", "decimal"), ("m / 2", "decimal")],
        # Casts.
        *[("CAST(s AS INT)", "whole"), ("CAST(x AS DECIMAL(10,2))", "decimal")],
        *[("CAST(i AS DOUBLE)", ""), ("CAST(i AS STRING)", "")],
        # Choices are as exact as all of their branches.
        ("CASE WHEN b THEN i ELSE 0 END", "whole"),
        ("CASE WHEN b THEN i END", "whole"),
        ("CASE WHEN b THEN i ELSE m END", "decimal"),
        ("CASE WHEN b THEN i ELSE x END", ""),
        ("CASE WHEN b THEN NULL END", ""),
        ("if(b, m, 0)", "decimal"),
        ("coalesce(i, NULL, m)", "decimal"),
        ("nullif(i, x)", "whole"),
        # Functions.
        *[("year(e)", "whole"), ("length(s)", "whole"), ("sqrt(i)", ""), ("some_function(i)", "")],
    ],
)
def test_the_kind_of_a_value(text: str, expected: str) -> None:
    assert kind(text) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT i + 1 AS v FROM t", "whole"),
        ("SELECT w * 2 AS v FROM (SELECT m AS w FROM t) AS q", "decimal"),
        ("SELECT sum(m) AS v FROM t GROUP BY s", "decimal"),
        ("SELECT count(*) AS v FROM t GROUP BY s", "whole"),
        ("SELECT max(x) AS v FROM t GROUP BY s", ""),
        ("SELECT avg(m) AS v FROM t GROUP BY s", "decimal"),
        ("SELECT avg(i) AS v FROM t GROUP BY s", ""),
        ("SELECT median(i) AS v FROM t GROUP BY s", ""),
        ("SELECT sum(i) FILTER (WHERE b) AS v FROM t GROUP BY s", "whole"),
        ("SELECT i AS v FROM t UNION ALL SELECT m FROM t", "decimal"),
        ("SELECT i AS v FROM t UNION ALL SELECT x FROM t", ""),
        ("SELECT v FROM (VALUES (1), (2)) AS q(v)", "whole"),
        ("SELECT v FROM (VALUES (1), (2.5)) AS q(v)", "decimal"),
        ("SELECT v FROM (VALUES (1), (2e0)) AS q(v)", ""),
    ],
)
def test_the_kind_of_a_column_of_a_query(query: str, expected: str) -> None:
    found = parse(query, {"t": TABLE})
    (name,) = found.root.columns
    assert Kinds(found.root, {"t": TABLE}).kind(parse_one(name)) == expected
