"""Which settings does a Spark session get, and why?

Every session gets `EVERY_SESSION`. A classic Spark that Springhouse starts also gets
`CLASSIC_SPARK`. The settings of the project come on top. Queries over few rows run in a session
with other settings (`SMALL_QUERIES`). These settings make small queries faster and change no
result.
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
    # Delta wants timestamps as microseconds. The old INT96 also has no statistics.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.partitionOverwriteMode": "static",
    # A process that dies in the first batch of a stream leaves a temporary file in its checkpoint.
    # With this check on, Spark would never continue, because the folder is not empty.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}
CLASSIC_SPARK = {
    "spark.scheduler.mode": "FAIR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 2)),
    # Refreshes are small and many: the driver, which plans them, needs more memory than executors.
    "spark.driver.memory": "2g",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Each broadcast table takes at least one page, and a refresh joins dozens of tiny tables.
    "spark.buffer.pageSize": "2m",
    # Springhouse names its files, often a thousand; no Spark job has to look for them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "5000",
    # A source lists many tiny files; open them in few tasks.
    "spark.sql.files.openCostInBytes": str(256 * 1024),
    # A warehouse runs the same queries again and again. So it keeps the compiled code of one
    # refresh for the next. Spark's default has room for a dozen views only.
    "spark.sql.codegen.cache.maxEntries": "2000",
}

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
SMALL_QUERIES = {
    **EVERY_SESSION,
    # Spark knows the sizes of the files when it plans; it need not adapt a plan while it runs.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.leafNodeDefaultParallelism": "1",
    # Tasks count, sort and join local rows; the optimizer must not do it while it makes a plan.
    # Nor must it add a filter for empty arrays.
    EXCLUDED_RULES: (
        "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation,"
        "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromGenerate"
    ),
    "spark.sql.autoBroadcastJoinThreshold": str(32 * 2**20),
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Spark hashes the rows inside a plan again whenever it compares plans. But if the rows are
    # outside the plan, Spark does not know how few they are, and shuffles and sorts them for every
    # join.
    "spark.sql.execution.arrow.localRelationThreshold": str(2**22),
}
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Without compiled code, every row would look up shared subexpressions in a cache.
    "spark.sql.subexpressionElimination.enabled": "false",
}
_COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
_IN_ONE_JOB = {
    # Relations of one partition each are sorted and merged in place. A broadcast is a separate job,
    # and for every job Spark reads half a megabyte of its own classes again to check closures.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}

_NAMES_A_SECRET = re.compile(r"secret|password|token|access\.?key", re.IGNORECASE)
"""The same pattern as `spark.redaction.regex`: Spark does not show such settings either."""


@dataclass(frozen=True)
class LocalInput:
    """The input of a query that gets all of its rows from this process.

    The text of such a query, and so its compiled code, is the same every time. The text of a query
    over files is not, because it contains ranges of keys.
    """

    relations: int
    rows: int

    @property
    def settings(self) -> dict[str, str]:
        code = _COMPILED if is_compiled(self.rows) else INTERPRETED
        return code | (_IN_ONE_JOB if is_one_job(self.relations, self.rows) else {})


def own_settings(configuration: Mapping[str, str]) -> dict[str, str]:
    """The Spark settings of a project."""
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
    """The S3 settings for a Spark that already runs; they have Hadoop's own names there."""
    settings = s3.spark_settings() | s3.spark_credentials()
    return {k.removeprefix("spark.hadoop."): v for k, v in settings.items()}


def apply_settings(session: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        with passing(LOG, "Spark works without this setting", Exception):
            session.conf.set(key, value)
