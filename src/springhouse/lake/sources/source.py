"""What must a source be able to do?

Paper 003, section 2.1: a source is a set of partitions; each is an ordered, replayable sequence
of records; and reading the same offsets again gives the same records. Offsets count from 0; a
range `[start, end)` of one is what a flow takes in with one commit. That is all, so a user's own
source is a small class:

    @springhouse.source("weather")
    class Weather:
        def __init__(self, city, rate="1"):   # the arguments and options of the SQL call, as text
            ...
        def latest(self):                     # {partition: end of what can be read now}
            return {"0": 120}
        def read(self, spark, ranges):        # {partition: Range}, exactly these records
            ...                               # returns a DataFrame

    CREATE STREAMING TABLE weather AS SELECT * FROM STREAM weather('Oslo', rate => '10');

A source may also take a keyword `context` (a `SourceContext`), and keep a dict `memory`: what is
in it after `read` is written in the same commit as the offsets, and given back in
`context.memory`.

Records that do not fit are neither dropped nor fatal. A source that meets one gives it as a row
with `BAD` set (the reason; NULL in good rows), `RECORD` (the record as it was) and `ORIGIN`
(where it came from). Such rows go to the table's quarantine. Where the reason is dear, a source
may also have `glance`, which is `read` without good reasons: `read` is then asked only for ranges
with bad rows.

The arguments say what a source reads: with others, it is another source, and the flow asks before
it reads that from the start. A class whose arguments do not all say that (a password, a rate) lists
those that do: `identified_by = ("city",)`.

A source may have `warning`, a text or None: what looks wrong and is no error, such as a folder that
is not there. It is told with every `run` and `status`.

Two tables may read one source with the same arguments. They are given its records in one pass where
it is sure that these are the same: ranges with the same offsets, of a source that takes no
`context` and keeps no `memory`. One that does may have `identity(ranges)`: what it gives is equal
for two uses with the same arguments exactly if the records of the ranges are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BAD = "__springhouse_bad"
RECORD = "__springhouse_record"
ORIGIN = "__springhouse_origin"


class Range(NamedTuple):
    """The offsets `start` up to, and without, `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class SourceContext:
    """What a source may know of the world it is used in."""

    flow: str  # a name that only this use of the source has
    folder: Path  # the project's: relative paths are relative to it
    storage: Storage  # a folder of its own, for what it has to write down before it reads
    now: Callable[[], Instant]
    node: str = "local"
    leader: bool = True
    memory: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Source(Protocol):
    """Partitions that can be read again."""

    def latest(self) -> Mapping[str, int]:
        """Every partition that there is now, with the end of what can be read of it."""
        ...

    def read(self, spark: "SparkSession", ranges: Mapping[str, Range]) -> "DataFrame":
        """Exactly the records of these ranges; the same ranges always give the same records."""
        ...
