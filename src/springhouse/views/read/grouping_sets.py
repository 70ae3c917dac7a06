"""How do GROUPING SETS, ROLLUP and CUBE become one GROUP BY?

A join with a few constant rows repeats every row once per grouping set. In each copy, the keys that
the set leaves out are NULL, and one column identifies the set. Then one aggregate with that column
among its keys does the rest, and its change is the change of any aggregate. The column is Spark's
`grouping_id()`: a bit per key, the first key highest, 1 for a key that the set leaves out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from sqlglot import exp, parse_one

from springhouse.views.algebra.query_tree import Constant, Node, Projection, join_all
from springhouse.views.read.functions import aggregates
from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.sql.expressions import Expression, Named, column


@dataclass(frozen=True)
class Sets:
    """The keys of a GROUP BY, and its grouping sets as positions of keys."""

    keys: tuple[Expression, ...]
    sets: tuple[frozenset[int], ...]

    @property
    def is_plain(self) -> bool:
        return self.sets == (frozenset(range(len(self.keys))),)

    def level(self, chosen: frozenset[int]) -> int:
        """Spark's grouping id of a set."""
        count = len(self.keys)
        return sum(1 << (count - 1 - i) for i in range(count) if i not in chosen)


def read(
    group: exp.Group | None,
    bind: Callable[[Expression], Expression],
    items: Sequence[Named],
) -> Sets:
    """The keys and sets of a GROUP BY clause; without one, all rows are one group."""
    if group is None:
        return Sets((), (frozenset(),))
    if group.args.get("all"):
        keys = tuple(value for _, value in items if not aggregates(value))
        return Sets(keys, (frozenset(range(len(keys))),))
    keys_found: list[Expression] = []

    def place(key: Expression) -> int:
        bound = bind(key.unnest() if isinstance(key, exp.Paren) else key)
        if bound not in keys_found:
            keys_found.append(bound)
        return keys_found.index(bound)

    plain, factors = _factors(group, place)
    sets = tuple(frozenset(plain).union(*chosen) for chosen in product(*factors))
    if len(sets) > 64:
        raise NotCompilable("more than 64 grouping sets", group)
    return Sets(tuple(keys_found), sets)


def _factors(
    group: exp.Group, place: Callable[[Expression], int]
) -> tuple[list[int], list[list[frozenset[int]]]]:
    """The keys of all sets, and lists of sets: one set from each list makes one grouping set."""
    factors: list[list[frozenset[int]]] = []
    plain: list[int] = []
    for each in group.expressions:
        if isinstance(each, exp.GroupingSets | exp.Rollup | exp.Cube):
            factors.append(_sets_of(each, place))
        else:
            plain.append(place(each))
    for kind, cls in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        for each in group.args.get(kind) or ():
            # `GROUP BY a, b WITH ROLLUP` has the keys in front of it.
            whole = cls(expressions=group.expressions) if not each.expressions else each
            plain = plain if each.expressions else []
            factors.append(_sets_of(whole, place))
    factors += [_sets_of(each, place) for each in group.args.get("grouping_sets") or ()]
    return plain, factors


def _sets_of(clause: exp.Expr, place: Callable[[Expression], int]) -> list[frozenset[int]]:
    parts = [_places(each, place) for each in clause.expressions]
    if isinstance(clause, exp.Rollup):
        return [frozenset().union(*parts[:n]) for n in range(len(parts), -1, -1)]
    if isinstance(clause, exp.Cube):
        choices = product(*((part, frozenset()) for part in parts))
        return [frozenset().union(*chosen) for chosen in choices]
    return parts


def _places(part: Expression, place: Callable[[Expression], int]) -> frozenset[int]:
    if isinstance(part, exp.Tuple):
        return frozenset(place(each) for each in part.expressions)
    return frozenset({place(part)})


def expanded(
    node: Node, sets: Sets, keys: Sequence[str], fresh: Callable[[str], str]
) -> tuple[Node, list[str], str]:
    """The rows once per set, the grouping columns, and the column that identifies the set."""
    # Two equal sets are two groups, so a number tells them apart.
    number, level = fresh("grouping_set"), fresh("grouping_level")
    rows = tuple(
        (exp.Literal.number(i), exp.Literal.number(sets.level(chosen)))
        for i, chosen in enumerate(sets.sets)
    )
    taken = join_all([node, Constant((number, level), rows)], ())
    made = [fresh(key) for key in keys]
    outputs: list[Named] = [(name, column(name)) for name in taken.columns]
    for i, (key, name) in enumerate(zip(keys, made, strict=True)):
        inside = [exp.Literal.number(n) for n, chosen in enumerate(sets.sets) if i in chosen]
        kept = exp.In(this=column(number), expressions=inside)
        value = exp.Case().when(kept, column(key)) if inside else exp.Null()
        outputs.append((name, value))
    if len(set(sets.sets)) < len(sets.sets):
        raise NotCompilable("the same grouping set twice")
    return Projection(taken, tuple(outputs)), made, level


def level_text(call: exp.Expr, sets: Sets, level: str) -> str:
    """The SQL of `grouping(key)` or `grouping_id()` over the column that identifies the set."""
    if isinstance(call, exp.Grouping):
        key = call.expressions[0] if call.expressions else call.this
        if key not in sets.keys:
            raise NotCompilable("`grouping` of what is not grouped by", call)
        bit = 1 << (len(sets.keys) - 1 - sets.keys.index(key))
        return f"CASE WHEN {level} % {2 * bit} >= {bit} THEN 1 ELSE 0 END"
    if call.expressions and list(call.expressions) != list(sets.keys):
        raise NotCompilable("`grouping_id` of some of the keys", call)
    return f"CAST({level} AS BIGINT)"


def as_value(text: str) -> Expression:
    """The SQL that `level_text` gave, as an expression."""
    value: Expression = parse_one(text, read="spark")
    return value
