import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springhouse.project.declarations.contents import Contents
from springhouse.project.declarations.declaration import (
    AppendFlow,
    CdcFlow,
    OnViolation,
    Place,
    Promise,
    ReadMode,
    SqlQuery,
    Table,
    TemporaryView,
    View,
)
from springhouse.project.declarations.names import Names
from springhouse.project.sql.from_sql import read_sql
from springhouse.units import Seconds


def read(text: str) -> Contents:
    return read_sql(text, "a.sql", Names("main", "shop"))


def declared(text: str) -> list[object]:
    contents = read(text)
    assert contents.errors == []
    return list(contents.declarations)


def test_a_streaming_table_with_everything() -> None:
    table, flow = declared("""\
        -- the first line
        CREATE OR REFRESH STREAMING TABLE IF NOT EXISTS main.shop.Orders (
            id BIGINT NOT NULL COMMENT 'a; b',
            tags MAP<STRING, INT>,
            CONSTRAINT positive EXPECT (amount > 0 AND id IN (1, 2)) ON VIOLATION DROP ROW,
            CONSTRAINT known EXPECT (id IS NOT NULL) ON VIOLATION FAIL UPDATE,
            CONSTRAINT odd EXPECT (id % 2 = 1) ON VIOLATION QUARANTINE,
            CONSTRAINT counted EXPECT (id < 9)
        ) USING delta
        PARTITIONED BY (day)
        CLUSTER BY (id)
        TBLPROPERTIES ('springhouse.timestamp' = 'placed_at', owner.x = 1, 'y' 'z')
        COMMENT 'It''s ' 'orders'
        AS SELECT *
           FROM STREAM read_files('data') -- the end
        ;""")
    assert isinstance(table, Table)
    assert (table.name, table.place) == ("orders", Place("a.sql", 2))
    assert table.schema == "id BIGINT NOT NULL COMMENT 'a; b', tags MAP<STRING, INT>"
    assert [(e.name, e.condition, e.on_violation, e.place.line) for e in table.expectations] == [
        ("positive", "amount > 0 AND id IN (1, 2)", OnViolation.DROP_ROW, 5),
        ("known", "id IS NOT NULL", OnViolation.FAIL_UPDATE, 6),
        ("odd", "id % 2 = 1", OnViolation.QUARANTINE, 7),
        ("counted", "id < 9", OnViolation.KEEP, 8),
    ]
    assert (table.partition_by, table.comment, table.timestamp) == (
        ("day",),
        "It's orders",
        "placed_at",
    )
    assert table.properties == {"owner.x": "1", "y": "z"}
    assert isinstance(flow, AppendFlow)
    assert (flow.name, flow.target, flow.once) == ("orders", "orders", False)
    assert isinstance(flow.query, SqlQuery)
    assert flow.query.text == "SELECT *\n           FROM STREAM read_files('data')"
    assert flow.query.place == Place("a.sql", 14)
    assert flow.query.references[0].place == Place("a.sql", 15)


def test_a_materialized_view_with_promises() -> None:
    (view,) = declared("""
        CREATE MATERIALIZED VIEW sales (country STRING, revenue DECIMAL(12, 2))
        TBLPROPERTIES ('springhouse.staleness' = '1 minute')
        AS WITH o AS (SELECT * FROM orders) SELECT * FROM o""")
    assert isinstance(view, View)
    assert view.schema == "country STRING, revenue DECIMAL(12, 2)"
    assert view.promise == Promise(staleness_seconds=Seconds(60))
    assert [r.name for r in view.query.references] == ["orders"]


def test_names_of_columns_without_types_rename_the_columns_of_the_query() -> None:
    (view,) = declared("CREATE TEMPORARY VIEW v (a COMMENT 'x', `b c`)\nAS SELECT 1,\n y FROM t")
    assert isinstance(view, TemporaryView)
    assert isinstance(view.query, SqlQuery)
    assert view.query.text == "SELECT * FROM (SELECT 1,\n y FROM t) AS `v`(`a`, `b c`)"
    (reference,) = view.query.references
    assert view.query.text[reference.start : reference.end] == "t"
    assert reference.place == Place("a.sql", 3)


@pytest.mark.parametrize(
    ("text", "name", "target", "by_name", "once"),
    [
        ("CREATE FLOW f AS INSERT INTO t BY NAME SELECT 1", "f", "t", True, False),
        ("CREATE FLOW f COMMENT 'c' AS INSERT INTO TABLE shop.t SELECT 1", "f", "t", False, False),
        ("CREATE FLOW f AS INSERT INTO ONCE t BY NAME SELECT 1", "f", "t", True, True),
        ("CREATE FLOW f AS INSERT INTO once SELECT 1", "f", "once", False, False),
        ("CREATE FLOW f AS INSERT INTO t (SELECT 1)", "f", "t", False, False),
        ("CREATE FLOW f AS INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1", "f", "t", False, False),
        ("CREATE FLOW IDENTIFIER('shop.f') AS INSERT INTO t FROM x", "f", "t", False, False),
    ],
)
def test_flows_that_append(text: str, name: str, target: str, by_name: bool, once: bool) -> None:
    (flow,) = declared(text)
    assert isinstance(flow, AppendFlow)
    assert (flow.name, flow.target, flow.by_name, flow.once) == (name, target, by_name, once)


def test_auto_cdc_with_its_clauses_in_any_order() -> None:
    clauses = [
        "KEYS (id, `a b`)",
        "APPLY AS DELETE WHEN op IN ('D', 'keys')",
        "SEQUENCE BY struct(ts, n)",
        "COLUMNS * EXCEPT (op, ts)",
        "STORED AS SCD TYPE 2",
    ]
    for turn in range(len(clauses)):
        ordered = clauses[turn:] + clauses[:turn]
        text = "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(s) " + "\n".join(ordered)
        (flow,) = declared(text)
        assert isinstance(flow, CdcFlow)
        assert (flow.name, flow.target, flow.keys) == ("f", "t", ("id", "a b"))
        assert (flow.sequence_by, flow.delete_when) == ("struct(ts, n)", "op IN ('D', 'keys')")
        assert (flow.columns, flow.except_columns, flow.scd_type) == (None, ("op", "ts"), 2)
        assert (flow.source.reading, flow.source.name) == (ReadMode.STREAM, "s")


@pytest.mark.parametrize(
    ("source", "reading", "name"),
    [
        ("STREAM(s)", ReadMode.STREAM, "s"),
        ("STREAM shop.s", ReadMode.STREAM, "s"),
        ("STREAM read_kafka('x')", ReadMode.SOURCE, "read_kafka"),
        ("STREAM delta.`p`", ReadMode.DELTA_STREAM, "p"),
    ],
)
def test_auto_cdc_reads_any_stream(source: str, reading: ReadMode, name: str) -> None:
    (flow,) = declared(
        f"CREATE FLOW f AS AUTO CDC ONCE INTO t FROM {source} KEYS (a) SEQUENCE BY b COLUMNS (a, b)"
    )
    assert isinstance(flow, CdcFlow)
    assert (flow.source.reading, flow.source.name) == (reading, name)
    assert (flow.columns, flow.scd_type, flow.once) == (("a", "b"), 1, True)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("SET a=b", "a", "b"),
        ("SET spark.sql.x = c d -- comment", "spark.sql.x", "c d"),
        ("SET `a.b` = `c d`", "a.b", "c d"),
        ("SET TIME ZONE 'UTC'", "spark.sql.session.timeZone", "UTC"),
    ],
)
def test_settings(text: str, key: str, value: str) -> None:
    assert {k: w.value for k, w in read(text).settings.items()} == {key: value}


@pytest.mark.parametrize(
    "text",
    [
        # Everything that Spark 4.2's own parser accepts in a pipeline; each line was tried there.
        "CREATE STREAMING TABLE t",
        "CREATE STREAMING TABLE t (a INT) USING parquet PARTITIONED BY (a INT)",
        "CREATE MATERIALIZED VIEW t CLUSTER BY (a, b.c) AS SELECT 1",
        "CREATE MATERIALIZED VIEW t DEFAULT COLLATION UTF8_BINARY AS SELECT 1",
        "CREATE MATERIALIZED VIEW t COMMENT \"a\" 'b' AS (SELECT 1)",
        "CREATE MATERIALIZED VIEW IDENTIFIER('x') AS VALUES (1)",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1",
        "CREATE VIEW IF NOT EXISTS v WITH SCHEMA BINDING AS SELECT 1",
        "USE shop",
        "USE DATABASE Shop",
        "SET CATALOG main",
    ],
)
def test_what_spark_takes_is_taken(text: str) -> None:
    assert read(text).errors == []


STATEMENTS = (
    "\n  hint: A file declares with CREATE STREAMING TABLE, CREATE MATERIALIZED VIEW, "
    "CREATE TEMPORARY VIEW, CREATE FLOW and SET."
)
EXPECT = (
    "\n  hint: Expectations are: CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION DROP ROW."
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1", f"1: SELECT is not a statement of a project{STATEMENTS}"),
        ("\nDROP TABLE x", f"2: DROP is not a statement of a project{STATEMENTS}"),
        ("CREATE TABLE x", f"1: CREATE TABLE is not a statement of a project{STATEMENTS}"),
        (
            "CREATE STREAMING TABLE",
            ("1: expected the name of a streaming table, found the end of the statement"),
        ),
        ("CREATE MATERIALIZED VIEW v", "1: expected AS, found the end of the statement"),
        ("CREATE MATERIALIZED VIEW v AS", "1: expected a query, found the end of the statement"),
        ("CREATE MATERIALIZED VIEW v AS DROP", '1: expected a query here, found "DROP"'),
        (
            "CREATE MATERIALIZED VIEW v\nLOCATION 'x' AS SELECT 1",
            (
                "2: LOCATION can't be chosen for "
                "one table\n  hint: Leave it out: tables live under the project's storage."
            ),
        ),
        (
            "CREATE MATERIALIZED VIEW v OPTIONS (a = b) AS SELECT 1",
            (
                "1: expected AS and a query, or "
                'a clause, found "OPTIONS"\n  hint: The clauses are PARTITIONED BY, '
                "CLUSTER BY, COMMENT, "
                "TBLPROPERTIES and USING."
            ),
        ),
        (
            "CREATE MATERIALIZED VIEW v (a INT, b) AS SELECT 1",
            (
                '1: column "b" has no type, and '
                "others have one\n  hint: Give every column a type, or none."
            ),
        ),
        (
            "CREATE STREAMING TABLE t (a)",
            ('1: column "a" of the table "t" has no type\n  hint: Write a STRING.'),
        ),
        ("CREATE STREAMING TABLE t (a INT,, b INT)", "1: a column is missing at a comma"),
        (
            "CREATE STREAMING TABLE t (a INT, PRIMARY KEY (a))",
            f"1: PRIMARY constraints are not supported{EXPECT}",
        ),
        (
            "CREATE STREAMING TABLE t (CONSTRAINT c CHECK (a > 0))",
            f"1: CHECK constraints are not supported{EXPECT}",
        ),
        ("CREATE STREAMING TABLE t (CONSTRAINT c EXPECT ())", '1: constraint "c" has no condition'),
        (
            "CREATE STREAMING TABLE t (a INT,\nCONSTRAINT c EXPECT (a >))",
            '2: this SQL does not parse: something is missing near ">"',
        ),
        (
            "CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a) ON VIOLATION EXPLODE)",
            '1: expected DROP ROW, FAIL UPDATE or QUARANTINE, found "EXPLODE"',
        ),
        (
            "CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a), CONSTRAINT c EXPECT (b))",
            '1: two constraints are named "c"',
        ),
        (
            "CREATE STREAMING TABLE t PARTITIONED BY (bucket(4, a))",
            (
                "1: a table can only be "
                "partitioned by its columns\n  hint: Compute the value in the query, as a "
                "column of its "
                "own."
            ),
        ),
        (
            "CREATE STREAMING TABLE t TBLPROPERTIES ('a' = 1, 'a' = 2)",
            '1: the property "a" is given twice',
        ),
        (
            (
                "CREATE STREAMING TABLE t TBLPROPERTIES (\n'springhouse.lateness' = '1 m',\n"
                "'springhouse.laziness' = '1 m')"
            ),
            (
                '3: unknown property "springhouse.laziness"\n'
                '  hint: Did you mean "springhouse.lateness"?'
            ),
        ),
        ("CREATE STREAMING TABLE t (a INT", "1: this ( is never closed"),
        (
            "CREATE TEMPORARY VIEW v (CONSTRAINT c EXPECT (a)) AS SELECT 1",
            (
                '1: "v" is not stored, so '
                "it can't have expectations\n  hint: Make it a materialized view."
            ),
        ),
        ("CREATE FLOW f AS SELECT 1", '1: expected INSERT INTO or AUTO CDC INTO, found "SELECT"'),
        (
            "CREATE FLOW f AS INSERT OVERWRITE t SELECT 1",
            (
                '1: expected INTO, found "OVERWRITE"\n'
                "  hint: A flow only appends; to replace, make a view."
            ),
        ),
        (
            "CREATE FLOW f AS INSERT INTO t (a, b) SELECT 1, 2",
            ('1: expected BY NAME, found "("\n  hint: Name the columns in the query, with AS.'),
        ),
        (
            "CREATE FLOW f AS AUTO CDC INTO t FROM s KEYS (a) SEQUENCE BY b",
            '1: expected STREAM and a table, found "s"\n  hint: Write FROM STREAM(changes).',
        ),
        (
            "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s SEQUENCE BY b",
            (
                '1: the flow "f" has no '
                "KEYS\n  hint: Add KEYS (id): AUTO CDC needs to know which row an event is "
                "about, and which "
                "of two events is the later one."
            ),
        ),
        (
            "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (a)",
            (
                '1: the flow "f" has no '
                "SEQUENCE BY\n  hint: Add SEQUENCE BY changed_at: AUTO CDC needs to know which row "
                "an event is "
                "about, and which of two events is the later one."
            ),
        ),
        (
            "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (a + 1) SEQUENCE BY b",
            "1: KEYS takes names of columns",
        ),
        (
            (
                "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (a) SEQUENCE BY b "
                "STORED AS SCD TYPE "
                "3"
            ),
            '1: expected 1 or 2, found "3"',
        ),
        (
            "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (a) SEQUENCE BY b\nTRACK HISTORY",
            (
                '2: expected a clause of AUTO CDC, found "TRACK"\n  hint: The clauses are '
                "KEYS, SEQUENCE "
                "BY, APPLY AS DELETE WHEN, COLUMNS and STORED AS SCD TYPE."
            ),
        ),
        ("SET x", '1: expected key = value, found "x"\n  hint: Write SET spark.sql.x = y.'),
        (
            "USE other",
            (
                '1: this project declares into the database "shop", not "other"\n'
                "  hint: Set `database: other` in spark-pipeline.yml."
            ),
        ),
        (
            "SET CATALOG lake",
            (
                '1: this project declares into the catalog "main", not "lake"\n'
                "  hint: Set `catalog: lake` in spark-pipeline.yml."
            ),
        ),
    ],
)
def test_a_bad_statement_says_what_and_where(text: str, message: str) -> None:
    assert [str(error) for error in read(text).errors] == [f"a.sql:{message}"]


def test_one_bad_statement_does_not_hide_the_others() -> None:
    contents = read(
        "SELECT 1; CREATE STREAMING TABLE a; DROP x;\nCREATE VIEW b AS SELEC 1; SET c=d"
    )
    assert [error.where for error in contents.errors] == ["a.sql:1", "a.sql:1", "a.sql:2"]
    assert [each.name for each in contents.named()] == ["a"]
    assert contents.broken == {"b"}
    assert list(contents.settings) == ["c"]


def test_a_quote_that_is_never_closed_spoils_only_its_own_statement() -> None:
    contents = read("CREATE STREAMING TABLE a; CREATE STREAMING TABLE b\n COMMENT 'oh; SET c=d")
    assert [str(error) for error in contents.errors] == ["a.sql:2: this ' is never closed"]
    assert [each.name for each in contents.named()] == ["a"]
    assert contents.unread


GOOD = (
    (
        "CREATE STREAMING TABLE t (a INT, CONSTRAINT c EXPECT (a > 0) ON VIOLATION DROP ROW) "
        "PARTITIONED BY (a) TBLPROPERTIES ('x' = 'y') AS SELECT * FROM STREAM(s) JOIN t USING (id)"
    ),
    "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (a) SEQUENCE BY b COLUMNS * EXCEPT (c)",
    "CREATE MATERIALIZED VIEW v AS WITH c AS (SELECT 1) SELECT f(`x`), 'y' FROM c, delta.`p` d",
)
WORDS = st.sampled_from(re.findall(r"\w+|[^\w\s]", " ".join(GOOD)))


@given(st.sampled_from(GOOD), st.data())
def test_a_mangled_statement_is_read_or_refused_but_never_a_crash(
    good: str, data: st.DataObject
) -> None:
    words = re.findall(r"\w+|[^\w\s]|\s+", good)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(words)))
        words[at : at + data.draw(st.integers(0, 2))] = data.draw(st.lists(WORDS, max_size=2))
    contents = read("".join(words))
    assert contents.errors or contents.declarations or not "".join(words).strip(" ;")
