"""Makes the random workflows of the planner's tests and the papers' set-ups importable."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "planner"), str(ROOT / "bench" / "papers")]
