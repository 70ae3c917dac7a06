"""The pages of docs/reference match the output of the generator."""

import subprocess
import sys
from pathlib import Path

from patience import patience

SCRIPT = Path(__file__).parents[2] / "scripts" / "reference.py"


def test_every_page_of_the_reference_is_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
