"""How does a query with GROUP BY or with an aggregate become a tree?

The tree has three layers. Below are the values of the keys and the arguments of the aggregates.
Then comes one `Aggregate`. Above it, an expression `sum(amount)` or a repeated key means a column
of the groups. The SELECT list, HAVING, QUALIFY and ORDER BY all mention the ungrouped rows. So all
of them are bound to these rows first; then columns of the groups replace their `gathered` parts.
"""

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from springhouse.views.algebra.query_tree import Aggregate
from springhouse.views.read import grouping_sets
from springhouse.views.read.block import SelectBlock, SelectClauses, short_name
from springhouse.views.read.functions import aggregates, of_nothing, validate_flat, validate_plain
from springhouse.views.read.grouping_sets import Sets
from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.sql.expressions import (
    Expression,
    Named,
    column,
    conjuncts,
    free_columns,
    replaced,
)

_ALIAS = "alias"


def read_keys(block: SelectBlock, tree: exp.Select, items: Sequence[Named]) -> Sets | None:
    """The keys and grouping sets; None if the query does not group."""
    group, having = tree.args.get("group"), tree.args.get("having")
    if group is None and having is None and not any(aggregates(value) for _, value in items):
        return None
    return grouping_sets.read(group, lambda key: _key(block, key, items), items)


def bind_having(block: SelectBlock, tree: exp.Select, items: Sequence[Named]) -> Expression | None:
    """The condition of HAVING.

    A name in it is a column if it stands inside an aggregate or is a key, and otherwise an alias.
    This is known only after grouping, so a column carries its second meaning with it.
    """
    having = tree.args.get("having")
    if having is None:
        return None
    aliases = {name.lower(): value for name, value in reversed(items)}

    def meaning(reference: exp.Column) -> Expression:
        alias = aliases.get(reference.name.lower()) if not reference.table else None
        try:
            found = block.scope.resolve(reference)
        except NotCompilable:
            if alias is None:
                raise
            return alias.copy()
        if alias is not None and alias != found:
            found.meta[_ALIAS] = alias
        return found

    condition = block.bind(having.this, meaning)
    if condition.find(exp.Window) is not None:
        raise NotCompilable("a window function in HAVING", having)
    return condition


def gathered(block: SelectBlock, sets: Sets, asked: SelectClauses) -> SelectClauses:
    """Group the rows: afterwards the block has one row per group that HAVING leaves.

    The result is the clauses of `asked`, over these groups.
    """
    keys = block.as_columns(sets.keys)
    level = None
    if sets.is_plain:
        block.gathered += zip(sets.keys, keys, strict=True)
    else:
        fresh = block.reader.fresh
        block.node, made, level = grouping_sets.expanded(block.node, sets, keys, fresh)
        block.gathered += zip(sets.keys, made, strict=True)
        keys = [*made, level]
    block.keys = tuple(keys)
    # Columns that a correlated subquery compares with the outer rows must survive the grouping.
    reaching = _outer_equalities(block)
    block.tied = tuple(block.as_columns([inner for inner, _ in reaching]))
    block.correlated = [
        exp.EQ(this=column(name), expression=outer)
        for name, (_, outer) in zip(block.tied, reaching, strict=True)
    ]
    measures = [each for value in asked.values for each in _measures(block, value, sets, level)]
    if asked.having is not None and not keys and not measures:
        raise NotCompilable("HAVING without GROUP BY or an aggregate", asked.having)
    rows = frozenset(block.node.columns)
    block.node = Aggregate(block.node, tuple(dict.fromkeys((*keys, *block.tied))), tuple(measures))
    asked = asked.mapped(lambda value: _over_groups(block, value, rows))
    if asked.having is not None:
        block.keep_in_order(conjuncts(asked.having))
    return asked


def validate_ungrouped(asked: SelectClauses) -> None:
    """Refuse aggregates in later clauses of a query that does not group."""
    for clause, values in (("QUALIFY", [asked.qualify]), ("ORDER BY", asked.order)):
        for value in values:
            if value is not None and aggregates(value):
                raise NotCompilable(f"an aggregate in {clause} of rows that are not grouped", value)


def on_nothing(block: SelectBlock, value: Expression) -> Expression:
    """The value of an expression over the groups if the aggregates have no rows at all."""
    used = free_columns(value)
    return replaced(
        value, {name: of_nothing(each) for each, name in block.gathered if name in used}
    )


def is_met_by_nothing(block: SelectBlock, having: Expression) -> bool:
    """Whether HAVING may keep a group without rows."""
    left = simplify(on_nothing(block, having), dialect="spark")
    return not isinstance(left, exp.Null) and left != exp.false()


def _key(block: SelectBlock, key: Expression, items: Sequence[Named]) -> Expression:
    """A key of GROUP BY: a position in the SELECT list, or an expression with possible aliases."""
    if key.is_int and isinstance(key, exp.Literal):
        bound = item_at(key, items, "GROUP BY")
    else:
        bound = block.bind(key)
    validate_plain(bound, "GROUP BY", key)
    return bound


def item_at(place: exp.Literal, items: Sequence[Named], clause: str) -> Expression:
    """The item at a position of the SELECT list, counted from 1."""
    number = int(place.name)
    if not 1 <= number <= len(items):
        raise NotCompilable(f"{clause} {number} is no place in the SELECT list", place)
    return items[number - 1][1]


def _outer_equalities(block: SelectBlock) -> list[tuple[Expression, Expression]]:
    """Correlated equalities as (value of the inner rows, value of the outer rows)."""
    own = set(block.node.columns)
    pairs: list[tuple[Expression, Expression]] = []
    for condition in block.correlated:
        sides = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else ()
        inner = [s for s in sides if free_columns(s) and free_columns(s) <= own]
        outer = [s for s in sides if not free_columns(s) & own]
        if len(inner) != 1 or len(outer) != 1:
            raise NotCompilable(
                "a subquery that aggregates is tied to the query around it by something other "
                "than an equality",
                condition,
            )
        pairs.append((inner[0], outer[0]))
    return pairs


def _measures(block: SelectBlock, value: Expression, sets: Sets, level: str | None) -> list[Named]:
    """A column for each aggregate in the expression that does not have a column yet."""
    made: list[Named] = []
    for each in aggregates(value):
        if any(each == known for known, _ in block.gathered):
            continue
        if isinstance(each, exp.Grouping | exp.GroupingId):
            continue
        validate_flat(each)
        if block.holds(each):
            raise NotCompilable("a subquery in an aggregate", each)
        if free_columns(each) - set(block.node.columns):
            raise NotCompilable(
                "an aggregate of a subquery over columns of the query around it", each
            )
        made.append((block.reader.fresh(short_name(each)), each))
        block.gathered.append((each, made[-1][0]))
    for each in value.find_all(exp.Grouping, exp.GroupingId):
        if level is None:
            raise NotCompilable("`grouping` without GROUPING SETS, ROLLUP or CUBE", each)
        block.gathered.append((each, grouping_sets.level_text(each, sets, level)))
    return made


def _over_groups(block: SelectBlock, value: Expression, rows: frozenset[str]) -> Expression:
    """An expression over the ungrouped rows, rewritten over the groups."""

    def swap(each: Expression) -> Expression:
        for known, name in block.gathered:
            if each == known:
                return column(name) if " " not in name else grouping_sets.as_value(name)
        if isinstance(each, exp.Column) and _ALIAS in each.meta:
            return _over_groups(block, each.meta[_ALIAS], rows)
        if isinstance(each, exp.Column) and each.name in rows - set(block.node.columns):
            shown = block.scope.shown(each.name)
            raise NotCompilable(f"`{shown}` is neither grouped by nor inside an aggregate", each)
        return each

    return value.copy().transform(swap, copy=False)
