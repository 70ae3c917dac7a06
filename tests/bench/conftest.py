"""The scripts of bench are not a package; they find each other beside themselves."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "papers")]
