"""Several queries in one pass over a source give the rows that DuckDB gives for each query."""

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springhouse.flows.one_pass import NeedsOwnPass, OnePass, QueryOutput, condition, row_selection
from springhouse.project.declarations.declaration import Place, PythonQuery, SqlQuery
from springhouse.project.declarations.names import Names
from springhouse.project.sql.references import find_references
from springhouse.project.sql.sql_text import SqlText

COLUMNS = ("id", "amount", "kind")


def query(text: str) -> SqlQuery:
    references = find_references(SqlText(text, "all.sql"), Names("", ""))
    return SqlQuery(text, references, Place("all.sql", 1))


def reading(select: str, where: str = "", alias: str = "") -> SqlQuery:
    kept = f" WHERE {where}" if where else ""
    return query(f"SELECT {select} FROM STREAM(orders){alias}{kept}")


def rows_of(
    one: OnePass, lane: QueryOutput, given: list[tuple[object, ...]]
) -> list[tuple[object, ...]]:
    """The rows of the pass for one lane, computed by DuckDB."""
    with duckdb.connect() as database:
        database.execute("CREATE TABLE orders (id BIGINT, amount BIGINT, kind VARCHAR)")
        if given:
            database.executemany("INSERT INTO orders VALUES (?, ?, ?)", given)
        text = "SELECT * FROM orders"
        for level in one.levels:
            more = ", ".join(f"{sql} AS {name}" for name, sql in level.items())
            text = f"SELECT *, {more} FROM ({text})"
        columns = ", ".join(f"`{column}`" for _, column in lane.columns)
        kept = f" WHERE {lane.flag}" if lane.flag else ""
        return database.sql(f"SELECT {columns} FROM ({text}){kept}".replace("`", '"')).fetchall()


def expected(text: str, given: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    with duckdb.connect() as database:
        database.execute("CREATE TABLE orders (id BIGINT, amount BIGINT, kind VARCHAR)")
        if given:
            database.executemany("INSERT INTO orders VALUES (?, ?, ?)", given)
        return database.sql(text).fetchall()


ROWS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.one_of(st.none(), st.integers(-5, 5)),
        st.one_of(st.none(), st.sampled_from("ab")),
    ),
    max_size=12,
)
SELECTED = [
    "*",
    "id, amount",
    "kind AS what, amount * 2 AS id",
    "CASE WHEN amount > 1 THEN 'much' ELSE kind END AS size, id",
    "o.id AS number, coalesce(o.amount, 0) AS amount, o.kind",
]
KEPT = ["", "amount > 0", "kind = 'a' OR amount IS NULL", "o.amount + id > 3"]


@settings(max_examples=25, deadline=None)
@given(
    ROWS,
    st.tuples(
        st.sampled_from(["id, amount, kind", "id, -amount AS amount, kind"]),
        st.sampled_from(KEPT[:3]),
    ),
    st.lists(st.tuples(st.sampled_from(SELECTED), st.sampled_from(KEPT)), min_size=1, max_size=4),
)
def test_side_by_side_and_through_a_view_they_give_what_each_gives_alone(
    rows: list[tuple[object, ...]], view: tuple[str, str], tables: list[tuple[str, str]]
) -> None:
    one = OnePass(COLUMNS)
    seen = one.select(one.begin(), row_selection(reading(*view)))
    inner = f"(SELECT {view[0]} FROM orders{' WHERE ' + view[1] if view[1] else ''}) AS o"
    for select, where in tables:
        lane = one.select(seen, row_selection(reading(select, where, " AS o")))
        whole = f"SELECT {select} FROM {inner}{' WHERE ' + where if where else ''}"
        assert sorted(rows_of(one, lane, rows), key=repr) == sorted(expected(whole, rows), key=repr)


def test_what_is_passed_on_is_no_column_and_what_is_the_same_is_computed_once() -> None:
    one = OnePass(COLUMNS)
    first = one.select(one.begin(), row_selection(reading("*", "amount > 0")))
    second = one.select(one.begin(), row_selection(reading("id AS number, `Kind`", "amount > 0")))
    assert first == QueryOutput((("id", "id"), ("amount", "amount"), ("kind", "kind")), first.flag)
    assert second == QueryOutput((("number", "id"), ("Kind", "kind")), first.flag)
    assert one.levels == [{first.flag: "coalesce((`amount` > 0), false)"}]


def test_what_a_condition_spared_is_not_computed() -> None:
    one = OnePass(COLUMNS)
    lane = one.select(one.begin(), row_selection(reading("CAST(kind AS INT) AS n", "kind <> 'x'")))
    (name, column), flag = lane.columns[0], lane.flag
    assert (name, one.levels[1][column]) == (
        "n",
        f"CASE WHEN `{flag}` THEN (CAST(`kind` AS INT)) END",
    )


def test_only_names_of_columns_are_replaced() -> None:
    one = OnePass(("xs", "amount", "place"))
    said = "transform(o.xs, amount -> amount + 1) /* amount */ AS more, o.place.amount AS a, "
    said += "'amount' AS text, date_trunc('DAY', o.amount) AS day"
    lane = one.select(one.begin(), row_selection(reading(said, alias=" AS o")))
    assert [one.levels[0][column] for _, column in lane.columns] == [
        "(transform(`xs`, amount -> amount + 1))",
        "(`place`.amount)",
        "('amount')",
        "(date_trunc('DAY', `amount`))",
    ]


def test_a_condition_of_a_table() -> None:
    one = OnePass(COLUMNS)
    lane = one.select(one.begin(), row_selection(reading("amount AS price", "id > 1")))
    column = one.compute(lane, condition("price > 0"))
    judged = "(coalesce((`amount` > 0), false))"
    assert one.levels[-1][column] == f"CASE WHEN `{lane.flag}` THEN {judged} END"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT count(*) AS n FROM STREAM(orders)", "count looks at more than one row"),
        ("SELECT id FROM STREAM(orders) GROUP BY id", "it has GROUP"),
        ("SELECT DISTINCT id FROM STREAM(orders)", "it has DISTINCT"),
        ("SELECT id FROM STREAM(orders) LIMIT 3", "it has LIMIT"),
        ("SELECT explode(xs) AS x FROM STREAM(orders)", "explode makes several rows of one"),
        ("SELECT inline(xs) FROM STREAM(orders)", "inline makes several rows of one"),
        ("SELECT o.id FROM STREAM(orders) o JOIN customers c ON c.id = o.id",
         "it does not read one input alone"),
        ("SELECT id FROM STREAM(orders) UNION ALL SELECT id FROM STREAM(more)",
         "it does not read one input alone"),
        ("SELECT row_number() OVER (ORDER BY id) AS n FROM STREAM(orders)",
         "window looks at more than one row"),
        ("SELECT id, amount * 2 FROM STREAM(orders)", "it has a column without a name"),
        ("SELECT * EXCEPT (id) FROM STREAM(orders)", "it chooses among the columns of *"),
        ("SELECT input_file_name() AS f FROM STREAM(orders)",
         "input_file_name asks for the file of a row"),
        ("SELECT id FROM STREAM(orders) TABLESAMPLE (10 PERCENT) AS o",
         "it does more with its input than to read it"),
        ("WITH o AS (SELECT 1 AS one) SELECT id FROM STREAM(orders)", "it has WITH"),
    ],
)  # fmt: skip
def test_what_needs_a_pass_of_its_own_says_why(text: str, why: str) -> None:
    with pytest.raises(NeedsOwnPass) as caught:
        row_selection(query(text))
    assert str(caught.value) == why


def test_a_function_and_a_name_that_nobody_has() -> None:
    with pytest.raises(NeedsOwnPass, match="it is a Python function"):
        row_selection(PythonQuery(lambda: None, (), "", Place("all.py", 1)))
    one = OnePass(COLUMNS)
    later = row_selection(reading("amount + 1 AS more, more * 2 AS most"))
    with pytest.raises(NeedsOwnPass, match='it is not known where "more" comes from'):
        one.select(one.begin(), later)
    twice = row_selection(reading("*, amount AS id"))
    with pytest.raises(NeedsOwnPass, match='it has two columns "id"'):
        one.select(one.begin(), twice)
