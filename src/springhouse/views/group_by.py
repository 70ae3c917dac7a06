"""What becomes of a query whose rows are gathered, by GROUP BY or by an aggregate?

Below, the values of the keys and the arguments of the aggregates; then one `Aggregate`; above it,
an expression that says `sum(amount)` or repeats a key means a column of the groups. The block
remembers which (`gathered`), because HAVING, QUALIFY, the SELECT list and ORDER BY all speak of
groups in terms of the rows that were gathered.
"""

from collections.abc import Sequence

from sqlglot import exp

from springhouse.views import grouping_sets
from springhouse.views.algebra import (
    Aggregate,
    Expression,
    Named,
    column,
    conjuncts,
    free_columns,
    replaced,
)
from springhouse.views.block import Block, short_name
from springhouse.views.functions import is_aggregate
from springhouse.views.refused import Refused


def gathered(block: Block, tree: exp.Select, items: list[Named]) -> list[Named]:
    """The SELECT list over the groups that HAVING leaves, or as it was if nothing gathers rows."""
    group, having = tree.args.get("group"), tree.args.get("having")
    later = [having.this] if having is not None else []
    later += [each.this for each in (tree.args.get("order") or exp.Order()).expressions]
    if group is not None or any(map(_gathers, [*(v for _, v in items), *later])):
        _group(block, group, items, having)
        return [(name, _over_groups(block, value)) for name, value in items]
    if having is not None:
        raise Refused("HAVING without GROUP BY or an aggregate", having)
    return items


def bind_above(block: Block, value: Expression) -> Expression:
    """Bind an expression of a later clause: it speaks of groups, if there are any."""
    bound = block.bind(value)
    return _over_groups(block, bound) if block.keys is not None else bound


def on_nothing(block: Block, value: Expression) -> Expression:
    """What an item of the SELECT list is when its aggregates have gathered no row at all."""
    nothing: dict[str, Expression] = {}
    for aggregate, name in block.gathered:
        counts = isinstance(aggregate, exp.Count | exp.CountIf)
        nothing[name] = exp.Literal.number(0) if counts else exp.Null()
    return replaced(value, nothing)


def _group(
    block: Block, group: exp.Group | None, items: Sequence[Named], having: exp.Having | None
) -> None:
    """Gather the rows: afterwards the block has one row per group."""
    block.scope.given.clear()
    sets = grouping_sets.read(group, lambda key: _key(block, key, items), items, _gathers)
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
    # What a correlated subquery compares with the outer rows has to outlive the grouping.
    reaching = _outer_equalities(block)
    tied = block.as_columns([inner for inner, _ in reaching])
    block.correlated = [
        exp.EQ(this=column(name), expression=outer)
        for name, (_, outer) in zip(tied, reaching, strict=True)
    ]
    wanted = [value for _, value in items]
    if having is not None:
        wanted.append(block.bind(having.this))
    measures = [each for value in wanted for each in _measures(block, value, sets, level)]
    block.node = Aggregate(block.node, tuple(dict.fromkeys((*keys, *tied))), tuple(measures))
    if having is not None:
        block.keep_in_order(conjuncts(_over_groups(block, wanted[-1])))


def _key(block: Block, key: Expression, items: Sequence[Named]) -> Expression:
    """A key of GROUP BY: a place in the SELECT list, an alias of it, or an expression."""
    if isinstance(key, exp.Literal) and not key.is_string:
        return items[int(key.name) - 1][1]
    if isinstance(key, exp.Column) and not key.table:
        try:
            return block.bind(key)
        except Refused:
            named = [value for name, value in items if name.lower() == key.name.lower()]
            if named:
                return named[0]
            raise
    return block.bind(key)


def _outer_equalities(block: Block) -> list[tuple[Expression, Expression]]:
    """Correlated equalities as (value of these rows, value of the outer rows)."""
    own = set(block.node.columns)
    pairs: list[tuple[Expression, Expression]] = []
    for condition in block.correlated:
        sides = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else ()
        inner = [s for s in sides if free_columns(s) and free_columns(s) <= own]
        outer = [s for s in sides if not free_columns(s) & own]
        if len(inner) != 1 or len(outer) != 1:
            raise Refused(
                "a subquery that aggregates is tied to the query around it by something other "
                "than an equality",
                condition,
            )
        pairs.append((inner[0], outer[0]))
    return pairs


def _measures(
    block: Block, value: Expression, sets: grouping_sets.Sets, level: str | None
) -> list[Named]:
    """A column for each aggregate in an expression that has none yet."""
    made: list[Named] = []
    for each in _aggregates(value):
        if any(each == known for known, _ in block.gathered):
            continue
        if isinstance(each, exp.Grouping | exp.GroupingId):
            continue
        if free_columns(each) - set(block.node.columns):
            raise Refused("an aggregate of a subquery over columns of the query around it")
        made.append((block.reader.fresh(short_name(each)), each))
        block.gathered.append((each, made[-1][0]))
    for each in value.find_all(exp.Grouping, exp.GroupingId):
        if level is None:
            raise Refused("`grouping` without GROUPING SETS, ROLLUP or CUBE", each)
        block.gathered.append((each, grouping_sets.level_text(each, sets, level)))
    return made


def _over_groups(block: Block, value: Expression) -> Expression:
    """An expression over the ungrouped rows, as one over the groups."""

    def swap(each: Expression) -> Expression:
        for known, name in block.gathered:
            if each == known:
                return column(name) if " " not in name else grouping_sets.as_value(name)
        return each

    return value.copy().transform(swap, copy=False)


def _aggregates(value: Expression) -> list[Expression]:
    """The outermost aggregates in an expression that no window takes as its own."""
    found: list[Expression] = []

    def visit(each: Expression) -> None:
        if isinstance(each, exp.Window):
            # `sum(sum(x)) OVER (…)`: the inner one gathers, the outer one is the window's.
            for part in (each.this, each.args.get("order"), *(each.args.get("partition_by") or ())):
                for inner in part.iter_expressions() if part is each.this else [part]:
                    if inner is not None:
                        visit(inner)
            return
        if is_aggregate(each):
            found.append(each)
            return
        for inner in each.iter_expressions():
            visit(inner)

    visit(value)
    return found


def _gathers(value: Expression) -> bool:
    return bool(_aggregates(value))
