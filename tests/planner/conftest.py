"""Makes the modules beside the tests importable: an oracle and random workflows."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
