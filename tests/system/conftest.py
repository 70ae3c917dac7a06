"""Workers: processes with a warehouse, to which a test sends commands and which it kills."""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyspark
import pytest

from patience import patience
from springhouse.lake.spark.java import find_java

# Tests start these programs as processes with imports of their own, so pytest skips them.
collect_ignore = ["flow_life.py", "flow_twice.py", "lent_session.py", "remote.py", "worker.py"]

SCRIPT = Path(__file__).with_name("worker.py")
SOURCE = Path(__file__).parents[2] / "src"
MARK = "SPRINGHOUSE_TEST_WORKER"

# A JVM lives for a short time, so it must start fast and stay small. C2 would not pay off.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
SETTINGS = {
    "springhouse.spark.master": "local[2]",
    "spark.driver.memory": "700m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
# A worker runs a query once or twice: neither generated code nor a second plan pays off.
SHORT = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

Event = dict[str, Any]


class Worker:
    """A process with a warehouse. Its own session lets a test kill it together with its JVM."""

    def __init__(self, folder: Path) -> None:
        self.mark = uuid.uuid4().hex
        self.events: list[Event] = []
        self._arrived: queue.Queue[Event | None] = queue.Queue()
        self._errors = folder / f"worker-{self.mark}.txt"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                env={
                    **os.environ,
                    "PYTHONPATH": str(SOURCE),
                    "JDK_JAVA_OPTIONS": JAVA_OPTIONS,
                    MARK: self.mark,
                },
            )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A kill may cut the last line short.
            if line.endswith("\n"):
                self._arrived.put(json.loads(line))
        self._arrived.put(None)

    def say(self, line: str) -> None:
        """Send the worker a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def hear(self, event: str, count: int = 1, seconds: float = 120.0) -> Event:
        """Wait for the `count`-th event of this kind from now on."""
        deadline = time.monotonic() + patience(seconds)
        while count:
            try:
                arrived = self._arrived.get(timeout=max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                pytest.fail(f"no {event!r} within {seconds} s; {self._story()}")
            if arrived is None:
                pytest.fail(f"the worker ended before {event!r}; {self._story()}")
            self.events.append(arrived)
            count -= arrived["event"] == event
        return self.events[-1]

    def ask(self, command: str, answer: str, seconds: float = 120.0) -> Event:
        """Send the worker a command and wait for the answer."""
        self.say(command)
        return self.hear(answer, seconds=seconds)

    def heard(self, event: str) -> list[Event]:
        """All events of this kind so far."""
        while not self._arrived.empty():
            if (arrived := self._arrived.get()) is not None:
                self.events.append(arrived)
        return [each for each in self.events if each["event"] == event]

    @property
    def running(self) -> set[str]:
        """The tables that the worker is refreshing, according to its events."""
        self.heard("")
        running: set[str] = set()
        for each in self.events:
            if each["event"] == "started":
                running.add(each["table"])
            elif each["event"] in ("finished", "failed"):
                running.discard(each["table"])
        return running

    @property
    def idle(self) -> bool:
        """Whether the worker finished all commands and waits for more."""
        last = self.events[-1]["event"] if self.events else ""
        return self._process.poll() is None and last in ("ready", "opened", "armed", "refreshed")

    def kill(self) -> None:
        """Kill the worker and its JVM in the middle of their work, and check that both are gone."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        for left in _marked(self.mark):  # Its JVM is no member of its group.
            with suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        self.await_death()

    def hear_the_end(self, seconds: float = 120.0) -> int:
        """Wait until the worker dies during a command; return its exit code."""
        deadline = time.monotonic() + patience(seconds)
        while True:
            try:
                arrived = self._arrived.get(timeout=max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                pytest.fail(f"it did not die within {seconds} s; {self._story()}")
            if arrived is None:
                return self.await_death()
            self.events.append(arrived)
            if arrived["event"] == "refreshed":
                pytest.fail(f"it lived on; {self._story()}")

    def await_death(self) -> int:
        """Wait until the worker and all of its processes are gone; return its exit code."""
        code = self._process.wait(timeout=patience(20.0))
        deadline = time.monotonic() + patience(20.0)
        while left := _marked(self.mark):
            assert time.monotonic() < deadline, f"the processes {left} outlived their worker"
            time.sleep(0.02)
        return code

    def _story(self) -> str:
        last = "\n".join(map(str, self.events[-20:]))
        return f"it said:\n{last}\nand on stderr:\n{self._errors.read_text()[-4000:]}"


def _marked(mark: str) -> list[int]:
    """The processes that a worker started: their environment holds its mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:  # The process is gone, or belongs to another user.
            continue
    return found


@pytest.fixture(scope="session")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server: workers that share it start in two seconds."""
    find_java()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = SETTINGS | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    home = Path(pyspark.__file__).parent
    folder = tmp_path_factory.mktemp("spark-server")
    with (folder / "log.txt").open("w") as log:
        server = subprocess.Popen(
            [
                str(home / "bin" / "spark-submit"),
                *("--master", "local[2]"),
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                *(f"--conf={key}={value}" for key, value in settings.items()),
                "spark-internal",
            ],
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
            env={
                **os.environ,
                "SPARK_HOME": str(home),
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONPATH": str(SOURCE),
                "JDK_JAVA_OPTIONS": "-XX:+UseSerialGC",
            },
        )
    try:
        _await_port(port, server, seconds=120.0)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(timeout=patience(20))


def _await_port(port: int, server: "subprocess.Popen[bytes]", seconds: float) -> None:
    deadline = time.monotonic() + patience(seconds)
    while True:
        assert server.poll() is None, "the Spark Connect server ended"
        assert time.monotonic() < deadline, "the Spark Connect server does not answer"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=patience(1.0)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return


@pytest.fixture
def start_worker(tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Starts workers over a project, armed with points (see `worker.py`), and ends them."""
    workers: list[Worker] = []

    def start(project: Path, *points: str) -> Worker:
        workers.append(Worker(tmp_path))
        for point in points:
            workers[-1].ask(f"arm {point}", "armed")
        workers[-1].ask(f"open {project}", "opened")
        return workers[-1]

    yield start
    for worker in workers:
        worker.kill()


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Worker]]:
    """Three workers that the tests of a module share: they start once, and open many projects."""
    folder = tmp_path_factory.mktemp("crew")
    workers = [Worker(folder) for _ in range(3)]
    for worker in workers:
        worker.hear("ready")
    yield workers
    for worker in workers:
        worker.kill()


@pytest.fixture
def workers(crew: list[Worker], tmp_path_factory: pytest.TempPathFactory) -> list[Worker]:
    """The shared workers, idle again; a worker that is still busy is replaced."""
    for place, worker in enumerate(crew):
        if not worker.idle:
            worker.kill()
            crew[place] = Worker(tmp_path_factory.mktemp("crew"))
            crew[place].hear("ready")
        del crew[place].events[:-1]
    return crew


@pytest.fixture
def write_project(tmp_path: Path) -> Callable[..., Path]:
    """Writes a project of SQL (and Python) text, with Spark settings for short-lived workers."""

    def write(sql: str, python: str = "", name: str = "project", **settings: str) -> Path:
        folder = tmp_path / name
        (folder / "transformations").mkdir(parents=True)
        chosen = SETTINGS | SHORT | settings
        given = "".join(f'  {key}: "{value}"\n' for key, value in chosen.items())
        (folder / "spark-pipeline.yml").write_text(
            f"name: {name}\nstorage: storage\nconfiguration:\n{given}"
            "libraries:\n  - glob:\n      include: transformations/**\n"
        )
        (folder / "transformations" / "all.sql").write_text(sql)
        if python:
            (folder / "transformations" / "all.py").write_text(python)
        return folder

    return write


@pytest.fixture
def drop() -> Callable[[Path, str, str], None]:
    """Puts a file into a folder; the file is complete when it appears."""

    def put(folder: Path, name: str, text: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"_{name}").write_text(text)
        (folder / f"_{name}").rename(folder / name)

    return put


@pytest.fixture
def rows_of() -> Callable[..., list[dict[str, Any]]]:
    """The rows of a table of a project, read by delta-rs without any code of ours."""
    from deltalake import DeltaTable

    def rows(folder: Path, table: str, version: int | None = None) -> list[dict[str, Any]]:
        place = folder / "storage" / "tables" / table
        found: list[dict[str, Any]] = (
            DeltaTable(place, version=version).to_pyarrow_table().to_pylist()
        )
        return found

    return rows
