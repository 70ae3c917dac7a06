"""The change of INTERSECT and EXCEPT, with and without ALL.

How often a row is in the result depends only on how often it is in each side:

    INTERSECT ALL  min(l, r)          EXCEPT ALL  max(l - r, 0)
    INTERSECT      l > 0 and r > 0    EXCEPT      l > 0 and r = 0

So only rows that changed on some side are looked up. They are counted after the change; before it
they were as many as that, less the change.
"""

from sqlglot import exp

from springhouse.views.algebra import SetKind, SetOperation
from springhouse.views.conditions_of_rows import column
from springhouse.views.row_select import (
    Near,
    RowSelect,
    Side,
    Touched,
    Writer,
    indented,
    quoted,
    raw,
    touched_name,
    union_all,
)

_WORDS = ("left_after", "right_after", "left_change", "right_change")
_RESULT = {
    SetKind.INTERSECT: "CASE WHEN {l} > 0 AND {r} > 0 THEN 1 ELSE 0 END",
    SetKind.INTERSECT_ALL: "CASE WHEN {l} < {r} THEN {l} ELSE {r} END",
    SetKind.EXCEPT: "CASE WHEN {l} > 0 AND {r} = 0 THEN 1 ELSE 0 END",
    SetKind.EXCEPT_ALL: "CASE WHEN {l} > {r} THEN {l} - {r} ELSE 0 END",
}


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
    chosen = ", ".join(map(quoted, names))
    body = union_all(_tagged(rows, names, f"{side}_change") for rows, side in changed)
    counted = writer.define("changed_rows", body)
    keys = ", ".join(f"{quoted(n)} AS {quoted(touched_name(n))}" for n in names)
    relation = writer.define("touched", f"SELECT {keys}\nFROM {counted}")
    touched = Touched(relation, tuple((name, touched_name(name)) for name in names))
    sides = []
    for child, word in ((node.left, "left_after"), (node.right, "right_after")):
        rows = writer.snapshot(child, Side.AFTER, every, (), touched)
        sides.append(_tagged(rows, names, word))
    everything = union_all([f"SELECT * FROM {counted}", *sides])
    sums = ", ".join(f"SUM({each}) AS {each}" for each in _WORDS)
    source = f"(\n{indented(everything)}\n) AS everything"
    counts = writer.define("counted", f"SELECT {chosen}, {sums}\nFROM {source}\nGROUP BY {chosen}")
    after = _RESULT[node.kind].format(l="left_after", r="right_after")
    before = _RESULT[node.kind].format(
        l="(left_after - left_change)", r="(right_after - right_change)"
    )
    result = writer.define(
        "came_and_went", f"SELECT {chosen}, {after} - {before} AS weight\nFROM {counts}"
    )
    columns = {name: column(name) for name in names if name in needed}
    if node.kind in (SetKind.INTERSECT, SetKind.EXCEPT):
        return [RowSelect(result, columns, (raw("weight <> 0"),), column("weight"))]
    # Each copy is a row of its own: weights are +1 and -1.
    source = f"(SELECT * FROM {result} WHERE weight <> 0) AS {writer.alias(node)}"
    source += "\nLATERAL VIEW explode(sequence(1, CAST(abs(weight) AS INT))) copies AS copy"
    positive = exp.GT(this=column("weight"), expression=exp.Literal.number(0))
    one = exp.Literal.number(1)
    sign = exp.Case().when(positive, one).else_(exp.Neg(this=one.copy()))
    return [RowSelect(source, columns, (), sign)]


def _tagged(rows: RowSelect, names: list[str], word: str) -> str:
    """The rows, counted in one of four columns."""
    weight = "1" if rows.weight is None else rows.weight.sql(dialect="spark")
    counts = {each: exp.Var(this=weight if each == word else "0") for each in _WORDS}
    bare = RowSelect(rows.source, {**rows.columns, **counts}, rows.where)
    return bare.select([*names, *_WORDS])


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
    body = f"{left.select(node.columns)}\n{node.kind.value}\n{right.select(node.columns)}"
    source = f"(\n{indented(body)}\n) AS {writer.alias(node)}"
    return RowSelect(source, {name: column(name) for name in node.columns})
