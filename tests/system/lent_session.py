"""A warehouse beside a user's own Spark Connect session: `lent_session.py ADDRESS FOLDER`."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from springhouse.warehouse import Warehouse

ADDRESS, FOLDER = sys.argv[1], Path(sys.argv[2])
ZONE = "spark.sql.session.timeZone"
PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

@dp.materialized_view
def zones():
    session = SparkSession.getActiveSession()
    assert session is SparkSession.builder.config("spark.sql.caseSensitive", "true").getOrCreate()
    return session.sql("SELECT current_timezone() AS zone")
"""


def refreshed_zone(settings: str) -> str:
    """The time zone inside a query function of a project with these settings."""
    folder = FOLDER / f"project-{len(list(FOLDER.iterdir()))}"
    (folder / "transformations").mkdir(parents=True)
    (folder / "transformations" / "zones.py").write_text(PYTHON)
    (folder / "spark-pipeline.yml").write_text(
        "name: test\nstorage: storage\n"
        f"configuration:\n  spark.sql.shuffle.partitions: '3'\n{settings}"
        "libraries:\n  - glob:\n      include: transformations/**\n"
    )
    with Warehouse(folder) as warehouse:
        done = warehouse.refresh()
        assert done.ok, done.failures
        return str(warehouse.query("SELECT zone FROM zones").collect()[0].zone)


FOLDER.mkdir()
mine = SparkSession.builder.remote(ADDRESS).getOrCreate()
mine.conf.set(ZONE, "Asia/Tokyo")
mine.sql("SELECT 1 AS one").createOrReplaceTempView("kept")
before = mine.conf.getAll

# First a project that names no server uses the lent session. Then one opens its own session.
assert refreshed_zone("") == "Asia/Tokyo"
own = f"  springhouse.spark.remote: '{ADDRESS}'\n  {ZONE}: Asia/Seoul\n"
assert refreshed_zone(own) == "Asia/Seoul"

assert SparkSession.getActiveSession() is mine
assert SparkSession.builder.remote(ADDRESS).getOrCreate() is mine
assert mine.conf.getAll == before
assert mine.table("kept").count() == 1
sys.stdout.write("undisturbed\n")
