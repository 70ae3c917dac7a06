"""How long does a Spark take that nobody has tuned?

The Spark has a process of its own, with its default settings except for cores, memory and address.
It runs queries over the given files and returns the duration of each: one line of JSON in, one
line out.

    with PlainSpark(memory="8g") as spark:
        seconds = spark.run(sql, {"orders": paths}, folder)
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType


class PlainSpark:
    """The client side of the process."""

    def __init__(self, memory: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, __file__, memory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, query: str, tables: Mapping[str, Sequence[str]], folder: Path) -> float:
        """The seconds to run a query over Parquet files and to write its result."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        asked = {"query": query, "tables": tables, "folder": str(folder)}
        print(json.dumps(asked), file=self._child.stdin, flush=True)
        for line in self._child.stdout:
            if line.startswith("seconds "):
                return float(line.split()[1])
        raise RuntimeError(f"the plain Spark ended with {self._child.wait()}")

    def __enter__(self) -> "PlainSpark":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            self._child.wait(30)
        except subprocess.TimeoutExpired:
            self._child.kill()


def _serve(memory: str) -> None:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    for line in sys.stdin:
        asked = json.loads(line)
        began = time.perf_counter()
        for name, paths in asked["tables"].items():
            spark.read.parquet(*paths).createOrReplaceTempView(name)
        spark.sql(asked["query"]).write.mode("overwrite").parquet(asked["folder"])
        print(f"seconds {time.perf_counter() - began}", flush=True)
    spark.stop()


if __name__ == "__main__":
    _serve(sys.argv[1])
