"""What are the rows of these offsets, and which of them are bad?

This process reads small ranges once, into its memory, and passes the rows on. For large ranges
Spark reads the bad rows in a separate pass.

`DataFrame.observe` could count the bad rows in the pass for the good rows, but it failed when we
tried it. Classic Spark waits for ever if the optimizer removes the observed rows from the plan (a
join with an empty table). The client of Spark Connect loses observations below `spark.sql`. Sail
has no such function.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from springhouse.lake.delta.tables import frame_of
from springhouse.lake.ingest.feeds import Feed
from springhouse.lake.lake import Lake
from springhouse.lake.landing.quarantine import QuarantinedRecord
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD, Range
from springhouse.planner.placement import fits_here
from springhouse.project.declarations.declaration import Reference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MARKS = (BAD, RECORD, ORIGIN)


class IngestRows:
    """The rows of some ranges, split into good and bad.

    `bad` are the bad rows, `count` is the number of all rows. `held` are the good rows in the
    memory of this process, by the place in the query that names their stream.
    """

    def __init__(self, lake: Lake, feed: Feed, ranges: Mapping[str, Range]) -> None:
        self.held: dict[Reference, tuple[pa.Table, StructType]] = {}
        self._lazy: dict[Reference, DataFrame] = {}
        self.bad: list[QuarantinedRecord] = []
        self.count = 0
        self._feed, self._ranges = feed, ranges
        is_small = fits_here(feed.size(ranges))
        self._session = lake.spark.session()
        for reference, rows in feed.read(self._session, ranges, lake.remote_scans).items():
            if BAD not in rows.columns:
                self._lazy[reference] = rows
            elif is_small:
                self._hold(reference, rows)
            else:
                self._lazy[reference] = rows.where(sf.col(BAD).isNull()).drop(*_MARKS)
                self._read_bad(reference)
                self.count += rows.count()

    def good(self) -> "dict[Reference, DataFrame]":
        """The good rows, by the place in the query that names their stream."""
        held = {
            reference: frame_of(self._session, rows, schema)
            for reference, (rows, schema) in self.held.items()
        }
        return self._lazy | held

    def _hold(self, reference: Reference, marked: "DataFrame") -> None:
        schema = StructType([f for f in marked.schema.fields if f.name not in _MARKS])
        rows = marked.toArrow()
        good = rows.drop_columns(list(_MARKS)).filter(pc.is_null(rows[BAD]))
        self.count += rows.num_rows
        if good.num_rows < rows.num_rows:
            self._read_bad(reference)
        self.held[reference] = good, schema

    def _read_bad(self, reference: Reference) -> None:
        """Read the bad rows again, now with their reasons: few ranges have bad rows."""
        again = self._feed.read_with_reasons(self._session, reference, self._ranges)
        marks = again.where(sf.col(BAD).isNotNull()).select(*_MARKS).toArrow()
        self.bad += [(row[BAD], row[RECORD], row[ORIGIN]) for row in marks.to_pylist()]
