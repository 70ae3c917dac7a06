from collections.abc import Callable, Mapping

import pytest

Errors = Callable[[str | Mapping[str, str]], list[str]]

ORDERS = "CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('x', format => 'csv');\n"
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT * FROM orders;\n"


@pytest.mark.parametrize(
    "text",
    [
        ORDERS + VIEW,
        ORDERS + "CREATE MATERIALIZED VIEW bad AS SELECT * FROM orders_quarantine;",
        ORDERS + VIEW + "CREATE MATERIALIZED VIEW bad AS SELECT * FROM v_quarantine;",
        ORDERS + "CREATE STREAMING TABLE t AS SELECT * FROM STREAM orders_quarantine;",
        "CREATE STREAMING TABLE t; CREATE FLOW f AS INSERT INTO ONCE t SELECT * FROM delta.`old`;",
        (
            "CREATE STREAMING TABLE t; CREATE FLOW f AS INSERT INTO ONCE t SELECT count(*) "
            "FROM range(3)"
        ),
        (
            "CREATE TEMPORARY VIEW s AS SELECT * FROM STREAM read_files('x', format => 'json');"
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM(s);"
        ),
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM read_delta('x');",
    ],
)
def test_a_project_that_makes_sense(errors: Errors, text: str) -> None:
    assert errors(text) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ORDERS + "CREATE MATERIALIZED VIEW v AS\nSELECT *\nFROM order",
            (
                'all/a.sql:4: view "v" reads "order", which this project does not declare\n'
                '  hint: Did you mean the table "orders"?'
            ),
        ),
        (
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM(zebra)",
            (
                'all/a.sql:1: streaming table "t" reads "zebra", which this project does '
                "not declare\n"
                "  hint: A Delta table that others write is read by its path: delta.`path`."
            ),
        ),
        (
            (
                "CREATE STREAMING TABLE t;\n"
                "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(zebra) KEYS (a) SEQUENCE BY b"
            ),
            (
                'all/a.sql:2: flow "f" reads "zebra", which this project does not declare\n'
                "  hint: A Delta table that others write is read by its path: delta.`path`."
            ),
        ),
        (
            ORDERS + VIEW + "CREATE STREAMING TABLE v AS SELECT * FROM STREAM orders",
            'all/a.sql:3: "v" is declared twice\n  hint: The first declaration is at all/a.sql:2.',
        ),
        (
            ORDERS + "CREATE STREAMING TABLE t;\n"
            "CREATE FLOW f AS INSERT INTO t SELECT * FROM STREAM orders;\n"
            "CREATE FLOW f AS INSERT INTO t SELECT * FROM STREAM orders;",
            (
                'all/a.sql:4: flow "f" is declared twice\n'
                "  hint: The first declaration is at all/a.sql:3."
            ),
        ),
        (
            (
                "CREATE MATERIALIZED VIEW b AS SELECT * FROM a;\n"
                "CREATE TEMPORARY VIEW c AS SELECT * FROM b;\n"
                "CREATE MATERIALIZED VIEW a AS SELECT * FROM c;"
            ),
            (
                'all/a.sql:3: "a" reads itself: a -> c -> b -> a\n'
                "  hint: A table can't depend on itself: remove one of these reads."
            ),
        ),
        (
            "CREATE MATERIALIZED VIEW a AS SELECT * FROM a_quarantine",
            (
                'all/a.sql:1: "a" reads itself: a -> a\n'
                "  hint: A table can't depend on itself: remove one of these reads."
            ),
        ),
        (
            ORDERS + "CREATE FLOW f AS INSERT INTO order SELECT * FROM STREAM orders",
            (
                'all/a.sql:2: flow "f" writes into "order", which this project does not declare\n'
                '  hint: Did you mean the table "orders"?'
            ),
        ),
        (
            ORDERS + VIEW + "CREATE FLOW f AS INSERT INTO v SELECT * FROM STREAM orders",
            (
                'all/a.sql:3: flow "f" writes into "v", which is a view\n'
                "  hint: Flows write into streaming tables; a view is made by its query alone."
            ),
        ),
        (
            "CREATE STREAMING TABLE t",
            (
                'all/a.sql:1: no flow writes into the table "t"\n  hint: Add AS SELECT … '
                "FROM STREAM …, "
                "or CREATE FLOW … AS INSERT INTO t …."
            ),
        ),
        (
            ORDERS + "CREATE FLOW c AS AUTO CDC INTO orders FROM STREAM sample()\n"
            "KEYS (offset) SEQUENCE BY time",
            (
                'all/a.sql:1: the table "orders" gets both changes (flow "c") and appended rows '
                '(streaming table "orders")\n'
                "  hint: An appended row has no place in a sequence of changes: use two tables."
            ),
        ),
        (
            ORDERS + "CREATE MATERIALIZED VIEW v AS SELECT *\nFROM STREAM(orders)",
            (
                'all/a.sql:3: view "v" reads a stream, and a materialized view reads all rows '
                "of its inputs\n"
                "  hint: Leave STREAM out, or make it CREATE STREAMING TABLE."
            ),
        ),
        (
            ORDERS + "CREATE STREAMING TABLE t AS\nSELECT * FROM orders",
            (
                'all/a.sql:3: streaming table "t" reads no stream, so it would append all '
                "rows again "
                "and again\n  hint: Read STREAM(table), or make it CREATE MATERIALIZED VIEW."
            ),
        ),
        (
            ORDERS + "CREATE STREAMING TABLE t AS SELECT count(*) FROM STREAM orders",
            (
                'all/a.sql:2: streaming table "t" has the aggregate count, which needs '
                "earlier rows\n  hint: Use a materialized view over the table; it is kept "
                "up to date "
                "incrementally too."
            ),
        ),
        (
            ORDERS + "CREATE TEMPORARY VIEW s AS SELECT DISTINCT a FROM STREAM orders",
            (
                'all/a.sql:2: temporary view "s" has DISTINCT, which needs earlier rows\n'
                "  hint: Use a materialized view over the table; it is kept up to date "
                "incrementally "
                "too."
            ),
        ),
        (
            ORDERS + "CREATE TEMPORARY VIEW s AS SELECT * FROM STREAM orders;\n"
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM s",
            (
                'all/a.sql:3: view "v" reads all rows of the temporary view "s", which '
                "reads a stream\n"
                "  hint: Write STREAM(s), in a streaming table."
            ),
        ),
        (
            ORDERS + "CREATE TEMPORARY VIEW s AS SELECT * FROM orders;\n"
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM(s)",
            (
                'all/a.sql:3: streaming table "t" reads a stream of the temporary view '
                '"s", which reads '
                "none\n  hint: Leave STREAM out, or put it into s."
            ),
        ),
        (
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_file('x')",
            'all/a.sql:1: no source is named "read_file"\n  hint: Did you mean "read_files"?',
        ),
        (
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM zebra('x')",
            (
                'all/a.sql:1: no source is named "zebra"\n'
                "  hint: The sources are read_delta, read_files, read_kafka, sample."
            ),
        ),
        (
            (
                "CREATE STREAMING TABLE t TBLPROPERTIES ('springhouse.sink.a' = 'positioned_fil') "
                "AS SELECT * FROM STREAM sample()"
            ),
            (
                'all/a.sql:1: no kind of sink is named "positioned_fil"\n'
                '  hint: Did you mean "positioned_file"?'
            ),
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM read_files('x', format => 'json')",
            (
                "all/a.sql:1: read_files is a source, and is read here without STREAM\n  "
                "hint: Write "
                "STREAM read_files(…) in a streaming table and read that table here; a "
                "Delta table is "
                "read by its path: delta.`path`."
            ),
        ),
        (
            ORDERS + "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('springhouse.staleness.order' = "
            "'1 day')\nAS SELECT * FROM orders",
            (
                'all/a.sql:2: "springhouse.staleness.order": "v" is not made from "order"\n'
                '  hint: Did you mean the table "orders"?'
            ),
        ),
        (
            ORDERS + "CREATE MATERIALIZED VIEW a AS SELECT * FROM orders;\n"
            "CREATE MATERIALIZED VIEW b AS SELECT * FROM orders;\n"
            "CREATE MATERIALIZED VIEW v\n"
            "TBLPROPERTIES ('springhouse.staleness.orders > a' = '1 day', "
            "'springhouse.staleness.a > b' = '1 day')\nAS SELECT * FROM a JOIN b USING (id)",
            (
                'all/a.sql:4: "springhouse.staleness.a>b": "b" is not made from "a"\n'
                "  hint: It is made from orders."
            ),
        ),
        (
            ORDERS + "CREATE TEMPORARY VIEW known AS SELECT * FROM orders;\n"
            "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('springhouse.staleness.known' = '1 day')\n"
            "AS SELECT * FROM known",
            (
                'all/a.sql:3: "springhouse.staleness.known": "v" is not made from "known"\n'
                '  hint: "known" is only a name for a query: name what it reads: orders.'
            ),
        ),
        (
            "CREATE MATERIALIZED VIEW _v AS SELECT 1",
            (
                'all/a.sql:1: "_v" begins with _\n'
                "  hint: Names that begin with _ are kept for Springhouse."
            ),
        ),
        (
            "CREATE MATERIALIZED VIEW `../v` AS SELECT 1",
            (
                "all/a.sql:1: `../v` has a dot or a backquote inside its backquotes\n"
                "  hint: Use letters, digits, _, - and, inside, spaces."
            ),
        ),
        (
            ORDERS + "CREATE MATERIALIZED VIEW orders_quarantine AS SELECT 1",
            (
                'all/a.sql:2: "orders_quarantine" is the name of the quarantine of "orders"\n'
                '  hint: "orders" is at all/a.sql:1.'
            ),
        ),
    ],
)
def test_a_project_that_does_not(errors: Errors, text: str, message: str) -> None:
    assert errors(text) == [message]


def test_a_name_whose_own_declaration_is_broken_is_not_called_missing(errors: Errors) -> None:
    text = "CREATE STREAMING TABLE orders AS SELEC;\n" + VIEW
    assert errors(text) == ['all/a.sql:1: expected a query here, found "SELEC"']
