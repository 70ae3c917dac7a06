"""Which columns of two sides of a join are equal?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from springhouse.views.sql.expressions import Expression


@dataclass(frozen=True)
class Link:
    """The equalities between two sides, as (column here, column there)."""

    pairs: tuple[tuple[str, str], ...] = ()
    others: tuple[Expression, ...] = ()

    @staticmethod
    def between(
        conditions: Sequence[Expression], here: Iterable[str], there: Iterable[str]
    ) -> "Link":
        mine, theirs = set(here), set(there)
        pairs, others = [], []
        for each in conditions:
            sides = (each.this, each.expression) if isinstance(each, exp.EQ) else ()
            names = [side.name for side in sides if isinstance(side, exp.Column)]
            if len(names) == 2 and names[0] in mine and names[1] in theirs:
                pairs.append((names[0], names[1]))
            elif len(names) == 2 and names[1] in mine and names[0] in theirs:
                pairs.append((names[1], names[0]))
            else:
                others.append(each)
        return Link(tuple(pairs), tuple(others))
