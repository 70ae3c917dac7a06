"""The change of INTERSECT and EXCEPT, with and without ALL.

The number of copies of a row in the result depends only on its numbers l and r in the two sides:

    INTERSECT ALL  min(l, r)          EXCEPT ALL  max(l - r, 0)
    INTERSECT      l > 0 and r > 0    EXCEPT      l > 0 and r = 0

So the rule looks up only rows that changed on some side. It counts them after the change, and
subtracts the change to get their numbers before it.
"""

from sqlglot import exp

from springhouse.views.algebra.query_tree import SetKind, SetOperation
from springhouse.views.delta.row_select import Near, RowSelect, Side, Touched, Writer, touched_name
from springhouse.views.sql.expressions import Expression, column
from springhouse.views.sql.sql_tree import (
    FromClause,
    copies_of,
    less,
    minus,
    more,
    named,
    number,
    select,
    subquery,
    table,
    union_of,
    when,
)

_WORDS = ("left_after", "right_after", "left_change", "right_change")
_IN_BOTH = (SetKind.INTERSECT, SetKind.INTERSECT_ALL)


def _copies(kind: SetKind, left: Expression, right: Expression) -> Expression:
    """The number of copies of a row in the result, from its numbers on the left and the right."""
    none = number(0)
    match kind:
        case SetKind.INTERSECT:
            both = exp.And(this=more(left, none), expression=more(right, none))
            return when(both, number(1), none)
        case SetKind.INTERSECT_ALL:
            return when(less(left, right), left, right)
        case SetKind.EXCEPT:
            absent = exp.EQ(this=right, expression=none)
            return when(exp.And(this=more(left, none), expression=absent), number(1), none)
        case SetKind.EXCEPT_ALL:
            return when(more(left, right), minus(left, right), none)


def change(node: SetOperation, needed: frozenset[str], writer: Writer) -> list[RowSelect]:
    names = list(node.columns)
    every = frozenset(names)
    changed = [
        (rows, side)
        for child, side in ((node.left, "left"), (node.right, "right"))
        for rows in writer.change(child, every)
    ]
    if not changed:
        return []
    body = union_of(_tagged(rows, names, f"{side}_change") for rows, side in changed)
    counted = FromClause(table(writer.define("changed_rows", body)))
    keys = [named(column(name), touched_name(name)) for name in names]
    relation = writer.define("touched", select(keys, counted))
    touched = Touched(relation, tuple((name, touched_name(name)) for name in names))
    sides = []
    for child, word in ((node.left, "left_after"), (node.right, "right_after")):
        rows = writer.snapshot(child, Side.AFTER, every, (), touched)
        sides.append(_tagged(rows, names, word))
    everything = subquery(union_of([select([exp.Star()], counted), *sides]), "everything")
    chosen = [column(name) for name in names]
    sums = [named(exp.Sum(this=column(each)), each) for each in _WORDS]
    counts = writer.define("counted", select([*chosen, *sums], FromClause(everything), (), chosen))
    left, right = column("left_after"), column("right_after")
    after = _copies(node.kind, left, right)
    before = _copies(
        node.kind,
        exp.Paren(this=minus(left, column("left_change"))),
        exp.Paren(this=minus(right, column("right_change"))),
    )
    weight = named(minus(after, before), "weight")
    result = FromClause(
        table(writer.define("came_and_went", select([*chosen, weight], FromClause(table(counts)))))
    )
    changes = exp.NEQ(this=column("weight"), expression=number(0))
    columns = {name: column(name) for name in names if name in needed}
    if node.kind in (SetKind.INTERSECT, SetKind.EXCEPT):
        return [RowSelect(result, columns, (changes,), column("weight"))]
    # Each copy is a separate row: weights are +1 and -1.
    source = FromClause(subquery(select([exp.Star()], result, [changes]), writer.alias(node)))
    copies = copies_of(exp.Abs(this=column("weight")))
    source = source.lateral_view(copies, "copies", ["copy"])
    sign = when(more(column("weight"), number(0)), number(1), number(-1))
    return [RowSelect(source, columns, (), sign)]


def _tagged(rows: RowSelect, names: list[str], word: str) -> exp.Select:
    """The rows, counted in one of four columns."""
    weight = number(1) if rows.weight is None else rows.weight
    counts = {each: weight if each == word else number(0) for each in _WORDS}
    tagged = RowSelect(rows.source, {**rows.columns, **counts}, rows.where)
    return tagged.select([*names, *_WORDS])


def snapshot(
    node: SetOperation,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> RowSelect:
    del needed  # Which rows are equal depends on all columns.
    every = frozenset(node.columns)
    left = writer.snapshot(node.left, side, every, near, touched)
    right = writer.snapshot(node.right, side, every, near, touched)
    operation = exp.Intersect if node.kind in _IN_BOTH else exp.Except
    distinct = node.kind in (SetKind.INTERSECT, SetKind.EXCEPT)
    body = operation(
        this=left.select(node.columns), expression=right.select(node.columns), distinct=distinct
    )
    source = FromClause(subquery(body, writer.alias(node)))
    return RowSelect(source, {name: column(name) for name in node.columns})
