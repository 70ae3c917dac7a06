"""Every table is written once when workers die, tasks run twice, or a driver dies at a commit."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pyspark

from patience import patience
from springhouse.lake.delta.tables import open_table
from springhouse.lake.spark.java import find_java
from springhouse.lake.storage.storage import Storage

HERE = Path(__file__).parent
SOURCE = Path(__file__).parents[2] / "src"
PATIENCE_SECONDS = 300


def live(script: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    find_java()
    return subprocess.run(
        [sys.executable, str(HERE / script), str(folder), *words],
        capture_output=True,
        text=True,
        timeout=patience(PATIENCE_SECONDS),
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        check=False,
    )


def numbers(folder: Path, table: str) -> list[int] | None:
    opened = open_table(Storage(str(folder / table)))
    if opened is None or not opened.files:
        return None
    return sorted(opened.to_arrow().column(0).to_pylist())


def test_a_killed_worker_and_killed_drivers_cost_nothing_but_time(tmp_path: Path) -> None:
    first = live("flow_life.py", tmp_path, "low")
    assert first.returncode == -signal.SIGKILL, first.stderr[-2000:]
    assert (tmp_path / "a worker has died").exists()
    assert numbers(tmp_path, "low") is None, "written, and not committed"
    assert list((tmp_path / "low").glob("*.parquet"))

    second = live("flow_life.py", tmp_path, "high")
    assert second.returncode == -signal.SIGKILL, second.stderr[-2000:]
    assert numbers(tmp_path, "low") == list(range(400)), "committed before the driver died"
    assert numbers(tmp_path, "high") is None, "written, and not committed"
    assert list((tmp_path / "high").glob("*.parquet"))

    third = live("flow_life.py", tmp_path)
    assert third.returncode == 0, third.stderr[-2000:]
    assert third.stdout.strip() == "{'low': 0, 'high': 600, 'total': 1}"
    assert numbers(tmp_path, "low") == list(range(400))
    assert numbers(tmp_path, "high") == list(range(400, 1000))
    assert numbers(tmp_path, "total") == [600]


def test_a_speculative_duplicate_is_counted_once(tmp_path: Path) -> None:
    with two_hosts(tmp_path / "cluster") as master:
        ran = live("flow_twice.py", tmp_path, master)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert (tmp_path / "an attempt hangs").exists(), "there was no duplicate"
    assert ran.stdout.strip() == "{'low': 400, 'high': 600, 'total': 1}"
    assert numbers(tmp_path, "low") == list(range(400))
    assert numbers(tmp_path, "high") == list(range(400, 1000))
    assert numbers(tmp_path, "total") == [600]
    # The task that ran twice has the numbers from 500: both attempts left files, one left rows.
    committed = open_table(Storage(str(tmp_path / "high")))
    assert committed is not None
    assert len(committed.files) == 2
    assert len(list((tmp_path / "high").glob("*.parquet"))) == 3


@contextmanager
def two_hosts(folder: Path) -> Iterator[str]:
    """A Spark cluster with two hosts: Spark does not speculate on the host of the first attempt.

    Both hosts are this machine, under two of its many addresses.
    """
    find_java()
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    started = [
        [f"{deploy}.master.Master", "-h", "127.0.0.1", "-p", str(port), "--webui-port", "0"],
        *(
            [
                f"{deploy}.worker.Worker",
                *f"-h {host} -c 1 -m 800m --webui-port 0 -d".split(),
                str(folder / host),
                master,
            ]
            for host in ("127.0.0.1", "127.0.0.2")
        ),
    ]
    folder.mkdir()
    with ExitStack() as all_of_them:
        for number, words in enumerate(started):
            log = all_of_them.enter_context((folder / f"{number}.log").open("w"))
            daemon = subprocess.Popen(
                [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *words],
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "PYTHONPATH": str(SOURCE),
                    "SPARK_DAEMON_MEMORY": "200m",
                    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                },
            )
            all_of_them.callback(daemon.wait)
            all_of_them.callback(daemon.terminate)
            if number == 0:
                wait_for(port)
        yield master


def wait_for(port: int) -> None:
    deadline = time.monotonic() + patience(60)
    while time.monotonic() < deadline:
        with closing(socket.socket()) as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the cluster's master does not start")
