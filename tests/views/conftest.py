"""Tests are no package: Python has to be told where their neighbours are."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("scenario", "warehouse")
