"""Which queries order their rows? Window functions, the best of each group, and LIMIT.

If ties could decide about rows, the order covers all sortable terms. Rows that agree on all of
them are the same row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from random_relations import Operator, Relation, Writer
from random_terms import Term

_RANK_FUNCTIONS = ("row_number", "rank", "dense_rank")
_FRAMES = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)


def window(writer: Writer, depth: int, kind: str) -> Relation:
    origin = writer.source_with(depth - 1, lambda term: term.is_sortable)
    # Rows that agree on all of these are the same row for this block.
    terms = [term for term in origin.terms if term.is_sortable]
    kinds = [
        kind,
        *writer.dice.choices(("rank", "lag", "rows", "whole"), k=writer.dice.choice((0, 0, 1))),
    ]
    made = [_window_term(writer, terms, each) for each in kinds]
    rest = writer.where(origin.terms, 0.15)
    return writer.select([*writer.some(terms, 1, 3), *made], origin.sql, origin.size, rest)


def top_k(writer: Writer, depth: int) -> Relation:
    below = writer.source_with(depth - 1, lambda term: term.is_sortable)
    terms = [term for term in below.terms if term.is_sortable]
    rank = _rank_term(writer, terms)
    inner = writer.select([*terms, rank], below.sql, below.size, writer.where(below.terms, 0.15))
    origin = writer.named(replace(inner, sql=f"({inner.sql})"))
    *columns, position = origin.terms
    items = writer.outputs(columns, 1, 4) + ([position] if writer.chance(0.4) else [])
    most = writer.dice.randint(1, 3)
    condition = writer.dice.choice((f"<= {most}", f"<= {most}", "= 1", f"< {most + 1}"))
    rest = f" WHERE {position.sql} {condition}"
    return writer.select(items, origin.sql, min(below.size, 30), rest)


def limit(writer: Writer, depth: int) -> Relation:
    query, unselected = (_groups if writer.chance(0.4) else _rows)(writer, depth)
    order = [*unselected, *writer.shuffled(query.terms)]
    rest = f" {_order(writer, order)} LIMIT {writer.dice.randint(1, 6)}"
    if writer.chance(0.5):
        rest += f" OFFSET {writer.dice.randint(1, 3)}"
    return replace(query, sql=query.sql + rest)


def _rows(writer: Writer, depth: int) -> tuple[Relation, list[Term]]:
    origin = writer.origin(depth - 1)
    items = [term for term in writer.outputs(origin.terms, 1, 4) if term.is_sortable]
    items = items or [Term(writer.condition(origin.terms), "boolean")]
    return writer.select(items, origin.sql, 6, writer.where(origin.terms, 0.15)), []


def _groups(writer: Writer, depth: int) -> tuple[Relation, list[Term]]:
    """Groups, and an aggregate that only their order uses."""
    origin = writer.source_with(depth - 1, lambda term: term.is_key)
    keys = writer.some([term for term in origin.terms if term.is_key], 1, 2)
    made = [writer.aggregate(origin.terms, exact=True) for _ in range(writer.dice.randint(0, 2))]
    made = [term for term in made if term.is_sortable]
    rest = writer.where(origin.terms, 0.15) + f" GROUP BY {', '.join(key.sql for key in keys)}"
    unselected = writer.aggregate(origin.terms, exact=True)
    return writer.select([*keys, *made], origin.sql, 6, rest), [unselected]


def _window_term(writer: Writer, terms: Sequence[Term], kind: str) -> Term:
    if kind == "rank":
        return _rank_term(writer, terms)
    if kind == "lag":
        term = writer.dice.choice(terms)
        sql = (
            f"{writer.dice.choice(('lag', 'lag', 'lead'))}({term.sql}, {writer.dice.choice('112')})"
        )
        return replace(term, sql=f"{sql} {_over(writer, terms, writer.shuffled(terms))}")
    made = writer.aggregate(terms, exact=writer.chance(0.7), plain=True)
    if kind == "rows":
        over = _over(writer, terms, writer.shuffled(terms), writer.dice.choice(_FRAMES))
    else:
        over = _over(writer, terms, writer.some(terms, 0, 2))
    return replace(made, sql=f"{made.sql} {over}")


def _rank_term(writer: Writer, terms: Sequence[Term]) -> Term:
    function = writer.dice.choice(_RANK_FUNCTIONS)
    # Rows that tie have the same rank; only row_number needs an order that leaves no ties.
    total = function == "row_number" or writer.chance(0.3)
    order = writer.shuffled(terms) if total else writer.some(terms, 1, 2)
    return Term(f"{function}() {_over(writer, terms, order)}", "int", small=False)


def _over(writer: Writer, terms: Sequence[Term], order: Sequence[Term], frame: str = "") -> str:
    keys = [term for term in terms if term.is_key]
    partition = [term.sql for term in writer.some(keys, 1, 2)] if writer.chance(0.75) else []
    parts = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    parts += [_order(writer, order)] if order else []
    return f"OVER ({' '.join([*parts, frame] if frame else parts)})"


def _order(writer: Writer, terms: Sequence[Term]) -> str:
    return f"ORDER BY {', '.join(_sort_key(writer, term.sql) for term in terms)}"


def _sort_key(writer: Writer, sql: str) -> str:
    # Spark's defaults are NULLS FIRST for ASC, and NULLS LAST for DESC.
    how = ("", "", " ASC", " DESC", " DESC", " NULLS LAST", " DESC NULLS FIRST", " ASC NULLS FIRST")
    return sql + writer.dice.choice(how)


WINDOWS: Mapping[str, Operator] = {
    "window_rank": partial(window, kind="rank"),
    "window_lag": partial(window, kind="lag"),
    "window_rows": partial(window, kind="rows"),
    "window_aggregate": partial(window, kind="whole"),
    "top_k": top_k,
    "limit": limit,
}
