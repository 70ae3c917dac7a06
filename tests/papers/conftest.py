"""The scripts of bench/papers are not a package; they find each other beside themselves."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "papers"))
