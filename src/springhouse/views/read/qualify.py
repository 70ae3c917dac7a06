"""Where are window functions computed, and which rows does QUALIFY keep?

Window functions are computed after the groups and before the SELECT list. Every window function in
the list, in QUALIFY or in ORDER BY gets a column of its own, and the column replaces the function.
Functions with the same partition share one `Window`.
"""

from collections.abc import Sequence

from sqlglot import exp

from springhouse.views.algebra.query_tree import Window
from springhouse.views.read.block import SelectBlock, SelectClauses, short_name
from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.sql.expressions import Expression, Named, column, conjuncts


def bind_qualify(block: SelectBlock, tree: exp.Select) -> Expression | None:
    """The condition of QUALIFY; a name in it means a column, or else an alias."""
    qualify = tree.args.get("qualify")
    return block.bind(qualify.this) if qualify is not None else None


def qualified(block: SelectBlock, asked: SelectClauses) -> SelectClauses:
    """Keep the rows that meet QUALIFY; the clauses come back with columns for window functions."""
    columns = _as_columns(block, asked.values)

    def swap(each: Expression) -> Expression:
        return next((column(name) for known, name in columns if each == known), each)

    if columns:
        asked = asked.mapped(lambda value: value.copy().transform(swap, copy=False))
    if asked.qualify is not None:
        block.keep_in_order(conjuncts(asked.qualify))
    return asked


def _as_columns(block: SelectBlock, values: Sequence[Expression]) -> list[tuple[Expression, str]]:
    """Every window function of the values, with the column that replaces it."""
    columns: list[tuple[Expression, str]] = []
    by_partition: dict[tuple[str, ...], list[Named]] = {}
    for each in (window for value in values for window in value.find_all(exp.Window)):
        if any(each == known for known, _ in columns):
            continue
        if block.correlated:
            # The function would see all rows, because the outer row selects its rows only later.
            raise NotCompilable("a window function in a correlated subquery", each)
        partition = block.as_columns(each.args.get("partition_by") or [])
        spread = each.copy()
        spread.set("partition_by", [column(name) for name in partition])
        name = block.reader.fresh(short_name(each.this))
        by_partition.setdefault(tuple(dict.fromkeys(partition)), []).append((name, spread))
        columns.append((each.copy(), name))
    for keys, functions in by_partition.items():
        block.validate_own([function for _, function in functions], "a window function")
        block.node = Window(block.node, keys, tuple(functions))
    return columns
