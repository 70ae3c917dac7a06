"""Which column does a name in the query mean?

A scope holds the relations of a FROM clause in order, each with an alias. A name that none of them
has may belong to the outer query. The answer is always the one name that a column has in the whole
algebra.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.sql.expressions import Expression, column


@dataclass(frozen=True)
class Bound:
    """A relation in FROM: its alias, its columns as (name in the query, name in the algebra)."""

    alias: str
    columns: tuple[tuple[str, str], ...]

    def find(self, name: str) -> list[str]:
        return [unique for shown, unique in self.columns if shown.lower() == name.lower()]


@dataclass
class Scope:
    """The relations of one FROM, and the scope of the outer query.

    `merged` are the columns of USING and NATURAL joins, which have their own value.
    """

    relations: list[Bound] = field(default_factory=list)
    outer: "Scope | None" = None
    merged: dict[str, Expression] = field(default_factory=dict)
    # Names given earlier in the same SELECT list, which later items may use.
    given: dict[str, Expression] = field(default_factory=dict)

    def resolve(self, reference: exp.Column) -> Expression:
        """The meaning of a column name in the query."""
        found = self._find(reference)
        if found is not None:
            return found
        if reference.table:
            # `address.city` may be the field of a struct.
            parts = [part.name for part in reference.parts]
            inside = self._find(exp.column(parts[0]))
            if inside is not None:
                return _fields(inside, parts[1:])
        elif reference.name.lower() in self.given:
            return self.given[reference.name.lower()].copy()
        if self.outer is not None:
            return self.outer.resolve(reference)
        raise NotCompilable(
            f"`{reference.sql(dialect='spark')}` is no column that is known", reference
        )

    def _find(self, reference: exp.Column) -> Expression | None:
        name, table = reference.name, reference.table.lower()
        if not table and name.lower() in self.merged:
            return self.merged[name.lower()].copy()
        found = [
            unique
            for relation in self.relations
            if not table or relation.alias.lower() == table
            for unique in relation.find(name)
        ]
        if len(found) > 1:
            raise NotCompilable(
                f"`{reference.sql(dialect='spark')}` could be two columns", reference
            )
        return column(found[0]) if found else None

    def shown(self, unique: str) -> str:
        """The query's own name for a column."""
        names = [name for r in self.relations for name, known in r.columns if known == unique]
        return names[0] if names else unique

    def star(self, star: exp.Star, table: str = "") -> list[tuple[str, Expression]]:
        """The columns that `*` or `t.*` stands for, in order."""
        if star.args.get("replace") or star.args.get("rename"):
            raise NotCompilable("`* REPLACE` is not understood", star)
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        shown = self._all_of(table) if table else self._all()
        if not shown:
            raise NotCompilable(f"`{table}.*` names no relation here", star)
        return [(name, value.copy()) for name, value in shown if name.lower() not in left_out]

    def _all(self) -> list[tuple[str, Expression]]:
        """The columns of all relations; columns merged by USING come first, and once."""
        merged = [(self._shown(name), value) for name, value in self.merged.items()]
        own = [
            (name, column(unique))
            for relation in self.relations
            for name, unique in relation.columns
            if name.lower() not in self.merged
        ]
        return [*merged, *own]

    def _all_of(self, table: str) -> list[tuple[str, Expression]]:
        """The columns of the relations with one name."""
        return [
            (name, column(unique))
            for relation in self.relations
            if relation.alias.lower() == table.lower()
            for name, unique in relation.columns
        ]

    def _shown(self, lowered: str) -> str:
        names = [n for r in self.relations for n, _ in r.columns if n.lower() == lowered]
        return names[0]


def _fields(value: Expression, names: Sequence[str]) -> Expression:
    for name in names:
        value = exp.Dot(this=value, expression=exp.to_identifier(name))
    return value
