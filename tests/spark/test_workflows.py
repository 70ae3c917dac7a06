"""The workflows of 004 in `examples`, live on Spark, under a clock thousands of times too fast.

The bounds are shorter than in the examples, so that a minute is enough to see refreshes.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import springhouse
from recomputed import differences
from springhouse.lake.delta.table_snapshots import Snapshot
from springhouse.warehouse import Warehouse

EXAMPLES = Path(__file__).parents[2] / "examples"
HOUR, DAY = 3_600.0, 86_400.0


@pytest.fixture
def workflows(spark: object, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    for name in ("workflows", "outcome"):
        sys.modules.pop(name, None)
    return __import__("workflows")


@dataclass(frozen=True)
class Ran:
    """A workflow after a run, and the contents of its logs."""

    warehouse: Warehouse
    told: Any
    snapshots: list[Snapshot]

    def apart(self, snapshot: Snapshot) -> float:
        left, right = snapshot.provenance.interval(
            self.warehouse.internals.watch.chooser.channels()
        )
        return left - right


@contextmanager
def ran(
    workflows: ModuleType,
    name: str,
    folder: Path,
    bounds: Mapping[str, str],
    *,
    days: float,
    speed: float,
) -> Iterator[Ran]:
    """A workflow that ran as declared, except for its bounds."""
    workflow = workflows.WORKFLOWS[name]
    workflows.copied(workflow, folder, "declared", bounds)
    clock = workflows.FastClock(speed)
    with springhouse.open(folder, clock=clock, configuration=workflows.QUICK) as warehouse:
        began = workflows.begun(warehouse, clock, DAY)
        warehouse.run(seconds=days * DAY)
        assert not warehouse.failures
        told = workflows.outcome_of(warehouse, workflow.output, workflow.critical, began, clock())
        snapshots = [
            s for s in warehouse.internals.lake.log(workflow.output).snapshots() if s.at > began
        ]
        yield Ran(warehouse, told, snapshots)


def prove_rows(warehouse: Warehouse) -> None:
    """Every view equals a recomputation from the versions that its log names, in plain Spark."""
    for view in warehouse.project.views:
        assert differences(warehouse, view) == [], view
    assert [p for each in warehouse.verify(recompute=True) for p in each.problems] == []


def test_search(workflows: ModuleType, tmp_path: Path) -> None:
    """Only new pages cause refreshes; digests are made for them; scores come in within a day."""
    bounds = {"'1 day'": "'6 hours'", "'1 week'": "'1 day'"}
    with ran(workflows, "search", tmp_path / "search", bounds, days=1.8, speed=3_000.0) as run:
        refreshes = run.told.refreshes
        assert refreshes["asynchronous"] >= 3, refreshes
        # Only the index needs digests, as a step of its plan.
        assert run.told.with_steps >= 3
        apart = [run.apart(each) for each in run.snapshots]
        assert max(apart) < DAY, "the bound was broken"
        assert max(apart) > 0, "it was never apart"
        # The bound forces new scores for all pages at least once in that time.
        assert refreshes.total() > refreshes["asynchronous"], refreshes
        scores = [len(s.provenance.reflected["clicks>click_score"]) for s in run.snapshots]
        assert max(scores) > 1, scores
        prove_rows(run.warehouse)


def test_feedback(workflows: ModuleType, tmp_path: Path) -> None:
    """News refresh on their own, and the other searches follow within half a day."""
    bounds = {"'1 day'": "'12 hours'"}
    with ran(workflows, "feedback", tmp_path / "feedback", bounds, days=0.9, speed=2_000.0) as run:
        refreshes = run.told.refreshes
        assert refreshes["asynchronous"] >= 3, refreshes
        assert run.told.with_steps >= 3
        apart = [run.apart(each) for each in run.snapshots]
        assert max(apart) < DAY / 2, "the bound was broken"
        assert max(apart) > 0, "it was never apart"
        # Neither side waits for the other, so each snapshot reflects one version at a time.
        for snapshot in run.snapshots:
            assert {len(each) for each in snapshot.provenance.reflected.values()} == {1}
        others = {s.provenance.newest("searches>other") for s in run.snapshots}
        assert len(others) > 1, "the other searches never came in"
        # So no view was recomputed.
        assert refreshes["full"] == 0, refreshes
        prove_rows(run.warehouse)


def test_crawl(workflows: ModuleType, tmp_path: Path) -> None:
    """Each selection runs for its own pathway, and links are counted when all pathways are due."""
    bounds = {"'1 day'": "'8 hours'", "'1 week'": "'16 hours'"}
    with ran(workflows, "crawl", tmp_path / "crawl", bounds, days=1.0, speed=1_500.0) as run:
        refreshes = run.told.refreshes
        assert refreshes["asynchronous"] >= 3, refreshes
        assert run.told.with_steps >= 3
        apart = [run.apart(each) for each in run.snapshots]
        assert max(apart) < 16 * HOUR, "the bound was broken"
        assert max(apart) > 0, "it was never apart"
        done = {view: refreshed(run.warehouse, view) for view in run.warehouse.project.views}
        assert done["top_unfetched"] > done["periodic_recrawl"], done
        # Only the last bound, on inconsistency, makes the links refresh.
        assert done["links"] < done["top_unfetched"], done
        assert done["indegree"] >= 2, done
        prove_rows(run.warehouse)


def refreshed(warehouse: Warehouse, view: str) -> int:
    """The number of refreshes of a view."""
    return sum(
        c.note is not None and bool(c.note.read)
        for c in warehouse.internals.lake.log(view).commits()
    )
