"""Which settings does a Spark session get, and why?

Every session gets `EVERY_SESSION`, and a classic Spark that we start gets `CLASSIC_SPARK`, too. The
settings of the project come on top. Queries over few rows run in a session with other settings
(`SMALL_QUERIES`), none of which changes a value: they only make small queries faster.
"""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from springhouse.lake.storage import s3
from springhouse.logged_errors import passing
from springhouse.planner.placement import is_compiled, is_one_job
from springhouse.project.declarations.secrets import has_reference

LOG = logging.getLogger("springhouse.spark")

EVERY_SESSION = {
    # Delta wants timestamps as microseconds; the old INT96 has no statistics either.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.partitionOverwriteMode": "static",
    # A process that dies in the first batch of a stream leaves a temporary file in its checkpoint.
    # Spark would refuse to go on for ever, because the folder is not empty.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}
CLASSIC_SPARK = {
    "spark.scheduler.mode": "FAIR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 2)),
    # Refreshes are small and many: a driver that plans them needs room more than executors do.
    "spark.driver.memory": "2g",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Each table that is broadcast takes a page at least, and a refresh joins dozens of tiny ones.
    "spark.buffer.pageSize": "2m",
    # Who asks for a thousand files by name does not want a Spark job that looks for them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "5000",
    # Files that a source lists are many and tiny; open them in few tasks.
    "spark.sql.files.openCostInBytes": str(256 * 1024),
    # A warehouse runs the same queries again and again: what is compiled for one refresh is kept
    # for the next, for more than the dozen views that Spark's own default has room for.
    "spark.sql.codegen.cache.maxEntries": "2000",
}

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
SMALL_QUERIES = {
    **EVERY_SESSION,
    # Plans are made from the sizes of the files, which are known; nobody has to look again.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.leafNodeDefaultParallelism": "1",
    # Rows that were given are counted, sorted and joined by tasks, not while a plan is made.
    # Nor is it asked first whether there are any.
    EXCLUDED_RULES: (
        "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation,"
        "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromGenerate"
    ),
    "spark.sql.autoBroadcastJoinThreshold": str(32 * 2**20),
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Rows in a plan are hashed again and again by those who compare plans. But of rows that are not
    # in it Spark does not know how few they are, and would shuffle and sort them for every join.
    "spark.sql.execution.arrow.localRelationThreshold": str(2**22),
}
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Without compiled code each row would ask a cache for what two expressions share.
    "spark.sql.subexpressionElimination.enabled": "false",
}
_COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
_IN_ONE_JOB = {
    # What lies in one partition each is sorted and merged where it is. A broadcast is a job of its
    # own, and for every job Spark reads its own classes again, half a megabyte, to prove closures.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}

_NAMES_A_SECRET = re.compile(r"secret|password|token|access\.?key", re.IGNORECASE)
"""As `spark.redaction.regex` has it: Spark does not show such settings either."""


@dataclass(frozen=True)
class LocalInput:
    """What a query reads if this process gives it all of its rows, each relation in one place.

    Its text, and so the code for it, is the same every time; where Spark reads files, ranges of
    keys stand in it.
    """

    relations: int
    rows: int

    @property
    def settings(self) -> dict[str, str]:
        code = _COMPILED if is_compiled(self.rows) else INTERPRETED
        return code | (_IN_ONE_JOB if is_one_job(self.relations, self.rows) else {})


def own_settings(configuration: Mapping[str, str]) -> dict[str, str]:
    """The settings of Spark that a project makes."""
    return {
        key: value
        for key, value in configuration.items()
        if key.startswith("spark.") and key != "spark.remote"
    }


def secret_settings(configuration: Mapping[str, str]) -> frozenset[str]:
    """The settings that refer to secrets, or whose names say that they are secret."""
    written = getattr(configuration, "written", configuration)
    return frozenset(
        key for key, value in written.items() if has_reference(value) or _NAMES_A_SECRET.search(key)
    )


def s3_settings() -> dict[str, str]:
    """The settings of S3 for a Spark that runs already: there they go by Hadoop's own names."""
    settings = s3.spark_settings() | s3.spark_credentials()
    return {k.removeprefix("spark.hadoop."): v for k, v in settings.items()}


def apply_settings(session: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        with passing(LOG, "Spark works without this setting", Exception):
            session.conf.set(key, value)
