"""Which rows are the first ones?

ORDER BY decides it, and matters only together with LIMIT: the rows of a view have no order of their
own. What rows are ordered by and not selected travels beside the outputs, until the limit is taken.
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from springhouse.views.algebra import Expression, Named, Node, TopK, column
from springhouse.views.block import Block
from springhouse.views.group_by import bind_above
from springhouse.views.refused import Refused


def is_limited(tree: exp.Expr) -> bool:
    """Whether a query wants some of its rows only."""
    return tree.args.get("limit") is not None or tree.args.get("offset") is not None


def ordering(
    block: Block, tree: exp.Expr, outputs: Sequence[Named], names: Sequence[str]
) -> list[exp.Ordered]:
    """The order, over the names of the outputs where it names them; only a limit needs it."""
    order = tree.args.get("order")
    if order is None or not is_limited(tree):
        return []
    shown = {name.lower(): unique for name, (unique, _) in zip(names, outputs, strict=True)}
    found = []
    for each in order.expressions:
        value = each.this
        if isinstance(value, exp.Literal) and not value.is_string:
            key: Expression = column(outputs[int(value.name) - 1][0])
        elif isinstance(value, exp.Column) and not value.table and value.name.lower() in shown:
            key = column(shown[value.name.lower()])
        else:
            block.scope.given = {}
            key = bind_above(block, value)
            if block.holds(key) or key.find(exp.Window):
                raise Refused("ORDER BY a subquery or a window function", each)
            key = next((column(n) for n, v in outputs if v == key), key)
        copy = each.copy()
        copy.set("this", key)
        found.append(copy)
    return found


def unselected(
    order: Sequence[exp.Ordered], outputs: Sequence[Named], fresh: Callable[[str], str]
) -> list[Named]:
    """What the rows are ordered by and not selected, as columns of their own."""
    selected = {name for name, _ in outputs}
    extra: list[Named] = []
    for each in order:
        value = each.this
        if isinstance(value, exp.Column) and value.name in selected:
            continue
        name = fresh("order_key")
        extra.append((name, value.copy()))
        each.set("this", column(name))
    return extra


def limited(node: Node, order: Sequence[exp.Ordered], tree: exp.Expr) -> Node:
    """The first rows, as many as LIMIT and OFFSET say."""
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    if limit is None:
        raise Refused("OFFSET without LIMIT", tree)
    if not order:
        raise Refused("LIMIT without ORDER BY gives other rows each time", tree)
    return TopK(node, tuple(order), _count(limit), _count(offset) if offset is not None else 0)


def _count(clause: exp.Expr) -> int:
    value = clause.expression
    if isinstance(value, exp.Literal) and not value.is_string:
        return int(value.name)
    raise Refused("LIMIT and OFFSET have to be numbers", clause)
