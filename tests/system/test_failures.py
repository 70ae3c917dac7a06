"""The experiment of paper 003 (section 5, Table 1), with all times divided by five.

The test runs `bench/papers/failures.py`: the program kills and restores five processes, and checks
every offset of every partition itself.
"""

import json
import subprocess
import sys
from pathlib import Path

from patience import patience

ROOT = Path(__file__).parents[2]
PACE = 5


def test_table_1(tmp_path: Path) -> None:
    experiment = subprocess.run(
        [
            sys.executable,
            str(ROOT / "bench" / "papers" / "failures.py"),
            *("--pace", str(PACE), "--out", str(tmp_path)),
        ],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=patience(300),
        check=False,
    )
    assert experiment.returncode == 0, experiment.stdout + experiment.stderr
    found = json.loads((tmp_path / "failures.json").read_text())
    assert found["wrong"] == []
    killed = [what for _, what in found["actions"] if "killed" in what]
    assert len(killed) == 4
    # Ten events a second in every partition: all events from before the quorum was back.
    assert min(found["events"].values()) >= 10 * found["moments"]["quorum back"]
    for number in (1, 2):
        assert (tmp_path / f"figure{number}.svg").read_text().startswith("<svg")
