"""Which nodes does our dialect add to sqlglot's trees?

One class for each statement of a project, and for the parts of statements that sqlglot does not
know. Every such node, and every relation of a query (`exp.Table`), carries its place in the text:
`span(node)` gives the offsets, so that a declaration keeps the user's own words.
"""

from typing import ClassVar

from sqlglot import exp

STREAM = "stream"
"""The mark of a relation that is read as a stream: `STREAM orders`."""
NO_ALIAS = "no_alias"
"""The mark of a relation that takes no alias: `TABLE orders`."""
WATERMARK = "watermark"
"""The mark of an alias that stands behind a WATERMARK clause."""


def span(node: exp.Expr) -> tuple[int, int] | None:
    """The offsets `start` and `end` of the text of a node, if it has a place in the text."""
    found: tuple[int, int] | None = node.meta.get("span")
    return found


def text_of(node: exp.Expr, text: str) -> str:
    """The words of a node that the parser of this dialect made."""
    found = span(node)
    assert found is not None, f"{node.key} has a place in the text"
    return text[found[0] : found[1]]


def start_of(node: exp.Expr) -> int:
    """The offset at which a node begins that the parser of this dialect made."""
    found = span(node)
    assert found is not None, f"{node.key} has a place in the text"
    return found[0]


def name_start(table: exp.Table) -> int:
    """The offset at which the name of a relation begins; STREAM may stand before it."""
    found: int | None = table.meta.get("name_start")
    return start_of(table) if found is None else found


class CallArgument(exp.Expression):
    """`'data'` or `format => 'json'` in the call of a source.

    `value` is the text of a string literal; `name` is the option.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "name": False, "value": False}


class DeclaredName(exp.Expression):
    """The name of a table, view or flow, in parts; `identifier` is that of IDENTIFIER('name')."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False, "identifier": False}


class ColumnDefinition(exp.Expression):
    """`id BIGINT NOT NULL COMMENT 'who'`; `typed` says whether there is a type."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "typed": False, "comment": False}


class SchemaColumn(exp.Expression):
    """A column of a schema; `nested` says that its values have parts, `required` NOT NULL."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "nested": False,
        "required": False,
        "comment": False,
    }


class SchemaColumns(exp.Expression):
    """`id BIGINT NOT NULL, name STRING COMMENT 'who'`."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class ExpectConstraint(exp.Expression):
    """`CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION DROP ROW`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True, "on_violation": False}


class TablePropertyText(exp.Expression):
    """`'key' = 'value'` in TBLPROPERTIES."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "value": True}


class QueryText(exp.Expression):
    """A query inside a statement."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class ValueText(exp.Expression):
    """An expression inside a statement: a condition, or what orders changes."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


_STORED = {
    "this": True,
    "columns": False,
    "expectations": False,
    "partition_by": False,
    "comment": False,
    "properties": False,
    "query": False,
}


class CreateStreamingTable(exp.Expression):
    """`CREATE STREAMING TABLE orders … [AS query]`."""

    arg_types: ClassVar[dict[str, bool]] = _STORED


class CreateMaterializedView(exp.Expression):
    """`CREATE MATERIALIZED VIEW sales … AS query`."""

    arg_types: ClassVar[dict[str, bool]] = _STORED


class CreateTemporaryView(exp.Expression):
    """`CREATE [TEMPORARY] VIEW recent … AS query`."""

    arg_types: ClassVar[dict[str, bool]] = _STORED


class CreateAppendFlow(exp.Expression):
    """`CREATE FLOW more AS INSERT INTO [ONCE] orders [BY NAME] query`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "target": True,
        "query": True,
        "by_name": False,
        "once": False,
    }


class CreateCdcFlow(exp.Expression):
    """`CREATE FLOW changes AS AUTO CDC INTO customers FROM STREAM(log) KEYS (id) …`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "target": True,
        "source": True,
        "once": False,
        "keys": False,
        "sequence_by": False,
        "delete_when": False,
        "columns": False,
        "except_columns": False,
        "scd_type": False,
    }


class SetConfiguration(exp.Expression):
    """`SET spark.sql.x = y`, `SET TIME ZONE 'UTC'`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "value": True}


class UseOwn(exp.Expression):
    """`USE shop`, `SET CATALOG main`: names the database or the catalog of the project."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}
