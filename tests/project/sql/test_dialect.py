import pytest
from sqlglot import Dialect, exp

from springhouse.errors import DeclarationError
from springhouse.project.sql import syntax
from springhouse.project.sql.dialect import SpringhouseSql, parse_query, parse_statement
from springhouse.project.sql.sql_text import SqlText, tokenize


def statement(text: str) -> exp.Expr:
    sql = SqlText(text, "a.sql")
    tree, _ = parse_statement(sql, tokenize(sql)[0])
    assert isinstance(tree, exp.Expr), tree
    return tree


def query(text: str) -> exp.Expr:
    sql = SqlText(text, "a.sql")
    return parse_query(sql, tokenize(sql)[0])


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("CREATE STREAMING TABLE t", syntax.CreateStreamingTable),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", syntax.CreateMaterializedView),
        ("CREATE TEMPORARY VIEW v AS SELECT 1", syntax.CreateTemporaryView),
        ("CREATE FLOW f AS INSERT INTO t SELECT 1", syntax.CreateAppendFlow),
        (
            "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (a) SEQUENCE BY b",
            syntax.CreateCdcFlow,
        ),
        ("SET a = b", syntax.SetConfiguration),
        ("USE shop", syntax.UseOwn),
    ],
)
def test_each_statement_is_a_node_that_spans_its_text(text: str, node: type[exp.Expr]) -> None:
    tree = statement(text)
    assert type(tree) is node
    assert syntax.text_of(tree, text) == text


def test_a_condition_is_a_tree_and_keeps_the_users_words() -> None:
    text = "CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a  >  0 and f(b)) ON VIOLATION DROP ROW)"
    (constraint,) = statement(text).args["expectations"]
    condition = constraint.args["expression"]
    assert syntax.text_of(condition, text) == "a  >  0 and f(b)"
    assert {column.name for column in condition.find_all(exp.Column)} == {"a", "b"}


def test_a_stream_is_a_table_of_the_tree_with_its_alias_and_its_joins() -> None:
    text = "SELECT * FROM STREAM(shop.orders) AS o JOIN customers c ON o.id = c.id"
    stream, table = query(text).find_all(exp.Table)
    assert (stream.sql(), stream.alias) == ("shop.orders AS o", "o")
    assert syntax.text_of(stream, text) == "STREAM(shop.orders)"
    assert stream.meta.get(syntax.STREAM)
    assert not table.meta.get(syntax.STREAM)


def test_options_of_a_source_may_have_any_name() -> None:
    tree = query("SELECT * FROM STREAM read_files('a', limit => 1, comment => '#', end => 'x')")
    table = tree.find(exp.Table)
    assert table is not None
    arguments = [(a.args["name"], a.args["value"]) for a in table.this.expressions]
    assert arguments == [(None, "a"), ("limit", None), ("comment", "#"), ("end", "x")]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a + \n",
        "SELECT * FROM STREAM read_files(\n",
        "SELECT * FROM f(a b)",
        "SELECT CASE",
        "ELSE",
    ],
)
def test_whatever_does_not_parse_is_an_error_of_the_file(text: str) -> None:
    with pytest.raises(DeclarationError, match=r"(?s)^a\.sql:[12]: "):
        query(text)


def test_sqlglot_knows_the_dialect_by_its_name() -> None:
    assert Dialect.get_or_raise("springhousesql").__class__ is SpringhouseSql
