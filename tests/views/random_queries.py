"""Which queries should a view survive?

One operator is on top, with any others below it. This module holds the operators that work on
single rows, and those that only nest; joins, groups and windows have files of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from random_groups import GROUPS, measures
from random_joins import JOINS
from random_relations import Operator, Relation, Writer
from random_terms import Term, bare
from random_windows import WINDOWS


def make_query(
    dice: Random, tables: Sequence[Relation], depth: int, operator: str | None = None
) -> str:
    """A query over the tables, nested to this depth, with this operator or any operator on top."""
    # Every block is read and run some ten times over, and this is most of the cost of a case.
    writer = Writer(dice, tables, blocks=depth, operators=OPERATORS)
    return writer.block(depth, operator).sql


def filter_rows(writer: Writer, depth: int) -> Relation:
    origin = writer.source(depth - 1)
    terms = tuple(map(bare, origin.terms)) if writer.chance(0.3) else origin.terms
    rest = f" WHERE {writer.condition(terms)}"
    return writer.select(terms, origin.sql, origin.size, rest)


def project(writer: Writer, depth: int) -> Relation:
    origin = writer.source(depth - 1)
    terms = tuple(map(bare, origin.terms)) if writer.chance(0.3) else origin.terms
    items = [writer.expression([term, *terms], plain=0.25) for term in writer.some(terms, 1, 4)]
    return writer.select(items, origin.sql, origin.size, writer.where(terms, 0.15))


def derived_table(writer: Writer, depth: int) -> Relation:
    query = _body(writer, depth - 1)
    origin = writer.named(replace(query, sql=f"({query.sql})"))
    items = writer.outputs(origin.terms)
    return writer.select(items, origin.sql, origin.size, writer.where(origin.terms, 0.7))


def cte(writer: Writer, depth: int) -> Relation:
    body = _body(writer, depth - 1)
    name = writer.name("w")
    shared = Relation(name, body.terms, body.size)
    writer.wanted = [shared] * writer.dice.choice((1, 2, 2))
    writer.visible.append(shared)
    operator = writer.dice.choice(
        ("filter", "inner_join", "union_all", "left_join", "group_by", "exists", "except_all")
    )
    main = writer.block(1, operator)
    writer.visible.pop()
    writer.wanted = []
    return replace(main, sql=f"WITH {name} AS ({body.sql}) {main.sql}")


def _body(writer: Writer, depth: int) -> Relation:
    """Any query; at the bottom, one that adds little."""
    return writer.block(depth, None if depth > 0 else writer.dice.choice(("filter", "project")))


def values(writer: Writer, depth: int) -> Relation:
    writer.wanted = [writer.spelled_out()]
    operator = writer.dice.choice(
        ("inner_join", "union_all", "left_join", "full_join", "in_subquery", "comma_join")
    )
    main = writer.block(depth, operator)
    writer.wanted = []
    return main


def explode(writer: Writer, depth: int, column: bool) -> Relation:
    below = writer.source(depth - 1)
    if column:
        arrays = [term for term in below.terms if term.type == "array"]
        if not arrays:
            tables = [t for t in writer.tables if any(term.type == "array" for term in t.terms)]
            below = writer.named(writer.dice.choice(tables))
            arrays = [term for term in below.terms if term.type == "array"]
        array = writer.dice.choice(arrays).sql
    else:
        whole = [term.sql for term in below.terms if term.type == "int" and term.exact]
        listed = [*writer.dice.sample(whole, min(len(whole), 2)), writer.value("int")]
        array = f"array({', '.join(listed)})"
    view, name = writer.name("l"), writer.name("v")
    element = Term(f"{view}.{name}", "int", small=False)
    sql = f"{below.sql} LATERAL VIEW explode({array}) {view} AS {name}"
    terms = [*below.terms, element]
    size, rest = below.size * 3, writer.where([*below.terms, element], 0.4)
    if writer.chance(0.4):
        made = measures(writer, terms, "", grouped=True)
        rest += f" GROUP BY {element.sql}"
        return writer.select([element, *made], sql, 8, rest)
    return writer.select([*writer.outputs(below.terms, 1, 3), element], sql, size, rest)


# A seed picks positions in this mapping: another order would change the cases of all seeds.
OPERATORS: Mapping[str, Operator] = {
    "filter": filter_rows,
    "project": project,
    "derived_table": derived_table,
    "cte": cte,
    "values": values,
    **JOINS,
    **GROUPS,
    **WINDOWS,
    "explode_array": partial(explode, column=False),
    "explode_column": partial(explode, column=True),
}
