"""How is the tree of a statement written as text?

People and Spark can't read trees, so they get text. Spark's text is a *template*: a Python format
string with one field per relation, because the location of a relation is known only when the
statement runs.

    SELECT id FROM {orders_change} AS orders_change

`session.sql(text, orders=frame)` formats its text once more, for DataFrames. So in a template every
other brace is doubled twice: once for each time that the text is formatted.
"""

from collections.abc import Collection
from typing import ClassVar

from sqlglot import exp
from sqlglot.generators.spark import SparkGenerator

from springhouse.views.sql.expressions import Expression
from springhouse.views.sql.sql_tree import FromClause, select


def spark_sql(query: Expression) -> str:
    """A query in Spark's SQL, over several lines."""
    return _StatementGenerator(dialect="spark", pretty=True).generate(query)


def template(query: Expression, relations: Collection[str]) -> str:
    """A query in Spark's SQL, with a field in the place of each of these relations.

    >>> query = exp.select("*").from_("orders").where("note = '{'")
    >>> text = template(query, {"orders"})
    >>> text.format(orders="{frame}")
    "SELECT * FROM {frame} AS orders WHERE note = '{{'"
    """
    tree = query.copy()
    fields: list[exp.Table] = []
    for node in tree.walk():
        if isinstance(node, exp.Table) and node.name in relations:
            fields.append(node)
        for key, value in node.args.items():
            if isinstance(value, str) and not value.isidentifier():
                node.args[key] = braced(braced(value))
    for node in fields:
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
        node.set("this", exp.Identifier(this=f"{{{node.name}}}", quoted=False))
    return _StatementGenerator(dialect="spark").generate(tree, copy=False)


class _StatementGenerator(SparkGenerator):
    """Writes a tree as it is.

    The Spark generator of sqlglot first searches each SELECT for constructs of other dialects that
    Spark lacks. This walks the whole tree once per SELECT, and our trees have no such constructs.
    """

    TRANSFORMS: ClassVar = {
        kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind is not exp.Select
    }


def braced(text: str) -> str:
    """Text, escaped for a format string.

    >>> braced("a{b}").format()
    'a{b}'
    """
    return text.replace("{", "{{").replace("}", "}}")


def in_one_place(query: Expression) -> Expression:
    """The query with all rows of each union brought into one partition.

    Use it if each relation lies in one partition. Spark does not shuffle such a relation. But a
    union has one partition per side, so the query has to bring these together.
    """
    tree = query.copy()
    for union in list(tree.find_all(exp.Union)):
        if isinstance(union.parent, exp.Union):
            continue
        parent, key, index = union.parent, union.arg_key or "", union.index
        with_ = union.args.pop("with_", None)
        whole = select([exp.Star()], FromClause(exp.Subquery(this=union)))
        hint = exp.Anonymous(this="COALESCE", expressions=[exp.Literal.number(1)])
        whole.set("hint", exp.Hint(expressions=[hint]))
        whole.set("with_", with_)
        if parent is None:
            tree = whole
        else:
            parent.set(key, whole, index)
    return tree
