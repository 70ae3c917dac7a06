"""One life of a process that runs a flow: `flow_life.py FOLDER [TABLE]`.

In the first task a Python worker exits in the middle of its rows; this happens in one life only.
With a TABLE, the process and its JVM end by SIGKILL just before the commit of that table.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import springhouse
from springhouse.flows.declare import Draft
from springhouse.flows.flow_settings import Settings
from springhouse.lake.flows import run_flow as running
from springhouse.lake.spark.session import Spark

folder = Path(sys.argv[1])
dies_at = sys.argv[2] if len(sys.argv) > 2 else None
MARK = str(folder / "a worker has died")


@springhouse.flow
def parted(flow: Draft) -> None:
    def exits_once(pack: pa.RecordBatch) -> pa.RecordBatch:
        if 777 in pack.column("n").to_pylist() and not os.path.exists(MARK):  # noqa: PTH110  few imports in a worker
            with open(MARK, "w"):  # noqa: PTH123  as above
                os._exit(1)
        return pack

    low, high = flow.read("numbers").apply(exits_once).split("n < 400")
    low.write("low")
    high.write("high")
    high.aggregate(rows="count(*)").write("total")


def watched(original: Any) -> Any:
    def called(place: Any, *others: Any) -> None:
        # `place` is the storage of a table, or a version of a table with a `place`.
        root = place.storage.root if hasattr(place, "storage") else place.root
        if Path(root).name == dies_at:
            os.killpg(0, signal.SIGKILL)
        original(place, *others)

    return called


if __name__ == "__main__":
    running.commit = watched(running.commit)
    running.create = watched(running.create)
    # Each task may fail three times.
    spark = Spark({"springhouse.spark.master": "local[2,4]"}, "flow").session()
    numbers = spark.range(0, 1000, numPartitions=2).withColumnRenamed("id", "n")
    targets = {name: str(folder / name) for name in ("low", "high", "total")}
    chosen = Settings(pack_bytes=400, queue_packs=2)
    got = running.run_flow(
        spark, parted, sources={"numbers": numbers}, targets=targets, batch=1, settings=chosen
    )
    print(got)  # noqa: T201  the test reads it
