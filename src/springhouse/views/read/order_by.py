"""Which rows are the first ones?

ORDER BY decides this, and matters only together with LIMIT: the rows of a view have no order of
their own. Values that order the rows but are not selected travel beside the outputs, until LIMIT
has been applied.
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from springhouse.views.algebra.query_tree import Node, TopK
from springhouse.views.read.block import SelectBlock
from springhouse.views.read.group_by import item_at
from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.sql.expressions import Expression, Named, column


def is_limited(tree: exp.Expr) -> bool:
    """Whether a query keeps only some of its rows."""
    return tree.args.get("limit") is not None or tree.args.get("offset") is not None


def bind_order(
    block: SelectBlock, tree: exp.Expr, items: Sequence[Named]
) -> tuple[exp.Ordered, ...]:
    """The order, if a limit needs it; a name means an item of the SELECT list, or else a column."""
    order = tree.args.get("order")
    if order is None or not is_limited(tree):
        return ()

    def meaning(reference: exp.Column) -> Expression:
        name = reference.name.lower() if not reference.table else ""
        shown = [value for shown, value in items if shown.lower() == name]
        if any(value != shown[0] for value in shown):
            raise NotCompilable(f"`{reference.name}` could be two columns", reference)
        return shown[0].copy() if shown else block.scope.resolve(reference)

    bound = []
    for each in order.expressions:
        copy = each.copy()
        place = isinstance(each.this, exp.Literal) and each.this.is_int
        key = item_at(each.this, items, "ORDER BY") if place else block.bind(each.this, meaning)
        copy.set("this", key.copy())
        bound.append(copy)
    return tuple(bound)


def ordered_outputs(
    order: Sequence[exp.Ordered], outputs: Sequence[Named], fresh: Callable[[str], str]
) -> tuple[list[exp.Ordered], list[Named]]:
    """The order over the outputs, and the columns that it needs but that are not selected."""
    over, extra = [], list[Named]()
    for each in order:
        known = [name for name, value in (*outputs, *extra) if value == each.this]
        if not known:
            known = [fresh("order_key")]
            extra.append((known[0], each.this.copy()))
        copy = each.copy()
        copy.set("this", column(known[0]))
        over.append(copy)
    return over, extra


def limited(node: Node, order: Sequence[exp.Ordered], tree: exp.Expr) -> Node:
    """The first rows, as many as LIMIT and OFFSET say."""
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    if limit is None:
        raise NotCompilable("OFFSET without LIMIT", tree)
    if not order:
        raise NotCompilable("LIMIT without ORDER BY gives other rows each time", tree)
    return TopK(node, tuple(order), _count(limit), _count(offset) if offset is not None else 0)


def _count(clause: exp.Expr) -> int:
    value = clause.expression
    if isinstance(value, exp.Literal) and value.is_int:
        return int(value.name)
    raise NotCompilable("LIMIT and OFFSET have to be numbers", clause)
