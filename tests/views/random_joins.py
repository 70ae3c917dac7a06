"""Which queries combine rows with other rows? Joins, and subqueries in conditions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from random_relations import Operator, Relation, Writer
from random_terms import Term, bare, comparable


def inner_join(writer: Writer, depth: int) -> Relation:
    joined = writer.source(depth - 1)
    for _ in range(writer.dice.choice((1, 1, 1, 2, 3))):
        joined = writer.joined(joined, "JOIN", writer.partner(joined, depth - 1))
    return writer.select(
        writer.outputs(joined.terms), joined.sql, joined.size, writer.where(joined.terms, 0.15)
    )


def self_join(writer: Writer, depth: int) -> Relation:
    table = writer.dice.choice([*writer.tables, *writer.visible])
    joined = writer.joined(writer.named(table), "JOIN", writer.named(table))
    return writer.select(
        writer.outputs(joined.terms), joined.sql, joined.size, writer.where(joined.terms, 0.15)
    )


def comma_join(writer: Writer, depth: int) -> Relation:
    left = writer.source(depth - 1)
    conditions, sql, terms, size = [], left.sql, left.terms, left.size
    for _ in range(writer.dice.choice((1, 1, 2))):
        right = writer.partner(Relation(sql, terms, size), depth - 1)
        conditions.append(writer.equality(terms, right.terms))
        sql, terms = f"{sql}, {right.sql}", (*terms, *right.terms)
        size = max(size * right.size // 3, 1)
    if writer.chance(0.4):
        conditions.append(writer.condition(terms))
    rest = f" WHERE {' AND '.join(conditions)}"
    return writer.select(writer.outputs(terms), sql, size, rest)


def using_join(writer: Writer, depth: int) -> Relation:
    one, other = writer.dice.choices(writer.tables, k=2)
    names = {term.sql for term in one.terms if term.is_key}
    shared = [term for term in other.terms if term.sql in names]
    shared = writer.some(shared, 1, 2)
    left, right = writer.named(one), writer.named(other)
    kind = writer.dice.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN"))
    sql = f"{left.sql} {kind} {right.sql} USING ({', '.join(term.sql for term in shared)})"
    # A shared column without a table name is the value of the side that is not NULL.
    hidden = {term.sql for term in shared}
    terms = [t for t in (*left.terms, *right.terms) if bare(t).sql not in hidden]
    size = max(left.size * right.size // 3, left.size, right.size)
    items = [*shared, *writer.some(terms, 0, 3)]
    return writer.select(items, sql, size, writer.where([*shared, *terms], 0.15))


def outer_join(writer: Writer, depth: int, kind: str) -> Relation:
    left = writer.source(depth - 1)
    joined = writer.joined(left, kind, writer.partner(left, depth - 1))
    if writer.chance(0.3):
        more = writer.dice.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN"))
        joined = writer.joined(joined, more, writer.partner(joined, 0))
    return writer.select(
        writer.outputs(joined.terms, 2), joined.sql, joined.size, writer.where(joined.terms, 0.15)
    )


def half_join(writer: Writer, depth: int, kind: str) -> Relation:
    left = writer.source(depth - 1)
    right = writer.partner(left, depth - 1)
    sql = f"{left.sql} {kind} {right.sql} ON {writer.on(left, right)}"
    return writer.select(writer.outputs(left.terms), sql, left.size, writer.where(left.terms, 0.15))


# --- subqueries -----------------------------------------------------------------------------------


Condition = Callable[[Writer, Sequence[Term], int], str]
"""Writes a condition on terms of the query around it, with a subquery of that depth at most."""


def subquery(writer: Writer, depth: int, condition: Condition) -> Relation:
    origin = writer.origin(depth - 1)
    rest = f" WHERE {condition(writer, origin.terms, depth - 1)}"
    if writer.chance(0.25):
        rest += f" AND {writer.condition(origin.terms)}"
    return writer.select(writer.outputs(origin.terms), origin.sql, origin.size, rest)


def exists(writer: Writer, outer: Sequence[Term], depth: int) -> str:
    inner = writer.source(depth)
    conditions = []
    if writer.chance(0.92):
        conditions.append(writer.equality(inner.terms, outer))
    pairs = [(i, o) for i in inner.terms for o in outer if comparable(i, o)]
    pairs = [(i, o) for i, o in pairs if f"{i.sql} = {o.sql}" not in conditions]
    if pairs and conditions and writer.chance(0.3):
        one, other = writer.dice.choice(pairs)
        conditions.append(f"{one.sql} {writer.dice.choice(('<>', '<>', '<', '>='))} {other.sql}")
    if not conditions or writer.chance(0.2):
        conditions.append(writer.condition(inner.terms))
    what = writer.dice.choice(("1", "*", inner.terms[0].sql))
    return f"EXISTS (SELECT {what} FROM {inner.sql} WHERE {' AND '.join(conditions)})"


def not_exists(writer: Writer, outer: Sequence[Term], depth: int) -> str:
    return f"NOT {exists(writer, outer, depth)}"


def is_in(writer: Writer, outer: Sequence[Term], depth: int, word: str = "IN") -> str:
    inner = writer.source_with(depth, lambda term: term.is_key)
    pairs = [(o.sql, i) for o in outer for i in inner.terms if comparable(o, i)]
    keys = [term for term in inner.terms if term.is_key]
    needle, found = writer.dice.choice(pairs or [(writer.value(term.type), term) for term in keys])
    if writer.chance(0.15):
        function, by = writer.dice.choice(("min", "max")), writer.dice.choice(keys).sql
        return f"{needle} {word} (SELECT {function}({found.sql}) FROM {inner.sql} GROUP BY {by})"
    conditions = []
    others = [term for term in inner.terms if term != found]
    if others and writer.chance(0.35):
        conditions.append(writer.equality(others, outer))
    if writer.chance(0.25):
        conditions.append(writer.condition(inner.terms))
    if writer.chance(0.6 if word == "NOT IN" else 0.1):
        conditions.append(f"{found.sql} IS NOT NULL")
    rest = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"{needle} {word} (SELECT {found.sql} FROM {inner.sql}{rest})"


def either(writer: Writer, outer: Sequence[Term], depth: int) -> str:
    one = writer.dice.choice((exists, is_in))(writer, outer, depth)
    other = writer.condition(outer, simple=True)
    if writer.chance(0.4):
        other = writer.dice.choice((exists, is_in))(writer, outer, 0)
    if writer.chance(0.2):
        other = is_in(writer, outer, 0, "NOT IN")
    return f"{'NOT ' if writer.chance(0.2) else ''}({one} OR {other})"


def scalar_subquery(writer: Writer, depth: int, correlated: bool = False) -> Relation:
    origin = writer.source_with(depth - 1, lambda term: term.type == "int" and term.exact)
    scalar = _scalar(writer, origin.terms, depth - 1, correlated)
    if writer.chance(0.5):
        items = writer.outputs(origin.terms, 1, 3)
        if writer.chance(0.3) and scalar.type == "bigint":
            scalar = replace(scalar, sql=f"(coalesce({scalar.sql}, 0) + 1)")
        rest = writer.where(origin.terms, 0.15)
        return writer.select([*items, scalar], origin.sql, origin.size, rest)
    peers = [term for term in origin.terms if comparable(term, scalar)]
    if peers and writer.chance(0.7):
        condition = f"{writer.dice.choice(peers).sql} {_sign(writer)} {scalar.sql}"
    else:
        condition = writer.condition([scalar], simple=True)
    rest = f" WHERE {condition}"
    return writer.select(writer.outputs(origin.terms), origin.sql, origin.size, rest)


def few_ask(writer: Writer, depth: int) -> Relation:
    """A correlated subquery, evaluated for the few rows of a table that pass a condition."""
    table = writer.dice.choice(writer.tables)
    few, rows = writer.named(table), writer.source(depth - 1)
    term = writer.dice.choice([each for each in few.terms if each.type in ("int", "string")])
    narrow = f"{term.sql} = {writer.value(term.type)}"
    if writer.chance(0.3):
        narrow = f"{term.sql} IN ({writer.value(term.type)}, {writer.value(term.type)})"
    if writer.chance(0.6):
        equal = writer.equality(rows.terms, few.terms)
        sql, terms = f"{rows.sql} JOIN {few.sql} ON {equal}", (*rows.terms, *few.terms)
        conditions = [narrow]
    else:
        pairs = [(o, i) for o in rows.terms for i in few.terms if comparable(o, i)]
        pairs = pairs or [(rows.terms[0], rows.terms[0])]
        one, other = writer.pair(pairs)
        sql, terms = rows.sql, rows.terms
        conditions = [f"{one.sql} IN (SELECT {other.sql} FROM {few.sql} WHERE {narrow})"]
    scalar = _scalar(writer, terms, depth - 1, correlated=True)
    if scalar.type in ("bigint", "decimal") and writer.chance(0.5):
        scalar = replace(scalar, sql=f"2 * {scalar.sql}")
    size = rows.size
    if writer.chance(0.4):
        rest = f" WHERE {' AND '.join(conditions)}"
        return writer.select([*writer.outputs(terms, 1, 3), scalar], sql, size, rest)
    peers = [each for each in terms if comparable(each, scalar)]
    if peers:
        conditions.append(f"{writer.dice.choice(peers).sql} {_sign(writer)} {scalar.sql}")
    else:
        conditions.append(writer.condition([scalar], simple=True))
    rest = f" WHERE {' AND '.join(conditions)}"
    return writer.select(writer.outputs(terms), sql, size, rest)


def _sign(writer: Writer) -> str:
    return writer.dice.choice(("=", "<", ">", "<>", ">="))


def _scalar(writer: Writer, outer: Sequence[Term], depth: int, correlated: bool) -> Term:
    inner = writer.source(depth)
    conditions = []
    if correlated:
        keys = [(i, o) for i in inner.terms for o in outer if comparable(i, o)]
        if not keys:
            inner = writer.named(writer.dice.choice(writer.tables))
            keys = [(i, o) for i in inner.terms for o in outer if comparable(i, o)]
        one, other = writer.pair(keys)
        conditions.append(f"{one.sql} = {other.sql}")
    if writer.chance(0.3):
        conditions.append(writer.condition(inner.terms))
    made = writer.aggregate(inner.terms, exact=True, plain=True)
    # Over no rows, only a count is not NULL.
    made = writer.counted(inner.terms) if correlated and writer.chance(0.3) else made
    rest = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return replace(made, sql=f"(SELECT {made.sql} FROM {inner.sql}{rest})")


JOINS: Mapping[str, Operator] = {
    "inner_join": inner_join,
    "self_join": self_join,
    "comma_join": comma_join,
    "using_join": using_join,
    "left_join": partial(outer_join, kind="LEFT JOIN"),
    "right_join": partial(outer_join, kind="RIGHT JOIN"),
    "full_join": partial(outer_join, kind="FULL OUTER JOIN"),
    "semi_join": partial(half_join, kind="LEFT SEMI JOIN"),
    "anti_join": partial(half_join, kind="LEFT ANTI JOIN"),
    "exists": partial(subquery, condition=exists),
    "not_exists": partial(subquery, condition=not_exists),
    "in_subquery": partial(subquery, condition=is_in),
    "not_in_subquery": partial(subquery, condition=partial(is_in, word="NOT IN")),
    "subquery_under_or": partial(subquery, condition=either),
    "scalar_subquery": scalar_subquery,
    "correlated_scalar_subquery": partial(scalar_subquery, correlated=True),
    "few_ask": few_ask,
}
