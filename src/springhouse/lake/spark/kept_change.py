"""What does a process keep of a change that several views read?

The rows of a table's change between two versions, in this process or in Spark's memory, for as long
as the views that share them are refreshed.
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
    """A change that is kept for some views; each of them bears its `share` of the seconds.

    Few rows are kept `here`, in this process, and others by Spark.
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
        # Spark forgets what it keeps when a view of the same text is dropped, as after every query
        # that a frame is given to: so it is given another one, over what is kept.
        return self.rows.where("true")

    def is_for(self, view: str, table: str, since: int, until: int) -> bool:
        """Whether this is how a table changed, for a view, between two versions."""
        own = self.change
        return view in self.readers and (own.table, own.since, own.until) == (table, since, until)

    def told(self, view: str) -> str:
        """What was shared, and with whom."""
        others = sorted(self.readers - {view})
        return f'what changed in "{self.change.table}" was read once, with {", ".join(others)}'
