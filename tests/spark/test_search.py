"""The search engine of `examples/search` for twelve days, under a clock 10,000 times too fast."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

SEARCH = Path(__file__).parents[2] / "examples" / "search"
DAYS, SPEED = 12.0, 10_000.0


@pytest.fixture
def search(spark: object, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SEARCH))
    sys.modules.pop("run", None)
    return __import__("run")


def test_most_refreshes_are_one_sided_and_the_bound_is_never_broken(
    search: ModuleType, tmp_path: Path
) -> None:
    told = search.run(tmp_path / "search", "declared", DAYS, SPEED)
    counted = told.counted
    assert counted["asynchronous"] >= 10, counted
    assert counted["asynchronous"] >= 0.8 * sum(counted.values()), counted
    # A full join came back, in time: twelve days are longer than the bound.
    assert counted["full"] + counted["incremental"] >= 1, counted
    assert max(told.apart) < search.WEEK
    assert max(told.apart) > search.DAY, "it was never allowed to be apart"
