"""Makes the oracle, the random workflows and the linear costs beside the tests importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "bench" / "papers")]
