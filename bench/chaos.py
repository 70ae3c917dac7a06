"""Does any row get lost, doubled or wrong, whatever happens at once?

Two processes keep one warehouse fresh, without knowing of each other. Meanwhile random events
happen:

    new files, changes for CDC, records in a Delta table that is streamed
    another writer updates, deletes, overwrites, compacts and vacuums a Delta table under views
    another writer deletes a Delta table and creates it again, with as many versions or with fewer
    processes are killed (SIGKILL), stopped for a while (SIGSTOP), and started with a wrong clock:
    an hour behind, ten years ahead
    `vacuum` without any grace keeps only files that somebody needs; compaction
    files of views vanish or rot: rows, changes, state; files of nobody lie about
    the folder of a base table is deleted, so that the table is read again

At intervals the program kills all processes and lets one process refresh everything. It compares
every row of every table, view, quarantine and sink with the data that was sent, by DuckDB and plain
Python, without any code of Springhouse. `verify --recompute` must find nothing.

Run: `python bench/chaos.py [--minutes 30] [--seed N] [--keep FOLDER]`. The seed decides the order
of the events, and their tables and files; only their timing depends on the machine. If a row is
wrong, the exit code is 1, and the folder is kept.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from springhouse.errors import SpringhouseError
from springhouse.lake.upkeep.compaction import compact
from springhouse.warehouse import Warehouse

ROOT = Path(__file__).parents[1]
WORKER = Path(__file__).with_name("_chaos_worker.py")
SENSORS = 12
BETWEEN_CHECKS = 50
PATIENCE = 600.0
TEN_YEARS = 10 * 365.25 * 86_400

PIPELINE = """name: chaos
storage: storage
libraries:
  - glob:
      include: transformations/**
configuration:
  springhouse.compact.files: "6"
  springhouse.retry.seconds: "0.5"
"""

SQL = """
CREATE STREAMING TABLE readings (
  CONSTRAINT not_negative EXPECT (value >= 0) ON VIOLATION QUARANTINE
) TBLPROPERTIES ('springhouse.sink.audit' = 'positioned_file',
                 'springhouse.sink.audit.path' = 'audit.jsonl')
  AS SELECT * FROM STREAM read_files('data/readings', format => 'json',
    schema => 'id BIGINT, sensor BIGINT, value BIGINT');
CREATE STREAMING TABLE even AS SELECT id, value FROM STREAM(readings) WHERE value % 2 = 0;
CREATE STREAMING TABLE sensors;
CREATE FLOW sensors_in AS AUTO CDC INTO sensors
  FROM STREAM read_files('data/sensors', format => 'json',
    schema => 'sensor BIGINT, room STRING, op STRING, seq BIGINT')
  KEYS (sensor) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)
  STORED AS SCD TYPE 1;
CREATE STREAMING TABLE logged TBLPROPERTIES ('springhouse.recreated' = 'read')
  AS SELECT * FROM STREAM read_delta('data/log');
CREATE MATERIALIZED VIEW by_sensor AS
  SELECT sensor, count(*) AS n, sum(value) AS total, max(value) AS most
  FROM readings GROUP BY sensor;
CREATE MATERIALIZED VIEW spread TBLPROPERTIES ('springhouse.refresh' = 'incremental') AS
  SELECT n, count(*) AS sensors FROM (
    SELECT sensor, count(*) AS n FROM readings GROUP BY sensor) GROUP BY n;
CREATE MATERIALIZED VIEW by_room AS
  SELECT s.room, count(*) AS n, sum(r.value) AS total
  FROM readings r JOIN sensors s ON s.sensor = r.sensor GROUP BY s.room;
CREATE MATERIALIZED VIEW busiest AS
  SELECT sensor, n FROM by_sensor WHERE n = (SELECT max(n) FROM by_sensor);
CREATE MATERIALIZED VIEW rated TBLPROPERTIES ('springhouse.refresh' = 'incremental') AS
  SELECT x.rate, count(*) AS n, sum(r.value) AS total
  FROM readings r JOIN delta.`data/rates` x ON x.sensor = r.sensor GROUP BY x.rate;
CREATE MATERIALIZED VIEW rates AS
  SELECT rate, count(*) AS n FROM delta.`data/rates` GROUP BY rate;
CREATE MATERIALIZED VIEW copies AS SELECT count(*) AS n, sum(id) AS ids FROM even;
CREATE MATERIALIZED VIEW log_total AS SELECT count(*) AS n, sum(id) AS ids FROM logged;
"""
VIEWS = ["by_sensor", "spread", "by_room", "busiest", "rated", "rates", "copies", "log_total"]
QUERIES = {
    "readings": "SELECT * FROM sent WHERE value >= 0",
    "even": "SELECT id, value FROM sent WHERE value >= 0 AND value % 2 = 0",
    "sensors": "SELECT * FROM sensors",
    "logged": "SELECT * FROM log",
    "by_sensor": "SELECT sensor, count(*), sum(value), max(value) FROM good GROUP BY sensor",
    "spread": "SELECT n, count(*) FROM (SELECT count(*) AS n FROM good GROUP BY sensor) GROUP BY n",
    "by_room": "SELECT room, count(*), sum(value) FROM good JOIN sensors USING (sensor) GROUP BY 1",
    "busiest": "SELECT sensor, count(*) AS n FROM good GROUP BY sensor QUALIFY n = max(n) OVER ()",
    "rated": "SELECT rate, count(*), sum(value) FROM good JOIN rates USING (sensor) GROUP BY 1",
    "rates": "SELECT rate, count(*) FROM rates GROUP BY rate",
    "copies": "SELECT count(*), sum(id) FROM good WHERE value % 2 = 0",
    "log_total": "SELECT count(*), sum(id) FROM log",
}


class Wrong(Exception):
    """A row is lost, doubled or wrong."""


@dataclass
class Sent:
    """All data that was sent, and the current rows of other writers' tables."""

    readings: list[tuple[int, int, int]] = field(default_factory=list)
    rooms: dict[int, str] = field(default_factory=dict)
    log: list[tuple[int]] = field(default_factory=list)
    rates: dict[int, int] = field(default_factory=dict)
    sequence: int = 0


class Chaos:
    """One warehouse, two processes that run it, and the random events."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.dice = folder, random.Random(seed)
        self.sent = Sent()
        self.did: Counter[str] = Counter()
        self.checks = 0
        self.files = 0
        self._workers: list[subprocess.Popen[bytes] | None] = [None, None]
        self.storage = folder / "storage"
        for name in ("transformations", "data/readings", "data/sensors"):
            (folder / name).mkdir(parents=True)
        self._log = (folder / "workers.log").open("ab")
        (folder / "spark-pipeline.yml").write_text(PIPELINE)
        (folder / "transformations" / "all.sql").write_text(SQL)
        self.rates_anew()
        self.log_anew()
        self.arrive()
        self.sensors()

    # Actions of others

    def arrive(self) -> None:
        """Write new files; one in ten readings is bad."""
        for _ in range(self.dice.randint(1, 3)):
            first = len(self.sent.readings)
            rows = []
            for number in range(first, first + self.dice.randint(1, 60)):
                bad = self.dice.random() < 0.1
                value = -1 if bad else self.dice.randrange(1000)
                rows.append((number, self.dice.randrange(SENSORS), value))
            self.sent.readings += rows
            names = ("id", "sensor", "value")
            self._file("readings", [dict(zip(names, row, strict=True)) for row in rows])

    def sensors(self) -> None:
        """Changes of sensors: moved, gone, back; late ones among them."""
        events = []
        for _ in range(self.dice.randint(1, 8)):
            sensor, room = self.dice.randrange(SENSORS), f"room {self.dice.randrange(4)}"
            gone = self.dice.random() < 0.25
            self.sent.sequence += 2
            event = {"sensor": sensor, "room": room, "op": "D" if gone else "U"}
            events.append({**event, "seq": self.sent.sequence})
            if self.dice.random() < 0.2:
                events.append({**event, "room": "too late", "op": "U", "seq": 1 - sensor})
            if gone:
                self.sent.rooms.pop(sensor, None)
            else:
                self.sent.rooms[sensor] = room
        self.dice.shuffle(events)
        self._file("sensors", events)

    def log_more(self) -> None:
        first = len(self.sent.log)
        rows = [(number,) for number in range(first, first + self.dice.randint(1, 20))]
        self.sent.log += rows
        write_deltalake(self.data("log"), pa.table({"id": [r[0] for r in rows]}), mode="append")

    def log_anew(self) -> None:
        """Delete the streamed table once all of it was read, and create it again."""
        if self.sent.log:
            self._await_log()
        shutil.rmtree(self.data("log"), ignore_errors=True)
        for _ in range(self.dice.randint(1, 4)):
            self.log_more()

    def _await_log(self) -> None:
        until = time.monotonic() + PATIENCE
        while len(rows_of(self.storage / "tables" / "logged") or ()) < len(self.sent.log):
            self._run()
            if time.monotonic() > until:
                raise Wrong(f"logged does not get the rows of the log: {self._told()}")
            time.sleep(0.5)

    def log_compacted(self) -> None:
        DeltaTable(self.data("log")).optimize.compact()

    def rates_change(self) -> None:
        table, kind = DeltaTable(self.data("rates")), self.dice.randrange(4)
        sensor, rate = self.dice.randrange(SENSORS), self.dice.randrange(5)
        if kind == 0:
            table.update(updates={"rate": str(rate)}, predicate=f"sensor = {sensor}")
            self.sent.rates |= {sensor: rate} if sensor in self.sent.rates else {}
        elif kind == 1:
            table.delete(f"sensor = {sensor}")
            self.sent.rates.pop(sensor, None)
        elif kind == 2 and sensor not in self.sent.rates:
            self.sent.rates[sensor] = rate
            write_deltalake(table, _rates({sensor: rate}), mode="append")
        else:
            self.sent.rates = {s: self.dice.randrange(5) for s in range(SENSORS) if s % 2 or rate}
            write_deltalake(table, _rates(self.sent.rates), mode="overwrite")

    def rates_vacuumed(self) -> None:
        table = DeltaTable(self.data("rates"))
        table.vacuum(0, dry_run=False, enforce_retention_duration=False)

    def rates_anew(self) -> None:
        """Delete a table and create it again, with as many versions as before or other ones."""
        before = 0
        if self.data("rates").exists():
            before = DeltaTable(self.data("rates")).version()
            shutil.rmtree(self.data("rates"))
        self.sent.rates = {s: self.dice.randrange(5) for s in range(SENSORS)}
        write_deltalake(self.data("rates"), _rates(self.sent.rates))
        for _ in range(before if self.dice.random() < 0.5 else self.dice.randint(0, 3)):
            self.sent.rates = {s: self.dice.randrange(5) for s in range(SENSORS)}
            write_deltalake(self.data("rates"), _rates(self.sent.rates), mode="overwrite")

    # Harm to the warehouse

    def kill(self) -> None:
        self._end(self.dice.randrange(2))

    def pause(self) -> None:
        which, seconds = self.dice.randrange(2), self.dice.uniform(0.5, 5.0)
        worker = self._workers[which]
        if worker is not None and worker.poll() is None:
            worker.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            worker.send_signal(signal.SIGCONT)

    def wrong_clock(self) -> None:
        which = self.dice.randrange(2)
        self._end(which)
        self._begin(which, self.dice.choice([-3600.0, TEN_YEARS]))

    def vacuum(self) -> None:
        with Warehouse(self.folder) as warehouse:
            warehouse.vacuum("0 seconds", grace_seconds=0.0)

    def compact(self) -> None:
        table = self.dice.choice(["readings", "even", "logged", *VIEWS])
        with Warehouse(self.folder) as warehouse:
            compact(warehouse.internals.lake, table, 2)

    def lose(self) -> None:
        self._harm(lambda path: path.unlink())

    def rot(self) -> None:
        def rotten(path: Path) -> None:
            size = path.stat().st_size
            path.write_bytes(b"PAR1" + b"\xff" * max(size - 8, 0) + b"PAR1")

        self._harm(rotten)

    def _harm(self, how: Callable[[Path], Any]) -> None:
        """Harm any file of a view, in use or not."""
        view = self.storage / "tables" / self.dice.choice(VIEWS)
        found = sorted(path for path in view.rglob("*.parquet") if "_delta_log" not in path.parts)
        pick = self.dice.random()
        if found:
            try:
                how(found[int(pick * len(found))])
            except FileNotFoundError:
                return  # Another process vacuumed the file first.

    def rubbish(self) -> None:
        table = self.storage / "tables" / self.dice.choice(["readings", *VIEWS])
        if table.exists():
            (table / f"rubbish-{self.dice.randrange(10**9)}.parquet").write_bytes(b"PAR1")

    def base_table_deleted(self) -> None:
        shutil.rmtree(self.storage / "tables" / "sensors", ignore_errors=True)

    # The processes

    def _run(self) -> None:
        for which, worker in enumerate(self._workers):
            if worker is None or worker.poll() is not None:
                self._begin(which, 0.0)

    def _begin(self, which: int, off: float) -> None:
        self._workers[which] = self._worker("live", off, self._log)

    def _worker(self, job: str, off: float, out: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, str(WORKER), job, str(self.folder), str(off)],
            stdout=out,
            stderr=self._log,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )

    def _end(self, which: int) -> None:
        worker = self._workers[which]
        if worker is not None:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait(timeout=60)
        self._workers[which] = None

    def end(self) -> None:
        for which in range(2):
            self._end(which)

    def _told(self) -> str:
        return "".join((self.folder / "workers.log").read_text().splitlines(keepends=True)[-5:])

    # Checks

    def step(self) -> str:
        self._run()
        happens = self.dice.choices(list(HAPPENINGS), list(HAPPENINGS.values()))[0]
        pause = self.dice.expovariate(1.0)
        try:
            getattr(self, happens)()
        except (DeltaError, SpringhouseError) as error:
            # Our tool interfered with another process; it may report that, and changes nothing.
            self._log.write(f"{happens}: {error}\n".encode())
            self._log.flush()
            self.did[f"{happens} (refused)"] += 1
        self.did[happens] += 1
        time.sleep(pause)
        return happens

    def check(self) -> None:
        """Kill all processes, refresh everything, and check every row."""
        self.end()
        told = self.folder / "told.json"
        with told.open("wb") as out:
            worker = self._worker("settle", 0.0, out)
            try:
                worker.wait(timeout=PATIENCE)
            finally:
                if worker.poll() is None:
                    os.killpg(worker.pid, signal.SIGKILL)
                    worker.wait(timeout=60)
        lines = told.read_text().splitlines()
        if worker.returncode or not lines:
            raise Wrong(f"the process that settles ended with {worker.returncode}: {self._told()}")
        said = json.loads(lines[-1])
        if said["failures"] or said["problems"]:
            raise Wrong(json.dumps(said, indent=1))
        for name, wanted in self._wanted().items():
            self._compare(name, wanted, Counter(rows_of(self.storage / "tables" / name) or ()))
        bad = [row for row in self.sent.readings if row[2] < 0]
        self._compare("quarantine", Counter(r[0] for r in bad), self._quarantined())
        self._compare("audit", Counter(r for r in self.sent.readings if r[2] >= 0), self._audited())
        self.checks += 1

    def _wanted(self) -> dict[str, "Counter[Any]"]:
        sent = self.sent
        with duckdb.connect() as database:
            tables = {
                "sent": _table(("id", "sensor", "value"), sent.readings),
                "sensors": _table(("sensor", "room"), list(sent.rooms.items())),
                "log": _table(("id",), sent.log),
                "rates": _rates(sent.rates),
            }
            for name, rows in tables.items():
                database.register(name, rows)
            database.execute("CREATE VIEW good AS SELECT * FROM sent WHERE value >= 0")
            return {n: Counter(database.execute(q).fetchall()) for n, q in QUERIES.items()}

    def _quarantined(self) -> "Counter[Any]":
        table = DeltaTable(self.storage / "tables" / "readings_quarantine").to_pyarrow_table()
        return Counter(json.loads(record)["id"] for record in table["record"].to_pylist())

    def _audited(self) -> "Counter[Any]":
        """The lines of the sink, up to its last checkpoint."""
        checkpoints = (self.folder / "audit.jsonl.checkpoints").read_text().splitlines()
        position = int(checkpoints[-1].split()[1])
        lines = (self.folder / "audit.jsonl").read_bytes()[:position].splitlines()
        rows = [json.loads(line) for line in lines]
        return Counter((row["id"], row["sensor"], row["value"]) for row in rows)

    def _compare(self, name: str, wanted: "Counter[Any]", found: "Counter[Any]") -> None:
        if wanted == found:
            return
        lost, more = wanted - found, found - wanted
        raise Wrong(
            f"{name}: {lost.total()} rows lost or wrong, {more.total()} too many; "
            f"lost {list(lost.items())[:3]}, too many {list(more.items())[:3]}"
        )

    def data(self, name: str) -> Path:
        return self.folder / "data" / name

    def _file(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Write a file that appears whole, as arriving files do."""
        self.files += 1
        path = self.data(name) / f"{self.files:06}.json"
        hidden = self.folder / f"{path.name}.part"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        hidden.rename(path)


HAPPENINGS = {
    "arrive": 30,
    "sensors": 10,
    "log_more": 8,
    "log_anew": 2,
    "log_compacted": 2,
    "rates_change": 10,
    "rates_vacuumed": 4,
    "rates_anew": 3,
    "kill": 6,
    "pause": 3,
    "wrong_clock": 2,
    "vacuum": 6,
    "compact": 5,
    "lose": 4,
    "rot": 3,
    "rubbish": 2,
    "base_table_deleted": 1,
}


def rows_of(place: Path) -> list[tuple[Any, ...]] | None:
    try:
        table = DeltaTable(place).to_pyarrow_table()
    except (TableNotFoundError, FileNotFoundError):
        return None
    return [tuple(row.values()) for row in table.to_pylist()]


def _table(names: tuple[str, ...], rows: list[Any]) -> pa.Table:
    kinds = {"room": pa.string()}
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pa.array(c, kinds.get(n, pa.int64())) for n, c in zip(names, columns, strict=True)]
    return pa.table(arrays, names=list(names))


def _rates(rates: dict[int, int]) -> pa.Table:
    return _table(("sensor", "rate"), sorted(rates.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--keep", type=Path, help="work in this folder, and keep it")
    asked = parser.parse_args()
    folder = asked.keep or Path(tempfile.mkdtemp(prefix="chaos-"))
    print(f"seed {asked.seed}, {asked.minutes:g} minutes", flush=True)
    began = time.monotonic()
    chaos = Chaos(folder, asked.seed)
    try:
        while time.monotonic() - began < 60 * asked.minutes or not chaos.checks:
            for _ in range(BETWEEN_CHECKS):
                chaos.step()
            chaos.check()
            passed = (time.monotonic() - began) / 60
            print(f"{passed:5.1f} min: check {chaos.checks} is right", flush=True)
    except Wrong as wrong:
        print(f"WRONG after {chaos.did.total()} happenings: {wrong}", flush=True)
        print(f"replay: python bench/chaos.py --seed {asked.seed}; kept: {folder}", flush=True)
        raise SystemExit(1) from wrong
    finally:
        chaos.end()
    print(f"{chaos.did.total()} happenings: {dict(sorted(chaos.did.items()))}")
    print(
        f"{len(chaos.sent.readings):,} readings, {chaos.sent.sequence // 2:,} changes of sensors, "
        f"{len(chaos.sent.log):,} records of the log: {chaos.checks} checks of 12 tables and "
        "views, a quarantine and a sink: none lost, doubled or wrong"
    )
    if asked.keep is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
