"""How many rows did the tasks of a Spark job write?

Files that a job wrote can vanish before their footers are read. The count of the tasks reveals
this. Spark returns the count with the result of the job, at almost no cost. The count is only a
second check, so an engine that can't count is no error.
"""

import time
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from springhouse.lake.delta.tables import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PATIENCE_SECONDS = 10.0
"""How long to wait for the count. Spark sends it through a queue of events, a moment after the job
ends. Sometimes it never comes: if Spark knows that there are no rows, no task counts them."""

_PAUSE_SECONDS = 0.01

_COUNTS: "WeakKeyDictionary[SparkSession, bool]" = WeakKeyDictionary()
"""Whether the server of a session can count rows."""


class RowCounter:
    """Counts rows while a single job reads `rows`."""

    def __init__(self, rows: "DataFrame") -> None:
        self.rows = rows
        self._observed: Any = None
        if _can_count(rows.sparkSession):
            self.rows, self._observed = _observed(rows)

    def count(self) -> int | None:
        """The number of rows; None if the engine did not report it."""
        if self._observed is None:
            return None
        if is_remote(self.rows.sparkSession):
            return _number(self._observed.get)
        # `get` alone has no time-out.
        future = self._observed._jo.future()  # noqa: SLF001  the only way to ask so
        until = time.monotonic() + _PATIENCE_SECONDS
        while not future.isCompleted():
            if time.monotonic() > until:
                return None
            time.sleep(_PAUSE_SECONDS)
        return _number(self._observed.get)


def _observed(rows: "DataFrame") -> "tuple[DataFrame, Any]":
    if is_remote(rows.sparkSession):
        from pyspark.sql.connect.observation import Observation
    else:
        from pyspark.sql import Observation  # type: ignore[assignment]
    observation = Observation()
    return rows.observe(observation, sf.count(sf.lit(1)).alias("rows")), observation  # type: ignore[arg-type]


def _can_count(spark: "SparkSession") -> bool:
    if not is_remote(spark):
        return True
    if spark not in _COUNTS:
        try:
            rows, observation = _observed(spark.range(1))
            rows.collect()
            _COUNTS[spark] = _number(observation.get) == 1
        except (PySparkException, NotImplementedError):
            _COUNTS[spark] = False
    return _COUNTS[spark]


def _number(told: dict[str, Any]) -> int | None:
    number = told.get("rows")
    return None if number is None else int(number)
