"""What must a source be able to do?

Paper 003, section 2.1: a source is a set of partitions. A partition is an ordered sequence of
records that can be read again: the same offsets always give the same records. Offsets count from 0.
One commit of a flow takes in a range `[start, end)` of offsets of each partition.

A user's own source is a subclass of `Source` with two methods:

    @springhouse.source("weather")
    class Weather(springhouse.Source):
        def __init__(self, city, rate="1"):   # the arguments and options of the SQL call, as text
            ...
        def latest(self):                     # {partition: end of what can be read now}
            return {"0": 120}
        def read(self, spark, ranges):        # {partition: Range}, exactly these records
            ...                               # returns a DataFrame

    CREATE STREAMING TABLE weather AS SELECT * FROM STREAM weather('Oslo', rate => '10');

Everything else in `Source` has a default. A class with these two methods that is no subclass works,
too: `adapted` gives it the defaults.

A source may take a keyword argument `context`: a `SourceContext`.

A record that does not fit is neither dropped nor an error. The source returns it as a row with
`BAD` set (the reason; NULL in good rows), `RECORD` (the record as it was) and `ORIGIN` (where the
record came from). Such rows go to the table's quarantine.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from springhouse.errors import SourceError
from springhouse.lake.delta.requirements import Requirement
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BAD = "__springhouse_bad"
RECORD = "__springhouse_record"
ORIGIN = "__springhouse_origin"


class Range(NamedTuple):
    """The offsets from `start` up to, but not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class SourceContext:
    """What a source may know about the flow and the node that use it."""

    flow: str  # a name that only this use of the source has
    folder: Path  # the project's: relative paths are relative to it
    storage: Storage  # a folder for what this source must write down before it reads
    now: Callable[[], Instant]
    node: str = "local"
    leader: bool = True
    memory: Mapping[str, Any] = field(default_factory=dict)


class Source(ABC):
    """Partitions of records that can be read again."""

    identified_by: ClassVar[Sequence[str] | None] = None
    """The arguments that say what the source reads; None: all of them do.

    With other values for these arguments it is another source, and `run` asks before it reads that
    source from the start. Leave out a password or a rate: `identified_by = ("city",)`.
    """

    memory: dict[str, Any] | None = None
    """What the source wants to remember.

    The commit that holds the offsets also holds what is in it after `read`. The next process finds
    it in `context.memory`. None: the source remembers nothing.
    """

    largest_range: int | None = None
    """The most offsets of one partition that one commit takes in; None: no limit."""

    must_be_there: bool = False
    """Whether it is an error that `incarnation` is None after records were read."""

    reads_recreated: bool = False
    """Whether a source that was deleted and created again is read without asking the user."""

    warning: str | None = None
    """A problem that is no error, such as a missing folder; every `run` and `status` shows it."""

    @abstractmethod
    def latest(self) -> Mapping[str, int]:
        """Every partition that exists now, with the end of what can be read of it."""

    @abstractmethod
    def read(self, spark: "SparkSession", ranges: Mapping[str, Range]) -> "DataFrame":
        """Exactly the records of these ranges; the same ranges always give the same records."""

    def glance(self, spark: "SparkSession", ranges: Mapping[str, Range]) -> "DataFrame":
        """The same rows as `read`, but `BAD` need not hold the true reason.

        Override it where working out the reasons is slow: `read` is then called only for ranges
        that have bad rows.
        """
        return self.read(spark, ranges)

    def admit(self) -> None:  # noqa: B027  optional
        """Write down which record has which offset, for all that `latest` has counted.

        Called by a refresh before it compares the records of two tables; `read` must do the same.
        `status` and `plan` call `latest` alone, and write nothing.
        """

    def admit_under(self, requires: Sequence[Requirement]) -> None:
        """`admit`; if that makes a commit in the storage, the commit requires this."""
        self.admit()

    def size(self, ranges: Mapping[str, Range]) -> int:
        """About how many bytes the records of these ranges have; 0: unknown, taken as little."""
        return 0

    def identity(self, ranges: Mapping[str, Range]) -> object | None:
        """A value that is equal for two uses of the source exactly if their records are equal.

        Tables that read the same records share one pass over the source. None: the records may
        differ. The default compares offsets, unless the source has a memory or takes a context:
        both may change the records.
        """
        if self.memory is not None or "context" in signature(type(self)).parameters:
            return None
        return dict(ranges)

    def incarnation(self) -> str | None:
        """An id that changes if the source is deleted and created again, such as a topic's id.

        None: there is no such id, or the source does not exist now.
        """
        return None

    def begin_anew(self) -> None:  # noqa: B027  optional
        """Forget the source that was read before: another one has taken its place."""

    def mark(self, end: int) -> str | None:
        """A fingerprint of the last record below the offset `end`; None: there is none."""
        return None

    def has_mark(self, mark: str) -> bool:
        """Whether the source still has the record with this fingerprint."""
        return True

    def stepped_back(self, start: int, latest: int) -> SourceError | None:
        """The error to raise if `start` offsets were read and only `latest` exist; None: none."""
        return None

    def sync(self, ranges: Mapping[str, Range]) -> None:  # noqa: B027  optional
        """Return when the records of these ranges would survive a power failure."""
