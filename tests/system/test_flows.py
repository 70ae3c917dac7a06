"""A worker dies in the middle of its rows, a driver between two commits: every table once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from springhouse.lake.session import find_java
from springhouse.lake.storage import Storage
from springhouse.lake.tables import open_table

SCRIPT = Path(__file__).with_name("flow_life.py")
SOURCE = Path(__file__).parents[2] / "src"
PATIENCE_SECONDS = 300


def live(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    find_java()
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        check=False,
    )


def numbers(folder: Path, table: str) -> list[int] | None:
    opened = open_table(Storage(str(folder / table)))
    if opened is None or not opened.files:
        return None
    return sorted(opened.to_arrow().column(0).to_pylist())


def test_a_killed_worker_and_a_killed_driver_cost_nothing_but_time(tmp_path: Path) -> None:
    first = live(tmp_path, "high")
    assert first.returncode == -signal.SIGKILL, first.stderr[-2000:]
    assert (tmp_path / "a worker has died").exists()
    assert numbers(tmp_path, "low") == list(range(400)), "committed before the driver died"
    assert numbers(tmp_path, "high") is None, "written, and not committed"
    assert list((tmp_path / "high").glob("*.parquet"))

    second = live(tmp_path)
    assert second.returncode == 0, second.stderr[-2000:]
    assert second.stdout.strip() == "{'low': 0, 'high': 600, 'total': 1}"
    assert numbers(tmp_path, "low") == list(range(400))
    assert numbers(tmp_path, "high") == list(range(400, 1000))
    assert numbers(tmp_path, "total") == [600]
