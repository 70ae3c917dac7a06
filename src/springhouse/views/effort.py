"""How much work are the statements of a refresh, in numbers?

The statements give the number of queries and of the relations that the queries read. `views.spread`
estimates how many rows a change becomes, from the numbers of changed rows and of all rows. The
planner knows what that work costs.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from springhouse.views.algebra.query_tree import Scan, walk
from springhouse.views.compile import Compiled
from springhouse.views.delta.statement import Refresh, RelationKind
from springhouse.views.explanation import usual_statements
from springhouse.views.spread import spread


@dataclass(frozen=True)
class Effort:
    """The work of a refresh: rows that `changed`, and further rows that are `met` or `made`."""

    queries: int
    relations: int
    changed: int
    met: int = 0
    made: int = 0


def effort_of(refresh: Refresh, changed: Mapping[str, float], rows: Mapping[str, float]) -> Effort:
    """The work of a refresh after `changed` rows of the inputs changed, out of all `rows`."""
    asked = [each for step in refresh.steps for each in usual_statements(step)]
    relations = sum(len(statement.reads) for statement in asked)
    beyond = spread(refresh, changed, rows)
    total = int(sum(changed.values()))
    return Effort(len(asked), relations, total, beyond.met, beyond.made)


def read_again(view: Compiled, rows: Mapping[str, float]) -> float:
    """How many additional times a build of the state reads the rows of the plain query."""
    plain = sum(rows.get(node.input, 0) for node in walk(view.root) if isinstance(node, Scan))
    read = sum(
        rows.get(reading.of, 0)
        for step in view.build
        for reading in step.build.reads
        if reading.kind is RelationKind.AFTER
    )
    return read / max(plain, 1) - 1
