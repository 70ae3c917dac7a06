"""A warehouse that is killed again and again, at any moment, takes in every record exactly once.

Files keep arriving while a worker runs the warehouse live. The test kills the worker and its JVM at
random moments, and starts them again. At the end the test compares every table with the files, and
every view with a recomputation that shares no code with the warehouse.
"""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

from patience import patience

LIVES = 21
SEED = 7
MOMENTS = (("writing", 40, 0.03), ("finished", 12, 0.8), ("writing", 40, 0.03), ("spark", 1, 5.0))
TICKS = 200
PARTITIONS = 3
RATE = 4

SQL = f"""
CREATE STREAMING TABLE readings (
  CONSTRAINT not_negative EXPECT (value >= 0) ON VIOLATION QUARANTINE
) AS SELECT * FROM STREAM read_files('data/readings', format => 'json',
  schema => 'id BIGINT, sensor BIGINT, value BIGINT');

CREATE STREAMING TABLE ticks AS SELECT *
  FROM STREAM sample(rate => '{RATE}', partitions => '{PARTITIONS}', limit => '{TICKS}');

CREATE STREAMING TABLE even_readings AS
  SELECT id, value FROM STREAM(readings) WHERE value % 2 = 0;

CREATE STREAMING TABLE sensors;
CREATE FLOW sensors_in AS AUTO CDC INTO sensors
  FROM STREAM read_files('data/sensors', format => 'json',
    schema => 'sensor BIGINT, room STRING, op STRING, seq BIGINT')
  KEYS (sensor) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)
  STORED AS SCD TYPE 1;

CREATE MATERIALIZED VIEW by_sensor AS
  SELECT sensor, count(*) AS readings, sum(value) AS total FROM readings GROUP BY sensor;

CREATE MATERIALIZED VIEW by_room AS
  SELECT s.room, count(*) AS readings, max(r.value) AS highest
  FROM readings r JOIN sensors s ON s.sensor = r.sensor GROUP BY s.room;

CREATE MATERIALIZED VIEW busiest AS
  SELECT sensor, readings FROM by_sensor WHERE readings = (SELECT max(readings) FROM by_sensor);

-- In no version of it may a reading be without its copy, or a copy without its reading.
CREATE MATERIALIZED VIEW balance AS
  SELECT count(r.id) AS readings, count(c.id) AS copies
  FROM readings r FULL JOIN copied c ON c.id = r.id;
"""

VIEWS = {
    "by_sensor": "SELECT sensor, count(*), sum(value) FROM readings GROUP BY ALL",
    "by_room": "SELECT room, count(*), max(value) FROM readings JOIN sensors USING (sensor) "
    "GROUP BY ALL",
    "busiest": "SELECT sensor, count(*) AS n FROM readings GROUP BY sensor "
    "QUALIFY n = max(n) OVER ()",
    "balance": "SELECT count(*), count(*) FROM readings",
}

PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.table
def copied() -> DataFrame:
    return spark.readStream.table("readings").select("id", "value")
"""


class World:
    """The arriving data: it writes files, and remembers their records."""

    def __init__(self, folder: Path, drop: Callable[[Path, str, str], None], seed: int) -> None:
        self.readings: list[tuple[int, int, int]] = []
        self.bad_readings: list[str] = []
        self.sensors: dict[int, tuple[int, str | None]] = {}
        self.bad_sensors: list[str] = []
        self._dice = random.Random(seed)
        self._data = folder / "data"
        self._drop = drop
        self._files = 0
        self._id = 0

    @contextmanager
    def turning(self) -> Iterator[None]:
        """Files keep arriving inside this context."""
        over = threading.Event()

        def turn() -> None:
            while not over.wait(0.2):
                self.arrive()

        thread = threading.Thread(target=turn)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(timeout=patience(20))

    def arrive(self) -> None:
        """Write one more file of readings, and sometimes one of sensors."""
        self._files += 1
        lines = [self._reading() for _ in range(self._dice.randint(1, 8))]
        self._drop(self._data / "readings", f"{self._files:05}.json", "\n".join(lines) + "\n")
        if self._files % 3 == 0:
            lines = [self._sensor() for _ in range(self._dice.randint(1, 5))]
            self._drop(self._data / "sensors", f"{self._files:05}.json", "\n".join(lines) + "\n")

    def _reading(self) -> str:
        self._id += 1
        sensor, value = self._dice.randrange(10), self._dice.randrange(100)
        kind = self._dice.random()
        if kind < 0.05:
            bad = {"id": self._id, "sensor": sensor, "value": -1}
        elif kind < 0.10:
            bad = {"id": self._id, "sensor": "a", "value": value}
        else:
            self.readings.append((self._id, sensor, value))
            return json.dumps({"id": self._id, "sensor": sensor, "value": value})
        self.bad_readings.append(json.dumps(bad))
        return self.bad_readings[-1]

    def _sensor(self) -> str:
        """An event, sometimes an old one: its sequence number decides, not the order of arrival."""
        self._id += 1
        if self._dice.random() < 0.1:
            self.bad_sensors.append(f'{{"sensor": 1, "room": "torn {self._id}')
            return self.bad_sensors[-1]
        sensor, deletes = self._dice.randrange(10), self._dice.random() < 0.2
        sequence = 10 * self._id - (10_000 if self._dice.random() < 0.3 else 0)
        room = None if deletes else f"room {self._dice.randrange(4)}"
        self.sensors[sensor] = max(
            self.sensors.get(sensor, (-100_000, None)), (sequence, room), key=lambda event: event[0]
        )
        event = {"sensor": sensor, "room": room, "op": "D" if deletes else "U", "seq": sequence}
        return json.dumps(event)


def test_killed_at_any_moment(
    start_worker: Callable[..., Any],
    write_project: Callable[..., Path],
    drop: Callable[[Path, str, str], None],
    rows_of: Callable[..., list[dict[str, Any]]],
) -> None:
    print(f"seed {SEED}")  # noqa: T201  pytest shows it when the test fails
    folder = write_project(SQL, PYTHON, **{"springhouse.compact.files": "8"})
    world = World(folder, drop, SEED)
    dice = random.Random(SEED)
    at_work = 0
    with world.turning():
        for life in range(LIVES):
            worker = start_worker(folder)
            worker.say("run")
            # While Spark starts, around a commit, or anywhere in a refresh.
            event, most, seconds = MOMENTS[life % len(MOMENTS)]
            worker.hear(event, dice.randint(1, most))
            time.sleep(dice.uniform(0.0, seconds))
            at_work += bool(worker.running)
            worker.kill()
            assert worker.heard("failed") == []
    assert at_work >= LIVES / 2, f"only {at_work} of {LIVES} kills hit a refresh"

    worker = start_worker(folder)
    assert worker.ask("refresh", "refreshed", 240)["failures"] == {}
    deadline = time.monotonic() + patience(120)
    while len(rows_of(folder, "ticks")) < TICKS * PARTITIONS:
        assert time.monotonic() < deadline, "the ticks do not come to their limit"
        assert worker.ask("refresh", "refreshed")["failures"] == {}
    assert worker.ask("refresh", "refreshed")["done"] == [], "there was nothing left to do"
    assert worker.heard("failed") == []
    worker.kill()

    prove_tables(world, lambda name: rows_of(folder, name))
    prove_ticks(rows_of(folder, "ticks"))
    prove_views(folder)


def prove_tables(world: World, rows: Callable[[str], list[dict[str, Any]]]) -> None:
    """Every record is in its table once, or in its quarantine once."""

    def counted(name: str) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row.values()) for row in rows(name))

    assert counted("readings") == Counter(world.readings)
    aside = Counter(canonical(row["record"]) for row in rows("readings_quarantine"))
    assert aside == Counter(map(canonical, world.bad_readings))
    assert counted("even_readings") == Counter((i, v) for i, _, v in world.readings if v % 2 == 0)
    assert counted("copied") == Counter((i, v) for i, _, v in world.readings)
    alive = {sensor: room for sensor, (_, room) in world.sensors.items() if room is not None}
    assert counted("sensors") == Counter(alive.items())
    torn = Counter(row["record"] for row in rows("sensors_quarantine"))
    assert torn == Counter(world.bad_sensors)


def prove_ticks(ticks: list[dict[str, Any]]) -> None:
    """Every offset of every partition is in the table once, with its time."""
    found = Counter((tick["partition"], tick["offset"]) for tick in ticks)
    assert found == Counter((p, o) for p in range(PARTITIONS) for o in range(TICKS))
    anchor = min(tick["time"] for tick in ticks)
    assert all(t["time"] == anchor + timedelta(seconds=t["offset"] / RATE) for t in ticks)


def prove_views(folder: Path) -> None:
    """DuckDB computes the same views from the tables; `balance` was consistent all the time."""
    tables = folder / "storage" / "tables"
    with duckdb.connect() as other:
        for name in ("readings", "sensors"):
            other.register(name, DeltaTable(tables / name).to_pyarrow_table())
        for view, query in VIEWS.items():
            stored = DeltaTable(tables / view).to_pyarrow_table().to_pylist()
            expected = other.execute(query).fetchall()
            assert sorted(tuple(row.values()) for row in stored) == sorted(expected), view
    newest = DeltaTable(tables / "balance").version()
    for version in range(newest + 1):
        old = DeltaTable(tables / "balance", version=version).to_pyarrow_table().to_pylist()
        assert all(row["readings"] == row["copies"] for row in old), f"balance at {version}: {old}"


def canonical(record: str) -> str:
    """A record as text that does not depend on the spacing of the JSON."""
    return json.dumps(json.loads(record), sort_keys=True)
