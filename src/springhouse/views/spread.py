"""How many rows does a change become on its way through a refresh?

If a supplier moves, one row changes, and with it all lines that the supplier ever delivered. Their
number is known only after the join, so this module estimates it. The statements say in which tables
a refresh looks a change up (`near`), directly or through other tables. Of two joined tables, the
larger one usually refers to the smaller one. Then a row of the smaller table joins
`larger / smaller` rows on average, and a row of the larger table joins one. Changes of both tables
usually belong together, as orders and their lines do. So only the change that becomes most rows
counts, in addition to the changed rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from springhouse.views.delta.statement import Bag, Refresh, RelationKind, RelationRead, Statement
from springhouse.views.explanation import usual_statements


@dataclass(frozen=True)
class Spread:
    """Further rows besides the changed ones: rows `met` for groups, rows `made` in the view."""

    met: int = 0
    made: int = 0


def spread(refresh: Refresh, changed: Mapping[str, float], rows: Mapping[str, float]) -> Spread:
    """How many rows the `changed` rows of the inputs become.

    `rows` are the row counts of inputs and hidden tables; the view itself is called "".
    """
    met = made = 0
    for step in refresh.steps:
        is_bag = isinstance(step, Bag)
        # The view can't gain or lose more rows than it has: filters leave some out.
        most = rows.get(step.table) if is_bag else None
        beyond = sum(_beyond(each, changed, rows, most) for each in usual_statements(step))
        met, made = (met, made + beyond) if is_bag else (met + beyond, made)
    return Spread(met, made)


def _beyond(
    statement: Statement,
    changed: Mapping[str, float],
    rows: Mapping[str, float],
    most: float | None,
) -> int:
    became = [0.0]
    total = 0.0
    for reading in statement.reads:
        if reading.kind is RelationKind.CHANGE and reading.of in changed and rows.get(reading.of):
            met = max((rows.get(name, 0) for name in _met_by(reading, statement)), default=0)
            met = min(met, most) if most else met
            became.append(changed[reading.of] * max(met / rows[reading.of], 1.0))
            total += changed[reading.of]
    return int(max(max(became) - total, 0.0))


def _met_by(change: RelationRead, statement: Statement) -> set[str]:
    """The tables in which the rows of a change are looked up, directly or through others."""
    reached = {change.name}
    met: set[str] = set()
    # A relation may be looked up through a relation that follows it in the statement.
    for _ in statement.reads:
        for reading in statement.reads:
            sought_by = {name for near in reading.near for name, _ in near.among}
            if reading.kind in (RelationKind.BEFORE, RelationKind.AFTER) and sought_by & reached:
                reached.add(reading.name)
                met.add(reading.of)
    return met
