"""The same projects on another server: Apache Spark over Spark Connect, and Sail.

The shop of `examples/` must hold every row that was sent. Every view must equal its query, which
the server runs over plain tables. A second project has one table or view per feature, and shows
for each server which features work; `docs/spark-connect.md` says the same in words.

Each job runs in a process of its own, `remote.py`, because PySpark chooses one of its clients for a
whole process.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from patience import patience

SCRIPT = Path(__file__).with_name("remote.py")
SOURCE = Path(__file__).parents[2] / "src"
SHOP = Path(__file__).parents[2] / "examples" / "shop"
SECONDS = 240.0

# Features that Sail 0.7 does not have, and its error messages.
NOT_ON_SAIL = {"streamed": "Python UDF output type"}


@pytest.fixture(scope="module")
def sail_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Sail server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("sail-server")
    command = [sys.executable, "-m", "pysail", "spark", "server"]
    with (folder / "log.txt").open("w") as log:
        server = subprocess.Popen(
            [*command, "--ip", "127.0.0.1", "--port", str(port)],
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
        )
    try:
        await_port(port, server)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(timeout=patience(20))


def await_port(port: int, server: "subprocess.Popen[bytes]", seconds: float = 60.0) -> None:
    deadline = time.monotonic() + patience(seconds)
    while True:
        assert server.poll() is None, "the server ended"
        assert time.monotonic() < deadline, "the server does not answer"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=patience(1.0)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


@pytest.fixture
def done_with(tmp_path: Path) -> Callable[[str, str, str], dict[str, Any]]:
    """Runs a job of `remote.py` with the server at an address, and returns its findings."""

    def do(job: str, address: str, setting: str = "springhouse.spark.remote") -> dict[str, Any]:
        folder = tmp_path / address.rpartition(":")[2]
        with (tmp_path / f"{folder.name}.txt").open("w+") as told:
            process = subprocess.Popen(
                [sys.executable, str(SCRIPT), job, str(folder), f"{setting}={address}"],
                stdout=told,
                stderr=subprocess.STDOUT,
                cwd=tmp_path,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(SHOP)])},
            )
            try:
                process.wait(timeout=patience(SECONDS))
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait(timeout=patience(20))
            told.seek(0)
            said = told.read()
        assert process.returncode == 0, said[-6000:]
        answer: dict[str, Any] = json.loads(said.splitlines()[-1])
        return answer

    return do


def test_the_shop_on_spark_connect(
    spark_server: str, done_with: Callable[..., dict[str, Any]]
) -> None:
    # Spark itself calls this setting `spark.remote`.
    prove_right(done_with("shop", spark_server, "spark.remote"))


def test_the_shop_on_sail(sail_server: str, done_with: Callable[..., dict[str, Any]]) -> None:
    prove_right(done_with("shop", sail_server))


@pytest.mark.parametrize("kind", ["spark", "sail"])
def test_a_session_of_the_user_s_is_neither_changed_nor_stopped(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    address = request.getfixturevalue(f"{kind}_server")
    script = Path(__file__).with_name("lent_session.py")
    done = subprocess.run(
        [sys.executable, str(script), address, str(tmp_path / "lent")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stdout.splitlines()[-1] == "undisturbed"


def prove_right(told: dict[str, Any]) -> None:
    assert told["failures"] == {}
    assert told["wrong"] == []
    # Eight tables and eleven views: none is left out, and some rows are bad.
    assert (told["tables"], told["views"]) == (8, 11)
    assert told["quarantined"] > 0
    # Both halves of the diamond reflect one moment.
    assert told["billed"] == told["in_ledger"] > 1000


def test_every_feature_on_spark_connect_and_what_there_is_of_it_on_sail(
    spark_server: str, sail_server: str, done_with: Callable[..., dict[str, Any]]
) -> None:
    spark = done_with("features", spark_server)
    assert spark["failures"] == {}
    assert spark["wrong"] == []
    sail = done_with("features", sail_server)
    assert sail["wrong"] == []
    # A feature that does not work raises an error every time, and leaves no rows in any table.
    assert sail["failures"].keys() == NOT_ON_SAIL.keys()
    for table, words in NOT_ON_SAIL.items():
        assert words in sail["failures"][table]
        assert table not in sail["rows"]
    assert spark["rows"].keys() - sail["rows"].keys() == NOT_ON_SAIL.keys()
    for table in sail["rows"]:
        assert bag(sail["rows"][table]) == bag(spark["rows"][table]), table


@pytest.mark.parametrize("server", ["spark_server", "sail_server"])
def test_files_that_are_not_there_and_a_reader_that_is_far_behind(
    server: str, request: pytest.FixtureRequest, done_with: Callable[..., dict[str, Any]]
) -> None:
    told = done_with("lost", request.getfixturevalue(server))
    assert told["failures"] == {}
    assert told["rates"] == [[1, 99], [2, 1]]
    ids = {"Oslo": [0, *range(3, 301, 3)], "Moss": [i for i in range(1, 301) if i % 3]}
    assert told["by_city"] == [[c, len(ids[c]), sum(ids[c])] for c in ("Moss", "Oslo")]
    assert told["followed"] == told["rated"] == [[301, sum(range(301))]]
    # One of 301 rows is lost, and no server may count 300.
    missing = f'the file "{told["gone"]}" of the table "orders" is missing'
    assert told["queried"] == missing
    assert told["then"].keys() == {"total"}
    assert missing in told["then"]["total"]


def bag(rows: list[list[str]]) -> Counter[tuple[str, ...]]:
    return Counter(map(tuple, rows))
