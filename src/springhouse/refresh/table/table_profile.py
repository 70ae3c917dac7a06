"""What does the scheduler have to know of a table?

What was declared of it: how often data comes, what it reads, how much its staleness weighs, what
was promised.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from springhouse.refresh.table.load_cost import LoadCost
from springhouse.units import Seconds


@dataclass(frozen=True)
class TableProfile:
    """A table or view. Without a period of its own it has the longest of what it reads.

    `cost` is what is known of its refreshes beforehand. `promise_seconds` is the strictest of its
    promises; data of some inputs may wait longer (`promise_by_input`). `patience_by_input` says by
    how much longer, where it is known what every table below this one allows.
    """

    name: str
    upstream: tuple[str, ...] = ()
    period_seconds: Seconds | None = None
    priority: float = 1.0
    promise_seconds: Seconds | None = None
    cost: LoadCost | None = None
    promise_by_input: Mapping[str, Seconds] = field(default_factory=dict, hash=False)
    patience_by_input: Mapping[str, Seconds] = field(default_factory=dict, hash=False)
