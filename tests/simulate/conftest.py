"""Makes importable: random workflows of the planner's tests, and set-ups of the papers."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "planner"), str(ROOT / "bench" / "papers")]
