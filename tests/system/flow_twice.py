"""A process that runs a flow on a cluster where one task runs twice: `flow_twice.py FOLDER MASTER`.

The first attempt of one task writes all its files and hangs before it can report them. Spark then
speculates: it starts the task again on the other host, and uses the report of that attempt.
"""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

import springhouse
from springhouse.flows.declare import Draft
from springhouse.flows.flow_settings import Settings
from springhouse.lake.flows import run_flow as running
from springhouse.lake.flows import stage_jobs
from springhouse.lake.flows.task import StageTask
from springhouse.lake.spark.session import Spark

folder, master = Path(sys.argv[1]), sys.argv[2]
MARK = str(folder / "an attempt hangs")
LONGEST_SECONDS = 120
SETTINGS = {
    "springhouse.spark.master": master,
    "spark.driver.memory": "700m",
    "spark.executor.memory": "700m",
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
}


class HangsOnce(StageTask):
    """The first attempt of partition 1 hangs after it has written its files."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        told = list(super().__call__(batches))
        context = TaskContext.get()
        first = context is not None and (context.partitionId(), context.attemptNumber()) == (1, 0)
        if first and not os.path.exists(MARK):  # noqa: PTH110  few imports in a worker
            with open(MARK, "w"):  # noqa: PTH123  as above
                time.sleep(LONGEST_SECONDS)  # Spark kills it long before.
        yield from told


@springhouse.flow
def parted(flow: Draft) -> None:
    low, high = flow.read("numbers").split("n < 400")
    low.write("low")
    high.write("high")
    high.aggregate(rows="count(*)").write("total")


if __name__ == "__main__":
    stage_jobs.StageTask = HangsOnce  # type: ignore[misc]  # the flow runs with it
    spark = Spark(SETTINGS, "flow").session()
    numbers = spark.range(0, 1000, numPartitions=2).withColumnRenamed("id", "n")
    targets = {name: str(folder / name) for name in ("low", "high", "total")}
    got = running.run_flow(
        spark,
        parted,
        sources={"numbers": numbers},
        targets=targets,
        batch=1,
        settings=Settings(pack_bytes=400, queue_packs=2),
    )
    print(got)  # noqa: T201  the test reads it
    spark.stop()
