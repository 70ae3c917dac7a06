"""Does `springhouse simulate` predict the behaviour of a warehouse? The shop, live and simulated.

Other work on the machine slows down only the real warehouse. So the bounds grow with the time that
this process has to wait for the processor. `bench/simulated.py` measures the real difference
between the two worlds.
"""

import importlib.util
import statistics
import sys
from pathlib import Path
from types import ModuleType

import pytest

from patience import contention, watched

BENCH = Path(__file__).parents[2] / "bench" / "simulated.py"
SECONDS = 40.0


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("simulated", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "simulated", module)
    spec.loader.exec_module(module)
    return module


def test_the_shop_fares_as_simulated(bench: ModuleType, tmp_path: Path) -> None:
    """Compare the promises that come due more than once in this time."""
    with watched() as waits:
        pairs = bench.live_and_simulated(bench.shop(tmp_path / "shop", 7), SECONDS)
    busy = contention(waits)
    often = [pair for pair in pairs if pair.promise is not None and pair.promise <= SECONDS / 2]
    assert len(often) >= 5
    live, pretend = (statistics.fmean(pair.kept[n] for pair in often) for n in (0, 1))
    assert abs(live - pretend) <= 0.3 * busy
    lags = statistics.median(pair.lag[1] / pair.lag[0] for pair in often)
    assert 0.4 / busy <= lags <= 2.5 * busy
