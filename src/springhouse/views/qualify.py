"""Where are window functions computed, and which rows does QUALIFY keep?

After the groups and before the SELECT list: every window function in the list or in QUALIFY gets a
column of its own, one `Window` for all that share a partition, and is then that column.
"""

from collections.abc import Sequence

from sqlglot import exp

from springhouse.views.algebra import Expression, Named, Window, column, conjuncts
from springhouse.views.block import Block, short_name
from springhouse.views.group_by import bind_above
from springhouse.views.refused import Refused


def qualified(block: Block, tree: exp.Select, items: list[Named]) -> list[Named]:
    """The SELECT list over rows that have window functions as columns and meet QUALIFY."""
    names, values = [name for name, _ in items], [value for _, value in items]
    qualify = tree.args.get("qualify")
    if qualify is None:
        return list(zip(names, _as_columns(block, values), strict=True))
    block.scope.given |= {name.lower(): value for name, value in items}
    *values, condition = _as_columns(block, [*values, bind_above(block, qualify.this)])
    block.keep_in_order(conjuncts(condition))
    return list(zip(names, values, strict=True))


def _as_columns(block: Block, values: Sequence[Expression]) -> list[Expression]:
    """The values with every window function in a column of its own."""
    columns: list[tuple[Expression, str]] = []
    by_partition: dict[tuple[str, ...], list[Named]] = {}
    for each in (window for value in values for window in value.find_all(exp.Window)):
        if any(each == known for known, _ in columns):
            continue
        partition = block.as_columns(each.args.get("partition_by") or [])
        spread = each.copy()
        spread.set("partition_by", [column(name) for name in partition])
        name = block.reader.fresh(short_name(each.this))
        by_partition.setdefault(tuple(dict.fromkeys(partition)), []).append((name, spread))
        columns.append((each.copy(), name))
    for keys, functions in by_partition.items():
        if any(block.holds(function) for _, function in functions):
            raise Refused("a subquery in a window function")
        block.node = Window(block.node, keys, tuple(functions))
    if not columns:
        return list(values)

    def swap(each: Expression) -> Expression:
        return next((column(name) for known, name in columns if each == known), each)

    return [value.copy().transform(swap, copy=False) for value in values]
