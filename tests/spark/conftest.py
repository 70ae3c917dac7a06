"""One Spark session for all tests that need one."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from springhouse.lake.session import Spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    started = Spark({"springhouse.spark.master": "local[2]"}, "tests")
    yield started.session()
    started.stop()
