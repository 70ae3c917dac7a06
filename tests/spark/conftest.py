"""One Spark session for all tests that need one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from springhouse.lake.spark.session import Spark


@pytest.fixture(scope="session")
def spark(kafka_jars: str, s3_jars: str) -> Iterator[SparkSession]:
    jars = ",".join(each for each in (kafka_jars, s3_jars) if each)
    started = Spark({"springhouse.spark.master": "local[2]", "spark.jars": jars}, "tests")
    yield started.session()
    started.stop()


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Callable[..., Path]:
    """Writes a project of SQL (and Python) text. Its warehouses share the tests' Spark."""

    def write(sql: str = "", python: str = "", **configuration: str) -> Path:
        folder = tmp_path / "project"
        (folder / "transformations").mkdir(parents=True, exist_ok=True)
        settings = "".join(f'  {key}: "{value}"\n' for key, value in configuration.items())
        (folder / "spark-pipeline.yml").write_text(
            "name: test\nstorage: storage\n"
            "libraries:\n  - glob:\n      include: transformations/**\n"
            + (f"configuration:\n{settings}" if settings else "")
        )
        for name, text in (("all.sql", sql), ("all.py", python)):
            if text:
                (folder / "transformations" / name).write_text(text)
        return folder

    return write
