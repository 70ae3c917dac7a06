import pytest

from springhouse.project.declarations.declaration import Place, SqlQuery
from springhouse.project.declarations.names import Names
from springhouse.project.sql.references import find_references
from springhouse.project.sql.sql_text import SqlText
from springhouse.project.sql.streaming_state import stateful_part


def remembers(text: str) -> str | None:
    references = find_references(SqlText(text, "a.sql"), Names())
    return stateful_part(SqlQuery(text, references, Place("a.sql", 1)), Names())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a + 1 FROM STREAM(s) WHERE b > 0",
        "SELECT * FROM STREAM(s) JOIN t USING (id)",
        "SELECT * FROM STREAM(s) LEFT JOIN t USING (id)",
        "SELECT * FROM t RIGHT JOIN STREAM(s) USING (id)",
        "SELECT * FROM STREAM(s) JOIN (SELECT id, max(v) FROM t GROUP BY id) USING (id)",
        "SELECT * FROM STREAM(s) WHERE id IN (SELECT max(id) FROM t)",
        "SELECT (SELECT max(v) FROM t), a FROM STREAM(s)",
        "SELECT * FROM STREAM(a) UNION ALL SELECT * FROM STREAM(b)",
        "WITH n AS (SELECT * FROM STREAM(s)) SELECT * FROM n LATERAL VIEW explode(x) e AS y",
        "WITH s AS (SELECT count(*) AS n FROM t) SELECT * FROM STREAM(x), s",
    ],
)
def test_what_each_new_row_decides_alone_needs_no_memory(text: str) -> None:
    assert remembers(text) is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("SELECT a, sum(b) FROM STREAM(s) GROUP BY a", "GROUP BY"),
        ("SELECT count(*) FROM STREAM(s)", "the aggregate count"),
        ("SELECT 1 + max(b) FROM STREAM(s)", "the aggregate max"),
        ("SELECT DISTINCT a FROM STREAM(s)", "DISTINCT"),
        ("SELECT * FROM STREAM(s) ORDER BY a", "ORDER BY"),
        ("SELECT * FROM STREAM(s) LIMIT 1", "LIMIT"),
        ("SELECT row_number() OVER (ORDER BY a) FROM STREAM(s)", "a window function"),
        ("SELECT * FROM STREAM(a) JOIN STREAM(b) USING (id)", "a join of two streams"),
        ("SELECT * FROM STREAM(a), STREAM read_files('x')", "a join of two streams"),
        ("WITH n AS (SELECT * FROM STREAM(a)) SELECT * FROM n x JOIN n y", "a join of two streams"),
        (
            "SELECT * FROM t LEFT JOIN STREAM(s) USING (id)",
            "a LEFT JOIN that keeps or drops rows of a table",
        ),
        (
            "SELECT * FROM t LEFT ANTI JOIN STREAM(s) USING (id)",
            "a LEFT JOIN that keeps or drops rows of a table",
        ),
        (
            "SELECT * FROM STREAM(s) FULL JOIN t USING (id)",
            "a FULL JOIN that keeps or drops rows of a table",
        ),
        ("SELECT * FROM t WHERE id IN (SELECT id FROM STREAM(s))", "a stream in a subquery"),
        ("SELECT * FROM STREAM(a) UNION SELECT * FROM STREAM(b)", "UNION without ALL"),
        ("SELECT * FROM STREAM(a) EXCEPT SELECT * FROM t", "EXCEPT without ALL"),
        ("SELECT * FROM (SELECT DISTINCT a FROM STREAM(s))", "DISTINCT"),
        ("WITH n AS (SELECT max(a) FROM STREAM(s)) SELECT * FROM n", "the aggregate max"),
    ],
)
def test_what_earlier_rows_help_to_decide_needs_memory(text: str, what: str) -> None:
    assert remembers(text) == what
