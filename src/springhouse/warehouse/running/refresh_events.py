"""Which events does a warehouse report while it works?

Every event is a fact. A listener gets all events, in the order in which they happen.
"""

from collections.abc import Callable
from dataclasses import dataclass

from springhouse.lake.landing.landing import Done
from springhouse.lake.sinks.delivery import Delivered
from springhouse.refresh.retry import Failure


@dataclass(frozen=True)
class SparkNeeded:
    """Rows have to be computed for the first time: Spark starts, which takes seconds."""


@dataclass(frozen=True)
class Started:
    """A refresh began."""

    table: str
    track: int
    reason: str


@dataclass(frozen=True)
class Finished:
    """A refresh ended well. `gave_way` says so if another writer was faster."""

    table: str
    track: int
    done: Done | None
    gave_way: str | None = None


@dataclass(frozen=True)
class Failed:
    """A refresh ended with an error; it is tried again at `failure.retry_at`."""

    table: str
    track: int
    failure: Failure


@dataclass(frozen=True)
class Warned:
    """Something is odd, and stops nothing; an empty `table` means the machine."""

    table: str
    warning: str


Event = SparkNeeded | Started | Finished | Failed | Delivered | Warned
Listener = Callable[[Event], None]
