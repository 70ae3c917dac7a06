"""Which queries bring equal rows together? GROUP BY, DISTINCT, grouping sets, set operations."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from random_relations import Operator, Relation, Writer
from random_tables import VALUES
from random_terms import Term, bare, comparable


def group_by(
    writer: Writer,
    depth: int,
    expressions: bool = False,
    having: bool = False,
    special: str = "",
) -> Relation:
    origin = writer.origin(depth - 1)
    if not any(term.is_key for term in origin.terms):
        origin = writer.named(writer.dice.choice(writer.tables))
    keys = writer.some([term for term in origin.terms if term.is_key], 1, 2)
    if expressions:
        made = [writer.expression([key, *origin.terms]) for key in keys]
        keys = [key for key in made if key.is_key] or [Term(f"{keys[0].sql} IS NULL", "boolean")]
    keys = list({key.sql: key for key in keys}.values())
    made = measures(writer, origin.terms, special, grouped=True)
    rest = writer.where(origin.terms, 0.15) + f" GROUP BY {', '.join(key.sql for key in keys)}"
    shown = keys if writer.chance(0.85) else keys[1:]
    size = min(origin.size, 8 ** len(keys))
    query = writer.select([*shown, *made], origin.sql, size, rest)
    if having or writer.chance(0.1):
        return _having(writer, query, origin.terms, query.terms[len(shown) :])
    return query


def global_aggregate(writer: Writer, depth: int) -> Relation:
    origin = writer.origin(depth - 1)
    special = writer.dice.choice(("", "", "distinct", "filter", "recompute"))
    made = measures(writer, origin.terms, special, grouped=False)
    query = writer.select(made, origin.sql, 1, writer.where(origin.terms, 0.15))
    return _having(writer, query, origin.terms, query.terms) if writer.chance(0.12) else query


def measures(writer: Writer, terms: Sequence[Term], special: str, grouped: bool) -> list[Term]:
    """One to four aggregates, one of them special."""
    made = [writer.aggregate(terms) for _ in range(writer.dice.choice((0, 1, 1, 2, 3)))]
    if special == "distinct":
        made.append(writer.of_distinct(terms))
    elif special == "filter":
        made.append(writer.filtered(writer.aggregate(terms, plain=True), terms))
    elif special == "recompute":
        made.append(writer.recompute(terms, grouped))
    else:
        made.append(writer.aggregate(terms))
    return [_after(writer, term, made) if writer.chance(0.12) else term for term in made]


def _having(
    writer: Writer, query: Relation, terms: Sequence[Term], aliases: Sequence[Term]
) -> Relation:
    """A condition on groups, by an aggregate of the terms or by the alias of a selected one."""
    named = [term for term in aliases if term.is_sortable]
    if named and writer.chance(0.4):
        condition = writer.condition(named)
    elif writer.chance(0.4):
        condition = f"count(*) {writer.dice.choice(('> 1', '>= 2', '<= 3', '<> 2', '= 1'))}"
    else:
        made = writer.aggregate(terms, exact=True, plain=True)
        condition = writer.condition([made, replace(made, sql="count(*)", type="bigint")])
    return replace(query, sql=f"{query.sql} HAVING {condition}")


def _after(writer: Writer, term: Term, made: Sequence[Term]) -> Term:
    """A value computed from finished aggregates."""
    if term.type != "bigint":
        return replace(term, sql=f"CASE WHEN count(*) > 1 THEN {term.sql} END")
    whole = [each.sql for each in made if each.type == "bigint"]
    sql = f"(coalesce({term.sql}, 0) + coalesce({writer.dice.choice(whole)}, 1))"
    return replace(term, sql=sql)


def distinct(writer: Writer, depth: int) -> Relation:
    origin = writer.origin(depth - 1)
    items = [term for term in writer.outputs(origin.terms, 1, 3) if term.is_key]
    items = items or [Term(writer.condition(origin.terms), "boolean")]
    rest = writer.where(origin.terms)
    return writer.select(items, origin.sql, origin.size, rest, how="DISTINCT ")


def grouping(writer: Writer, depth: int, word: str) -> Relation:
    below = writer.source_with(depth - 1, lambda term: term.is_key, least=2)
    keys = writer.some([term for term in below.terms if term.is_key], 2, 3 if word != "CUBE" else 2)
    others = [term for term in below.terms if term not in keys and term.type in VALUES]
    inner = writer.select(
        [*keys, *others[:2]], below.sql, below.size + 1, writer.where(below.terms)
    )
    # The grand total of no rows is a row in DuckDB alone, so one row is always there.
    row = ", ".join(writer.value_or_null(term.type) for term in inner.terms)
    origin = writer.named(replace(inner, sql=f"({inner.sql} UNION ALL SELECT {row})"))
    names = [term.sql for term in origin.terms[: len(keys)]]
    listed = ", ".join(names)
    if word == "GROUPING SETS":
        sets = list(dict.fromkeys(map(tuple, (names, names[:1], names[-1:], names[:2], ()))))
        chosen = writer.dice.sample(sets, writer.dice.randint(2, len(sets)))
        listed = ", ".join(f"({', '.join(each)})" for each in chosen)
        # Spark wants the arguments of grouping_id in the order in which it first meets them.
        names = list(dict.fromkeys(name for each in chosen for name in each))
    level = f"grouping_id({', '.join(names)})"
    if writer.chance(0.5):
        level = f"grouping({writer.dice.choice(names)})"
    made = [writer.aggregate(origin.terms) for _ in range(writer.dice.randint(1, 2))]
    shown = [term for term in origin.terms[: len(keys)] if term.sql in names]
    items = [*shown, *([Term(level, "int", small=False)] if writer.chance(0.8) else []), *made]
    return writer.select(items, origin.sql, origin.size * 3, f" GROUP BY {word} ({listed})")


# --- set operations -------------------------------------------------------------------------------


def set_operation(writer: Writer, depth: int, word: str) -> Relation:
    below = writer.below(depth - 1)
    first = writer.named(below)
    # Unrelated queries seldom share rows, so the second branch often selects some of the same rows.
    again = len(below.sql) < 300 and writer.chance(0.4) and not writer.wanted
    second = writer.named(below) if again else writer.source(depth - 1)
    every = word == "UNION ALL"
    usable = [term for term in first.terms if term.is_key or (every and term.type != "array")]
    types = {term.type for term in second.terms}
    # EXCEPT on one column with few values often removes every row.
    least = 2 if "EXCEPT" in word else 1
    items = writer.some([term for term in usable if term.type in types] or usable, least, 3)
    items = items or [Term("1", "int")]
    query = writer.select(items, first.sql, first.size, writer.where(first.terms, 0.15))
    others = [second] if writer.chance(0.75) else [second, writer.source(0)]
    for other in others:
        picked = [_like(writer, term, other.terms, every) for term in items]
        share = 1.0 if again and "EXCEPT" in word else 0.3
        query = _with_branch(query, word, picked, other, writer.where(other.terms, share))
    return query


def _with_branch(
    query: Relation, word: str, items: Sequence[Term], origin: Relation, rest: str
) -> Relation:
    """One more branch of a set operation."""
    both = list(zip(query.terms, items, strict=True))
    columns = ", ".join(f"{item.sql} AS {term.sql}" for term, item in both)
    terms = tuple(
        Term(
            term.sql,
            "bigint" if {term.type, item.type} == {"int", "bigint"} else term.type,
            term.exact and item.exact,
            term.small and item.small,
        )
        for term, item in both
    )
    sql = f"{query.sql} {word} SELECT {columns} FROM {origin.sql}{rest}"
    return Relation(sql, terms, query.size + origin.size)


def _like(writer: Writer, wanted: Term, terms: Sequence[Term], inexact: bool) -> Term:
    """An expression over those terms that fits the type of that column."""
    same = [t for t in terms if t.type == wanted.type and (inexact or t.exact)]
    near = [t for t in terms if comparable(t, wanted) and "decimal" not in (t.type, wanted.type)]
    namesakes = [t for t in same if bare(t).sql == bare(wanted).sql]
    if namesakes and writer.chance(0.7):
        return namesakes[0]
    if same or near:
        return writer.dice.choice(same or near)
    return Term(writer.value_or_null(wanted.type), wanted.type)


GROUPS: Mapping[str, Operator] = {
    "group_by": group_by,
    "group_by_expression": partial(group_by, expressions=True),
    "having": partial(group_by, having=True),
    "distinct_aggregate": partial(group_by, special="distinct"),
    "filtered_aggregate": partial(group_by, special="filter"),
    "recomputed_aggregate": partial(group_by, special="recompute"),
    "global_aggregate": global_aggregate,
    "distinct": distinct,
    "grouping_sets": partial(grouping, word="GROUPING SETS"),
    "rollup": partial(grouping, word="ROLLUP"),
    "cube": partial(grouping, word="CUBE"),
    "union_all": partial(set_operation, word="UNION ALL"),
    "union": partial(set_operation, word="UNION"),
    "intersect": partial(set_operation, word="INTERSECT"),
    "intersect_all": partial(set_operation, word="INTERSECT ALL"),
    "except": partial(set_operation, word="EXCEPT"),
    "except_all": partial(set_operation, word="EXCEPT ALL"),
}
