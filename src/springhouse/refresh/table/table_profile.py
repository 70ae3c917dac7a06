"""Which declared facts about a table does the scheduler need?

How often data comes, what the table reads, how much its staleness weighs, and what the table
promises.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from springhouse.refresh.table.load_cost import LoadCost
from springhouse.units import Seconds


@dataclass(frozen=True)
class TableProfile:
    """A table or view. Without a period of its own it has the longest period of its inputs.

    `cost` is the cost of its refreshes, if it is known beforehand. `promise_seconds` is the
    strictest of its promises; data of some inputs may wait longer (`promise_by_input`).
    `patience_by_input` says by how much longer, if it is known what every table below this one
    allows.
    """

    name: str
    upstream: tuple[str, ...] = ()
    period_seconds: Seconds | None = None
    priority: float = 1.0
    promise_seconds: Seconds | None = None
    cost: LoadCost | None = None
    promise_by_input: Mapping[str, Seconds] = field(default_factory=dict, hash=False)
    patience_by_input: Mapping[str, Seconds] = field(default_factory=dict, hash=False)
