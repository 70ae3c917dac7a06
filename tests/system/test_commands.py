"""Commands from a shell: the signals that stop them, their files, and what other users see."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from springhouse.lake.spark.java import find_java

SOURCE = Path(__file__).parents[2] / "src"
SECRET = "s3cr3t-of-the-bucket"
GENEROUS = 240.0

PIPELINE = """
name: shop
storage: storage
libraries:
  - glob:
      include: transformations/**
configuration:
  springhouse.spark.master: local[2]
  spark.sql.shuffle.partitions: "2"
  spark.hadoop.fs.s3a.secret.key: ${env:THE_SECRET}
  spark.hadoop.fs.s3a.access.key: ${file:key.txt}
  spark.hadoop.fs.s3a.session.token: written-down-plainly
"""
TICKS = """
CREATE STREAMING TABLE ticks
  TBLPROPERTIES ('springhouse.sink.out' = 'positioned_file',
                 'springhouse.sink.out.path' = 'out/${env:THE_SECRET}')
  AS SELECT offset FROM STREAM sample(limit => '3', start => '2026-01-01');
CREATE STREAMING TABLE orders
  AS SELECT * FROM STREAM read_files('orders', format => 'json', schema => 'id BIGINT');
"""
SLOW = """
import pathlib, time
from pyspark import pipelines as dp
import helpers

HERE = pathlib.Path(__file__).parent.parent

def wait(batches):
    (HERE / "started").touch()
    while not (HERE / "go").exists():
        time.sleep(0.05)
    yield from batches

@dp.materialized_view
def slow():
    return spark.read.table("ticks").mapInArrow(wait, "offset BIGINT")
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    for name in ("transformations", "orders", "lib"):
        (folder / name).mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(PIPELINE)
    (folder / "key.txt").write_text(f"{SECRET}-file\n")
    (folder / "transformations" / "ticks.sql").write_text(TICKS)
    (folder / "transformations" / "slow.py").write_text(SLOW)
    (folder / "lib" / "helpers.py").write_text("x = 1\n")
    (folder / "orders" / "1.json").write_text('{"id": 1}\n')
    return folder


def started(shop: Path, *arguments: str) -> "subprocess.Popen[str]":
    find_java()
    return subprocess.Popen(
        [sys.executable, "-m", "springhouse", *arguments, "-p", str(shop)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={
            **os.environ,
            "PYTHONPATH": f"{SOURCE}{os.pathsep}{shop / 'lib'}",
            "THE_SECRET": SECRET,
        },
    )


def until(true: Callable[[], bool], running: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + GENEROUS
    while not true():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


def command_lines() -> list[bytes]:
    """The command lines of the machine's processes, as every user of the machine sees them."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:  # The process is gone.
            continue
    return lines


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder, with its size and time."""
    found = [folder, *folder.rglob("*")]
    return {str(p): (p.lstat().st_size, p.lstat().st_mtime_ns) for p in found}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_whole_group_lets_what_runs_be_committed(
    shop: Path, number: signal.Signals
) -> None:
    with started(shop, "run") as running:
        until((shop / "started").exists, running)
        if number is signal.SIGTERM:
            for secret in (SECRET, "written-down-plainly"):
                assert not [line for line in command_lines() if secret.encode() in line]
        os.killpg(running.pid, number)
        assert running.stderr is not None
        assert running.stderr.readline().startswith("stopping after the running commits")
        (shop / "go").touch()
        out, err = running.communicate(timeout=GENEROUS)
    assert (running.returncode, err) == (0, ""), (out, err)
    assert " 0 failures" in out
    table = DeltaTable(str(shop / "storage" / "tables" / "slow")).to_pyarrow_table()
    assert sorted(table.column("offset").to_pylist()) == [0, 1, 2]
    if number is signal.SIGTERM:
        assert SECRET not in out
        written = [path for path in shop.rglob("*") if path.is_file() and path.name != "key.txt"]
        assert [p for p in written if SECRET.encode() in p.read_bytes()] == []
        _only_reading_writes_nothing(shop)


def _only_reading_writes_nothing(shop: Path) -> None:
    (shop / "orders" / "2.json").write_text('{"id": 2}\n')
    for arguments in (
        ("check",),
        ("status",),
        ("plan",),
        ("explain", "slow"),
        ("explain", "ticks"),
        ("history", "ticks"),
        ("query", "SELECT count(*) AS n FROM orders"),
    ):
        before = tree(shop)
        with started(shop, *arguments) as reading:
            out, err = reading.communicate(timeout=GENEROUS)
        assert reading.returncode == 0, (arguments, out, err)
        assert tree(shop) == before, arguments
        assert SECRET not in out + err
