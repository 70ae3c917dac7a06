"""Makes the modules beside the tests importable: the archetypes of 000."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
