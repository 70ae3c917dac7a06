"""Parts of the tests run beside each other: each line names its part, and no failure is silent."""

import subprocess
import sys
from pathlib import Path

from patience import patience

SCRIPT = Path(__file__).parents[2] / "scripts" / "beside.py"

MAKEFILE = """
good:
	@echo one; echo two >&2
bad:
	@echo three; exit 3
slow:
	@while [ ! -e met ]; do sleep 0.02; done
quick:
	@touch met
"""


def beside(folder: Path, *parts: str) -> "subprocess.CompletedProcess[str]":
    (folder / "Makefile").write_text(MAKEFILE)
    return subprocess.run(
        [sys.executable, str(SCRIPT), *parts],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )


def test_every_line_has_the_name_of_its_part(tmp_path: Path) -> None:
    done = beside(tmp_path, "good", "quick")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "good  | one",
        "good  | two",
        "",
        "good  | passed after 0.0 minutes",
        "quick | passed after 0.0 minutes",
    ]


def test_one_that_fails_stops_no_other_and_is_shown_again(tmp_path: Path) -> None:
    done = beside(tmp_path, "bad", "good")
    assert done.returncode == 1
    _, again = done.stdout.split("\nbad failed, and said last:\n")
    assert again.startswith("three\n")
    assert again.endswith("\nbad  | FAILED after 0.0 minutes\ngood | passed after 0.0 minutes\n")
    assert "good | one\n" in done.stdout


def test_two_run_at_once(tmp_path: Path) -> None:
    """The first part waits for the second."""
    assert beside(tmp_path, "slow", "quick").returncode == 0
