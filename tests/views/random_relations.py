"""Where do the rows of a query come from?

They come from tables, common table expressions, rows in the query's text, and other queries. Each
source has a name, and some sources are joined. A `Writer` writes one query: one SELECT block for
each operator, over blocks and tables. The caller supplies the operators, which write their blocks
with it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from random_tables import Row, kind_of
from random_terms import Term, TermWriter, comparable

_MOST_JOINED = 4_000


@dataclass(frozen=True)
class Relation:
    """SQL that makes rows, the terms that a query may use about them, and roughly how many."""

    sql: str
    terms: tuple[Term, ...]
    size: int
    spelled: bool = False
    """Whether it is a VALUES, whose columns its alias must name."""


def relations_of(
    tables: Mapping[str, Mapping[str, str]], rows: Mapping[str, list[Row]]
) -> list[Relation]:
    return [
        # Changes may add some rows to those.
        Relation(
            table,
            tuple(Term(name, kind_of(type_)) for name, type_ in columns.items()),
            size=len(rows[table]) + 5,
        )
        for table, columns in tables.items()
    ]


class Writer(TermWriter):
    """Writes one query: a block for each operator, of blocks and tables."""

    def __init__(
        self,
        dice: Random,
        tables: Sequence[Relation],
        blocks: int,
        operators: "Mapping[str, Operator]",
    ) -> None:
        super().__init__(dice)
        self.tables = tables
        self.blocks = blocks
        """How many more may be nested."""
        self.operators = operators
        self.numbers = count(1)
        self.unaliased = {table.sql for table in tables}
        self.visible: list[Relation] = []
        """Common table expressions that may be read here."""
        self.wanted: list[Relation] = []
        """Relations that must be read next."""

    def name(self, letter: str) -> str:
        return f"{letter}{next(self.numbers)}"

    def block(self, depth: int, operator: str | None = None) -> Relation:
        """A query with that operator on top, or with any."""
        if operator is None:
            arrays = any(term.type == "array" for table in self.tables for term in table.terms)
            operator = self.dice.choice(list(self.operators))
            if operator == "explode_column" and not arrays:
                operator = "explode_array"
        return self.operators[operator](self, max(depth, 1))

    # --- sources of rows

    def source(self, depth: int) -> Relation:
        """A table or a nested query, under a new alias."""
        return self.named(self.below(depth))

    def below(self, depth: int) -> Relation:
        """A table or a nested query, without an alias."""
        if self.wanted:
            return self.wanted.pop()
        if depth > 0 and self.blocks > 0 and self.chance(0.8):
            self.blocks -= 1
            query = self.block(depth)
            return replace(query, sql=f"({query.sql})")
        return self.leaf()

    def source_with(self, depth: int, fits: Callable[[Term], bool], least: int = 1) -> Relation:
        """A source with at least this many terms that fit; every table has two keys."""
        source = self.source(depth)
        if sum(map(fits, source.terms)) >= least:
            return source
        return self.named(self.dice.choice(self.tables))

    def leaf(self) -> Relation:
        if self.visible and self.chance(0.5):
            return self.dice.choice(self.visible)
        return self.dice.choice(self.tables)

    def spelled_out(self) -> Relation:
        types = [self.dice.choice(("int", "int", "string", "decimal", "date")) for _ in range(2)]
        types[0] = "int"
        rows = [
            f"({', '.join(self.value_or_null(type_, 0.1) for type_ in types)})"
            for _ in range(self.dice.randint(1, 4))
        ]
        terms = tuple(Term(self.name("v"), type_) for type_ in types)
        return Relation(f"(VALUES {', '.join(rows)})", terms, len(rows), spelled=True)

    def named(self, relation: Relation) -> Relation:
        # Use a table without an alias once at most, so that an inner one never hides an outer one.
        if relation.sql in self.unaliased and self.chance(0.25):
            self.unaliased.remove(relation.sql)
            alias, sql = relation.sql, relation.sql
        else:
            alias = self.name("q")
            columns = ", ".join(term.sql for term in relation.terms)
            sql = f"{relation.sql} AS {alias}" + (f"({columns})" if relation.spelled else "")
        terms = tuple(replace(term, sql=f"{alias}.{term.sql}") for term in relation.terms)
        return Relation(sql, terms, relation.size)

    # --- joins

    def partner(self, left: Relation, depth: int) -> Relation:
        """A relation to join with, small enough to keep the result small."""
        if not self.wanted and self.chance(0.05):
            return self.named(self.spelled_out())
        right = self.source(depth if self.chance(0.3) else min(depth, 1))
        if left.size * right.size <= _MOST_JOINED:
            return right
        smallest = min(self.tables, key=lambda table: table.size)
        fits = left.size * smallest.size <= _MOST_JOINED
        return self.named(smallest if fits else self.spelled_out())

    def equality(self, left: Sequence[Term], right: Sequence[Term]) -> str:
        """A condition that makes a join an equi-join; any condition if no columns match."""
        pairs = [(one, other) for one in left for other in right if comparable(one, other)]
        if not pairs:
            return self.condition([*left, *right])
        one, other = self.pair(pairs)
        return f"{one.sql} {'<=>' if self.chance(0.08) else '='} {other.sql}"

    def pair(self, pairs: Sequence[tuple[Term, Term]]) -> tuple[Term, Term]:
        """One of those pairs, preferably one whose values often meet."""
        # A boolean joins every row with half of all rows. Decimals and sums are seldom small
        # integers.
        likely = [
            pair
            for pair in pairs
            if pair[0].type != "boolean"
            and all(term.small for term in pair)
            and {term.type for term in pair} != {"int", "decimal"}
        ]
        return self.dice.choice(likely if likely and self.chance(0.8) else pairs)

    def on(self, left: Relation, right: Relation) -> str:
        if self.chance(0.12):
            pairs = [(o, p) for o in left.terms for p in right.terms if comparable(o, p)]
            if pairs:
                one, other = self.dice.choice(pairs)
                return f"{one.sql} {self.dice.choice(('<', '<>', '>='))} {other.sql}"
        conditions = [self.equality(left.terms, right.terms)]
        if self.chance(0.1):
            conditions.append(self.equality(left.terms, right.terms))
        if self.chance(0.2):
            conditions.append(self.condition([*left.terms, *right.terms]))
        return " AND ".join(dict.fromkeys(conditions))

    def joined(self, left: Relation, kind: str, right: Relation) -> Relation:
        sql = f"{left.sql} {kind} {right.sql} ON {self.on(left, right)}"
        size = max(left.size * right.size // 3, left.size, right.size)
        return Relation(sql, (*left.terms, *right.terms), size)

    # --- clauses

    def origin(self, depth: int) -> Relation:
        """The text after FROM: one source, or several joined sources."""
        relation = self.source(depth)
        while self.chance(0.3):
            kind = self.dice.choice(("JOIN", "JOIN", "LEFT JOIN", "FULL OUTER JOIN"))
            relation = self.joined(relation, kind, self.partner(relation, 0))
        return relation

    def where(self, terms: Sequence[Term], share: float = 0.2) -> str:
        return f" WHERE {self.condition(terms)}" if self.chance(share) else ""

    def select(
        self, items: Sequence[Term], origin: str, size: int, rest: str = "", how: str = ""
    ) -> Relation:
        """SELECT, with a name for each item: often the column's own name, as people write it."""
        names: list[str] = []
        for item in items:
            own = re.fullmatch(r"(?:\w+\.)?([a-z]\w*)", item.sql)
            keeps = own and own[1] not in names and self.chance(0.6)
            names.append(own[1] if own and keeps else self.name("c"))
        columns = ", ".join(
            f"{item.sql} AS {name}" for item, name in zip(items, names, strict=True)
        )
        terms = tuple(replace(item, sql=name) for item, name in zip(items, names, strict=True))
        return Relation(f"SELECT {how}{columns} FROM {origin}{rest}", terms, size)


Operator = Callable[[Writer, int], Relation]
"""Writes a block of that depth at most, with something of its own on top."""
