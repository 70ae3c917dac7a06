import pytest
from hypothesis import given
from hypothesis import strategies as st

from springhouse.errors import DeclarationError
from springhouse.project.declarations.declaration import Place, Reference, SqlQuery
from springhouse.project.declarations.names import Names
from springhouse.project.sql.references import find_references
from springhouse.project.sql.sql_text import SqlText

SHOP = Names("main", "shop")


def references(text: str) -> tuple[Reference, ...]:
    return find_references(SqlText(text, "a.sql", 5), SHOP)


def told(text: str) -> list[str]:
    """Every reference as `span = reading name`, with `?` where an alias is needed."""
    return [
        f"{text[r.start : r.end]} = {r.reading.value} {r.name}{'?' if r.alias_needed else ''}"
        for r in references(text)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Tables, and texts that are none.
        ("SELECT 1", []),
        ("SELECT * FROM orders", ["orders = table orders?"]),
        ("SELECT * FROM Orders o", ["Orders = table orders"]),
        ("SELECT * FROM orders AS o(a, b)", ["orders = table orders"]),
        ("SELECT * FROM `Orders`", ["`Orders` = table orders?"]),
        ("SELECT * FROM shop . orders", ["shop . orders = table orders?"]),
        ("SELECT * FROM main.shop.orders", ["main.shop.orders = table orders?"]),
        ("SELECT * FROM other.orders", ["other.orders = table other.orders?"]),
        ("SELECT * FROM a, b c, d", ["a = table a?", "b = table b", "d = table d?"]),
        ("SELECT * FROM a JOIN b USING (id)", ["a = table a?", "b = table b?"]),
        ("SELECT * FROM (a JOIN b)", ["a = table a?", "b = table b?"]),
        ("SELECT * FROM (orders) o", ["orders = table orders?"]),
        ("SELECT * FROM (SELECT * FROM a) b", ["a = table a?"]),
        ("SELECT x FROM a WHERE x IN (SELECT y FROM b)", ["a = table a?", "b = table b?"]),
        ("SELECT (SELECT max(x) FROM b) FROM a c", ["b = table b?", "a = table a"]),
        ("SELECT * FROM a UNION ALL SELECT * FROM a", ["a = table a?", "a = table a?"]),
        ("SELECT orders.stream, stream FROM orders", ["orders = table orders?"]),
        ("SELECT 'FROM x', `FROM y` FROM z -- FROM w", ["z = table z?"]),
        ("SELECT extract(YEAR FROM t), changes FROM a", ["a = table a?"]),
        ("SELECT /*+ BROADCAST(b) */ * FROM a JOIN b", ["a = table a?", "b = table b?"]),
        ("SELECT * FROM VALUES (1) AS t(x)", []),
        (
            "SELECT 'é😀' AS `ß` FROM größe, STREAM(b)",
            [
                "größe = table größe?",
                "STREAM(b) = stream b?",
            ],
        ),
        ("SELECT a.b.c, o.d[0].e, m:x FROM orders o", ["orders = table orders"]),
        ("SELECT * FROM a LATERAL VIEW explode(x) t AS y", ["a = table a?"]),
        ("SELECT * FROM a, LATERAL explode(a.x) AS t(y)", ["a = table a?"]),
        ("SELECT * FROM a PIVOT (sum(x) FOR y IN (1, 2))", ["a = table a?"]),
        ("SELECT * FROM a TABLESAMPLE (10 PERCENT) s", ["a = table a"]),
        ("FROM a SELECT x", ["a = table a?"]),
        ("FROM a |> WHERE x > 1 |> JOIN b ON a.x = b.x", ["a = table a?", "b = table b?"]),
        ("TABLE orders", ["orders = table orders"]),
        ("SELECT 1 UNION ALL TABLE orders", ["orders = table orders"]),
        ("SELECT * FROM IDENTIFIER('shop.orders')", ["IDENTIFIER('shop.orders') = table orders?"]),
        # Common table expressions.
        ("WITH c AS (SELECT * FROM a) SELECT * FROM c", ["a = table a?"]),
        ("WITH c AS (SELECT * FROM c) SELECT * FROM C", ["c = table c?"]),
        ("WITH c AS (SELECT * FROM d), d AS (SELECT * FROM c) SELECT * FROM d", ["d = table d?"]),
        ("WITH RECURSIVE c AS (SELECT 1 UNION ALL SELECT * FROM c) SELECT * FROM c", []),
        ("SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c), c", ["c = table c?"]),
        ("WITH c AS (SELECT 1) SELECT * FROM shop.c", ["shop.c = table c?"]),
        # Streams.
        ("SELECT * FROM STREAM(orders)", ["STREAM(orders) = stream orders?"]),
        ("SELECT * FROM STREAM orders AS o", ["STREAM orders = stream orders"]),
        ("SELECT * FROM stream ( shop.orders ) o", ["stream ( shop.orders ) = stream orders"]),
        ("SELECT * FROM STREAM\n  orders", ["STREAM\n  orders = stream orders?"]),
        ("SELECT * FROM a, STREAM b", ["a = table a?", "STREAM b = stream b?"]),
        ("SELECT * FROM a JOIN STREAM(b) ON true", ["a = table a?", "STREAM(b) = stream b?"]),
        (
            "SELECT * FROM a JOIN b ON a.x, STREAM c",
            [
                "a = table a?",
                "b = table b?",
                "STREAM c = stream c?",
            ],
        ),
        ("SELECT * FROM stream", ["stream = table stream?"]),
        ("SELECT * FROM stream AS s", ["stream = table stream"]),
        ("SELECT * FROM stream WHERE x", ["stream = table stream?"]),
        ("SELECT a, stream b FROM c", ["c = table c?"]),
        (
            "SELECT * FROM STREAM(a) WATERMARK t DELAY OF INTERVAL 1 MINUTE AS b",
            ["STREAM(a) = stream a"],
        ),
        # Sources, files, functions.
        ("SELECT * FROM STREAM read_files('x')", ["STREAM read_files('x') = source read_files?"]),
        (
            "SELECT * FROM STREAM(read_files('x')) f",
            ["STREAM(read_files('x')) = source read_files"],
        ),
        ("SELECT * FROM STREAM delta.`a/B`", ["STREAM delta.`a/B` = delta_stream a/B?"]),
        ("SELECT * FROM delta.`a/B` d", ["delta.`a/B` = delta a/B"]),
        ("SELECT * FROM read_delta('a/B') d", ["read_delta('a/B') = delta a/B"]),
        ("SELECT * FROM parquet.`a/B`", ["parquet.`a/B` = other a/B?"]),
        ("SELECT * FROM range(10) r", ["range(10) = other range"]),
        ("SELECT * FROM explode(array(1, 2))", []),
        (
            "SELECT * FROM f(TABLE(orders))",
            [
                "f(TABLE(orders)) = other f?",
                "orders = table orders",
            ],
        ),
        (
            "SELECT * FROM f(TABLE(SELECT * FROM orders))",
            [
                "f(TABLE(SELECT * FROM orders)) = other f?",
                "orders = table orders?",
            ],
        ),
    ],
)
def test_the_spans_that_name_inputs(text: str, expected: list[str]) -> None:
    assert told(text) == expected


def test_a_source_call_keeps_what_the_user_wrote_without_quotes() -> None:
    (reference,) = references(
        "SELECT *\nFROM STREAM\n Read_Files('data/o''s', format => 'json', "
        "schema => 'id BIGINT, v MAP<INT, INT>', every => INTERVAL 1 DAY, n => 3)"
    )
    call = reference.source
    assert call is not None
    assert (call.plugin, call.arguments) == ("read_files", ("data/o's",))
    assert call.options == {
        "format": "json",
        "schema": "id BIGINT, v MAP<INT, INT>",
        "every": "INTERVAL 1 DAY",
        "n": "3",
    }
    assert call.place == Place("a.sql", 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT a\nFROM", 'a.sql:6: this SQL does not parse: expected table name near "FROM"'),
        (
            "SELECT a\nFROM b c d",
            ('a.sql:6: this SQL does not parse: unexpected word or sign near "d"'),
        ),
        (
            "SELECT *\nFROM STREAM(a)\nb c",
            ('a.sql:7: this SQL does not parse: unexpected word or sign near "c"'),
        ),
        ("SELECT (a\nFROM b", "a.sql:5: this ( is never closed"),
        ("SELECT a)\nFROM b", "a.sql:5: this ) closes nothing"),
        ("DROP TABLE x", 'a.sql:5: expected a query here, found "DROP"'),
        ("SELECT 'a\nFROM b", "a.sql:5: this ' is never closed"),
        (
            "SELECT * FROM STREAM(SELECT 1)",
            (
                "a.sql:5: STREAM takes the name of a table or a source\n"
                "  hint: Write STREAM(orders), or STREAM read_files('data/orders')."
            ),
        ),
        (
            "SELECT * FROM STREAM csv.`x`",
            (
                "a.sql:5: csv.`x` can't be read as a stream\n"
                "  hint: Write STREAM read_files('x', format => 'csv')."
            ),
        ),
        (
            "SELECT * FROM IDENTIFIER(a || 'b')",
            (
                "a.sql:5: this IDENTIFIER(…) is known only when the "
                "query runs\n  hint: Write the table's name, so that Springhouse knows "
                "the inputs of the query."
            ),
        ),
        (
            "SELECT * FROM a VERSION AS OF 3",
            (
                'a.sql:5: "a" is read as of a fixed version\n'
                "  hint: Leave it out: Springhouse chooses one version of every input for "
                "each refresh."
            ),
        ),
        (
            "SELECT * FROM a TABLESAMPLE (5 ROWS)",
            (
                'a.sql:5: "a" has TABLESAMPLE but no alias\n'
                "  hint: Give it one, after the TABLESAMPLE clause: AS a."
            ),
        ),
        (
            "SELECT * FROM STREAM a WITH ('x' = 'y') b",
            (
                "a.sql:5: a table of a project is read "
                "without options\n  hint: Leave it out: Springhouse decides which "
                "rows of a table "
                "are read."
            ),
        ),
    ],
)
def test_sql_that_is_broken_is_an_error_at_its_line(text: str, message: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        references(text)
    assert str(caught.value) == message


RELATIONS = st.sampled_from(
    [
        *("orders", "shop.orders", "`Orders` o", "STREAM(orders)", "STREAM orders AS x", "c"),
        *("STREAM read_files('a', b => 'c') f", "range(10)", "delta.`a b` d"),
        "(SELECT * FROM customers)",
    ]
)
SPACES = st.sampled_from([" ", "\n", "  -- FROM nowhere\n", " /* JOIN nothing */ "])


@st.composite
def queries(draw: st.DrawFn) -> str:
    pieces = ["WITH c AS (SELECT * FROM inner_table) SELECT *", "FROM", draw(RELATIONS)]
    for relation in draw(st.lists(RELATIONS, max_size=3)):
        pieces += [draw(st.sampled_from([",", "CROSS JOIN"])), relation]
    pieces.append(draw(st.sampled_from(["", "WHERE stream > 'x'", "ORDER BY 1"])))
    return draw(SPACES).join(pieces)


@given(queries())
def test_replacing_every_reference_by_itself_gives_the_text_back(text: str) -> None:
    query = SqlQuery(text, references(text), Place("a.sql", 1))
    assert query.spliced(lambda r: text[r.start : r.end]) == text
    assert query.spliced(lambda _: None) == text


@given(queries())
def test_references_are_in_order_and_a_replaced_one_is_found_in_its_place(text: str) -> None:
    query = SqlQuery(text, references(text), Place("a.sql", 1))
    spans = [(r.start, r.end) for r in query.references]
    assert spans == sorted(spans)
    replaced = query.spliced(lambda _: "snapshot")
    assert [r.name for r in references(replaced)] == ["snapshot"] * len(spans)
