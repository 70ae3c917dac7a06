"""A warehouse keeps its schedule while the machine's clock jumps, and reports the jump."""

import time
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.lake.delta.commits import ensure
from springhouse.lake.delta.note import Note
from springhouse.lake.storage.clock import SteadyClock
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant
from springhouse.warehouse import Warehouse, Warned

HOUR = 3600.0
TEN_YEARS = 10 * 365.25 * 86_400


class Jumping:
    """The wall clock of a machine that somebody sets, when it is asked for the `after`-th time."""

    def __init__(self, jump: float, after: int = 4) -> None:
        self.jump, self.left = jump, after

    def __call__(self) -> float:
        self.left -= 1
        return time.time() + (self.jump if self.left < 0 else 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a table and an empty source: nothing needs Spark."""
    (tmp_path / "transformations").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "transformations" / "all.sql").write_text(
        "CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_delta('data/nothing');"
    )
    (tmp_path / "spark-pipeline.yml").write_text(
        "name: jumps\nstorage: storage\nlibraries:\n  - glob:\n      include: transformations/**\n"
    )
    place = Storage.at(str(tmp_path / "storage" / "tables" / "orders"))
    columns = StructType([StructField("id", LongType())])
    ensure(place, columns, Note("schema", Instant(1.0), channel=True))
    return tmp_path


@pytest.mark.parametrize(
    ("jump", "way"), [(-HOUR, "went back"), (HOUR, "went on"), (TEN_YEARS, "went on")]
)
def test_a_run_of_a_second_takes_a_second_though_the_clock_jumps(folder, jump, way):
    told = []
    clock = SteadyClock(wall=Jumping(jump))
    with Warehouse(folder, clock=clock, listener=told.append) as warehouse:
        began = clock()
        warehouse.run(seconds=1.0)
        assert clock() - began < abs(jump) / 2
    warnings = [event.warning for event in told if isinstance(event, Warned)]
    assert len([each for each in warnings if way in each and "clock" in each]) == 1
