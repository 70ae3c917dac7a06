"""What does a process keep of a change that several views read?

It keeps the rows that changed in a table between two versions. They stay in this process or in
Spark's memory until all views that share them are refreshed.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from springhouse.planner.refresh_plan import OneScan
from springhouse.units import Seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SharedScan:
    """A change that several views share; each view bears its `share` of the seconds.

    A change of few rows stays `here`, in this process; Spark keeps a larger one in `rows`.
    """

    change: OneScan
    readers: frozenset[str]
    share: Seconds
    here: pa.Table | None = None
    rows: "DataFrame | None" = None

    def load(self) -> pa.Table | None:
        """The change, row by row, if this process keeps it."""
        return self.here

    def read(self) -> "DataFrame":
        """The change, row by row, with the columns that its readers need."""
        assert self.rows is not None, "this process keeps it"
        # Every query with a frame as parameter drops a temporary view of that frame afterwards, and
        # Spark then also drops the cached rows of that frame. So the query gets another frame, over
        # the cached one.
        return self.rows.where("true")

    def is_for(self, view: str, table: str, since: int, until: int) -> bool:
        """Whether this is the change of a table between two versions, and `view` shares it."""
        own = self.change
        return view in self.readers and (own.table, own.since, own.until) == (table, since, until)

    def told(self, view: str) -> str:
        """A sentence that says which change was shared, and with which other views."""
        others = sorted(self.readers - {view})
        return f'what changed in "{self.change.table}" was read once, with {", ".join(others)}'
