"""Makes importable: the oracle and the random workflows beside the tests, and linear costs."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "bench" / "papers")]
