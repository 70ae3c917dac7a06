"""Which rows does FROM bring together?

FROM joins relations from left to right, each to those before it; the block's scope records their
names. A condition of an inner join acts as a condition of WHERE. All outer joins become left joins:

    l RIGHT JOIN r    r LEFT JOIN l, with the columns in their order
    l FULL JOIN r     l LEFT JOIN r, and the rows of r that find no partner

A generator makes several rows of one row. It stands in a LATERAL VIEW or in a SELECT list, with the
same meaning.
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from springhouse.views.algebra.query_tree import (
    Generate,
    Node,
    Partner,
    Projection,
    UnionAll,
    filter_rows,
    join_all,
    outer_join,
    semi_join,
)
from springhouse.views.read.block import SelectBlock
from springhouse.views.read.functions import validate_plain
from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.read.scope import Bound, Scope
from springhouse.views.sql.expressions import Expression, Named, column, conjuncts, free_columns


def bring_together(block: SelectBlock, tree: exp.Select) -> None:
    """Give the block the rows of FROM; without a FROM clause, the rows stay as they are."""
    source = tree.args.get("from_")
    if source is None:
        return
    block.node = _relation(block, source.this)
    for join in tree.args.get("joins") or ():
        _join(block, join)
    for lateral in tree.args.get("laterals") or ():
        _lateral_view(block, lateral)


def column_aliases(tree: exp.Expr, names: tuple[str, ...]) -> tuple[str, ...]:
    """The column names that `AS t(a, b)` gives, or else `names`."""
    alias = tree.args.get("alias")
    given = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    if not given:
        return names
    if len(given) != len(names):
        raise NotCompilable("an alias names another number of columns than there are", tree)
    return tuple(each.name for each in given)


def _relation(block: SelectBlock, tree: exp.Expr) -> Node:
    """The rows of one relation in FROM; the scope records its columns."""
    if tree.args.get("pivots"):
        raise NotCompilable("PIVOT can't be kept incrementally", tree)
    if isinstance(tree, exp.Table) and not isinstance(tree.this, exp.Func):
        found = block.reader.table(tree, block.ctes)
    elif isinstance(tree, exp.Subquery | exp.Values):
        found = block.reader.query(tree, block.ctes, block.scope.outer)
    else:
        raise NotCompilable(f"`{tree.sql(dialect='spark')}` in FROM is not understood", tree)
    if found.correlated:
        raise NotCompilable("a subquery in FROM reaches out to a query around it", tree)
    names = column_aliases(tree, found.names)
    alias = tree.alias or (tree.name if isinstance(tree, exp.Table) else "")
    pairs = tuple(zip(names, found.node.columns, strict=True))
    block.scope.relations.append(Bound(alias, pairs))
    for join in tree.args.get("joins") or ():
        raise NotCompilable("a join in parentheses is not understood", join)
    return found.node


# Joins


def _join(block: SelectBlock, join: exp.Join) -> None:
    if isinstance(join.this, exp.Lateral):
        if isinstance(join.this.this, exp.Subquery):
            raise NotCompilable("a LATERAL subquery can't be kept incrementally", join)
        if join.side or join.args.get("on") is not None:
            raise NotCompilable("an outer join or an ON with LATERAL is not understood", join)
        _lateral_view(block, join.this)
        return
    side, kind = join.side.upper(), join.kind.upper()
    left = block.node
    seen = len(block.scope.relations)
    right = _relation(block, join.this)
    conditions = _using(block, join, seen, side)
    if (on := join.args.get("on")) is not None:
        bound = block.bind(on)
        validate_plain(bound, "the ON of a join", on)
        conditions += conjuncts(bound)
    both = (*left.columns, *right.columns)
    if kind in ("SEMI", "ANTI"):
        block.validate_own(conditions, "the ON of a semi join", join, both)
        del block.scope.relations[seen:]
        mark = block.reader.fresh("found")
        partner = Partner(right, tuple(conditions), mark)
        block.node = semi_join(left, [partner], column(mark), anti=kind == "ANTI")
    elif side:
        block.validate_own(conditions, "the ON of an outer join", join, both)
        if block.correlated and side != "LEFT":
            # The correlated conditions select rows before the join, and the join adds rows with
            # NULLs for the rows that are missing.
            raise NotCompilable(f"a {side} JOIN in a correlated subquery", join)
        block.node = _outer_join(side, left, right, conditions, block.reader.fresh)
    else:
        block.node = join_all([left, right], ())
        block.keep(conditions)


def _using(block: SelectBlock, join: exp.Join, seen: int, side: str) -> list[Expression]:
    """The equalities of USING and NATURAL; two equal columns become one."""
    right = block.scope.relations[seen:]
    names = [each.name for each in join.args.get("using") or ()]
    if join.method.upper() == "NATURAL":
        before = {n.lower() for r in block.scope.relations[:seen] for n, _ in r.columns}
        names = [n for r in right for n, _ in r.columns if n.lower() in before]
    conditions: list[Expression] = []
    for name in names:
        first = Scope(block.scope.relations[:seen], merged=block.scope.merged)
        mine, other = first.resolve(exp.column(name)), Scope(right).resolve(exp.column(name))
        conditions.append(exp.EQ(this=mine.copy(), expression=other.copy()))
        if join.kind.upper() in ("SEMI", "ANTI"):
            continue
        value = other if side == "RIGHT" else mine
        if side == "FULL":
            value = exp.Coalesce(this=mine.copy(), expressions=[other.copy()])
        block.scope.merged[name.lower()] = value
    return conditions


def _outer_join(
    side: str,
    left: Node,
    right: Node,
    conditions: Sequence[Expression],
    fresh: Callable[[str], str],
) -> Node:
    """Outer joins in a normal form: a condition on only the optional side moves to that side."""
    if side == "RIGHT":
        swapped = _outer_join("LEFT", right, left, conditions, fresh)
        names = (*left.columns, *right.columns)
        return Projection(swapped, tuple((name, column(name)) for name in names))
    if side == "FULL":
        whole = outer_join(left, right, conditions)
        mark = fresh("found")
        alone = semi_join(right, [Partner(left, tuple(conditions), mark)], column(mark), anti=True)
        nulls = tuple((name, exp.Null()) for name in left.columns)
        own = tuple((name, column(name)) for name in right.columns)
        return UnionAll((whole, Projection(alone, (*nulls, *own))))
    inside = [c for c in conditions if free_columns(c) and free_columns(c) <= set(right.columns)]
    across = tuple(c for c in conditions if not any(c is each for each in inside))
    return outer_join(left, filter_rows(right, inside), across)


# Generators


def generated(block: SelectBlock, item: exp.Expr) -> list[Named]:
    """The columns that a generator in the SELECT list makes."""
    several = isinstance(item, exp.Aliases)
    generator = block.bind(item.this if several else item.unalias())
    given = [each.name for each in item.expressions] if several else [item.alias]
    names = given if any(given) else _generated_names(generator)
    made = _generate(block, generator, names)
    return [(name, column(unique)) for name, unique in zip(names, made, strict=True)]


def _lateral_view(block: SelectBlock, lateral: exp.Lateral) -> None:
    alias = lateral.args.get("alias")
    names = [each.name for each in alias.args.get("columns") or ()] if alias else []
    generator = block.bind(lateral.this)
    names = names or _generated_names(generator)
    made = _generate(block, generator, names, outer=bool(lateral.args.get("outer")))
    pairs = tuple(zip(names, made, strict=True))
    block.scope.relations.append(Bound(alias.name if alias else "", pairs))


def _generate(
    block: SelectBlock, generator: Expression, names: Sequence[str], *, outer: bool = False
) -> tuple[str, ...]:
    """Apply a generator to the rows; the names of its columns in the algebra."""
    for argument in generator.iter_expressions():
        validate_plain(argument, "a generator", generator)
    generator = block.attach(generator)
    block.validate_own([generator], "a generator")
    made = tuple(map(block.reader.fresh, names))
    block.node = Generate(block.node, generator, made, outer)
    return made


def _generated_names(generator: Expression) -> list[str]:
    if isinstance(generator, exp.Posexplode):
        return ["pos", "col"]
    if isinstance(generator, exp.Explode):
        return ["col"]
    raise NotCompilable("a generator without names for its columns", generator)
