"""Views that read one change in one scan get the rows that separate scans would give."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from springhouse.errors import NotOwned
from springhouse.lake.delta import changes
from springhouse.lake.delta.requirements import CommitPermit
from springhouse.planner import placement
from springhouse.planner.refresh_plan import OneScan, RefreshPlan
from springhouse.units import Dice, Seconds
from springhouse.warehouse import Warehouse
from springhouse.warehouse.running.execution import Permitted, perform, perform_together

TABLES = """
CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('data', format => 'json',
  schema => 'id BIGINT, customer INT, amount INT, kind STRING');
CREATE MATERIALIZED VIEW latest AS
  SELECT customer, kind, sum(amount) AS amount, max(id) AS id FROM orders GROUP BY customer, kind;
"""
VIEWS = {
    "by_kind": "SELECT kind, sum(amount) AS amount, count(*) AS n FROM latest GROUP BY kind",
    "extremes": "SELECT customer, min(amount) AS low, max(amount) AS high FROM latest GROUP BY 1",
    "kinds": "SELECT count(DISTINCT kind) AS n FROM latest WHERE amount > 20",
    "large": "SELECT customer, amount FROM latest WHERE amount > 30",
    "pairs": "SELECT a.customer, a.amount + b.amount AS both FROM latest AS a "
    "JOIN latest AS b ON a.customer = b.customer WHERE a.kind = 'a' AND b.kind = 'b'",
    "first": "SELECT customer, id FROM latest ORDER BY amount DESC, id LIMIT 3",
}
STATE = "TBLPROPERTIES ('springhouse.refresh' = 'incremental')"
SQL = TABLES + "".join(
    f"CREATE MATERIALIZED VIEW {name} {STATE} AS {query};\n" for name, query in VIEWS.items()
)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables whose changes Spark read, if every change is too large for this process."""
    found: list[str] = []
    read = changes.strong_delta

    def noted(spark: Any, log: Any, start: Any, end: Any, scans: Any = None) -> Any:
        found.append(f"{log.name} {start} {end}")
        return read(spark, log, start, end, scans)

    monkeypatch.setattr(placement, "CHANGE_ROWS", -1)
    monkeypatch.setattr(changes, "strong_delta", noted)
    return found


class Shop:
    """A warehouse whose `latest` has several commits that none of the views has seen."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.folder, self.dice, self.number = folder, Dice(seed), 0
        self.warehouse = Warehouse(folder)
        self.change()
        assert self.warehouse.refresh().ok

    def change(self, commits: int = 1) -> None:
        (self.folder / "data").mkdir(exist_ok=True)
        for _ in range(commits):
            orders = [
                {"id": 100 * self.number + i, "customer": self.dice.pick(range(5)),
                 "amount": self.dice.pick(range(-20, 20)), "kind": self.dice.pick("abc")}
                for i in range(6)
            ]  # fmt: skip
            text = "".join(json.dumps(each) + "\n" for each in orders)
            (self.folder / "data" / f"{self.number}.json").write_text(text)
            self.number += 1
            for name in ("orders", "latest"):
                perform(
                    self.warehouse.internals.watch,
                    self.warehouse.internals.watch.forced(name, "test"),
                )

    def plans(self, views: Sequence[str]) -> list[RefreshPlan]:
        """The plans for these views, when the planner chooses one scan for all of them."""
        plans = [self.warehouse.internals.watch.forced(name, "test") for name in views]
        note = self.warehouse.internals.lake.log(views[0]).newest()
        assert note is not None
        assert note.note is not None
        since, until = note.note.read["latest"], plans[0].versions["latest"]
        scan = OneScan("latest", since, until, tuple(views), Seconds(1.0))
        return [replace(plan, scan=scan) for plan in plans]

    def perform(self, plans: Sequence[RefreshPlan], **proves: Callable[[], None]) -> dict[str, Any]:
        """The result for each view. Spark must keep the change until the last view is done."""
        lead, *along = [Permitted(p, CommitPermit(proves.get(p.table))) for p in plans]
        outcomes = {}
        for name, outcome in perform_together(self.warehouse.internals.watch, lead, along):
            outcomes[name] = outcome
            (scan,) = self.warehouse.internals.lake.scans
            assert scan.rows is not None
            assert scan.rows.storageLevel.useMemory
        return outcomes

    def together(self, view: str) -> list[str]:
        return sorted(self.warehouse.history(view)[0].together_with)

    def prove_right(self, *views: str) -> None:
        for view in views or VIEWS:
            (found,) = self.warehouse.verify(view, recompute=True)
            assert (found.problems, found.untold) == ((), "")


def test_what_views_get_from_one_scan_is_what_their_queries_give(
    project: Callable[..., Path], reads: list[str]
) -> None:
    shop = Shop(project(SQL))
    for commits in (3, 1):
        shop.change(commits)
        reads.clear()
        outcomes = shop.perform(shop.plans(list(VIEWS)))
        assert list(outcomes) == list(VIEWS)
        assert all(not isinstance(each, Exception) for each in outcomes.values())
        assert len(reads) == 1
        for view in VIEWS:
            assert shop.together(view) == sorted({*VIEWS} - {view})
    shop.prove_right()
    newest = shop.warehouse.history("by_kind")[0]
    assert 'what changed in "latest" was read once, with extremes' in newest.way_reason
    explained = shop.warehouse.explain("by_kind").stored.last_refresh
    assert explained.together_with == newest.together_with
    assert shop.warehouse.internals.lake.scans == []


class Died(BaseException):
    """The process ends here."""


def test_a_view_that_fails_and_one_that_is_outdated_are_no_others_trouble(
    project: Callable[..., Path], reads: list[str]
) -> None:
    broken = """CREATE MATERIALIZED VIEW broken (CONSTRAINT few EXPECT (n < 7) ON VIOLATION
      FAIL UPDATE) AS SELECT count(*) AS n FROM latest;"""
    shop = Shop(project(SQL + broken))
    shop.change(8)
    plans = shop.plans(["large", "broken", "extremes", "kinds", "by_kind"])

    def lost() -> None:
        raise NotOwned("another node has it now")

    # Another process refreshes one of the views after the plan was made.
    perform(shop.warehouse.internals.watch, shop.warehouse.internals.watch.forced("kinds", "test"))
    reads.clear()
    outcomes = shop.perform(plans, extremes=lost)
    assert "few" in str(outcomes.pop("broken"))
    assert isinstance(outcomes.pop("extremes"), NotOwned)
    assert all(not isinstance(each, Exception) for each in outcomes.values())
    assert len(reads) == 1
    assert shop.together("large") == ["broken", "by_kind", "extremes"]
    assert shop.together("kinds") == []
    shop.prove_right("large", "kinds", "by_kind")


def test_a_process_that_dies_between_two_commits_leaves_each_view_as_it_was_or_refreshed(
    project: Callable[..., Path], reads: list[str]
) -> None:
    shop = Shop(project(SQL))
    shop.change(2)

    def dies() -> None:
        raise Died

    plans = shop.plans(["by_kind", "extremes", "large"])
    with pytest.raises(Died):
        shop.perform(plans, extremes=dies)
    assert shop.warehouse.internals.lake.scans == []
    assert [len(shop.warehouse.history(view)) for view in ("by_kind", "extremes", "large")] == [
        2,
        1,
        1,
    ]
    shop.warehouse = Warehouse(shop.folder)
    assert shop.warehouse.refresh().ok
    shop.prove_right()


def test_what_others_rewrote_is_compared_once(
    project: Callable[..., Path], reads: list[str], tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign"

    def written(*amounts: int) -> None:
        ids = pa.array(range(len(amounts)), pa.int64())
        write_deltalake(foreign, pa.table({"id": ids, "amount": amounts}), mode="overwrite")

    written(1, 2, 3, 4)
    queries = {"even": "amount % 2", "third": "amount % 3"}
    shop = Warehouse(
        project(
            "".join(
                f"CREATE MATERIALIZED VIEW {name} {STATE} AS SELECT {key} AS k, sum(amount) AS a "
                f"FROM delta.`{foreign}` GROUP BY 1;\n"
                for name, key in queries.items()
            )
        )
    )
    assert shop.refresh().ok
    written(1, 5, 3, 7, 9)
    plans = [shop.internals.watch.forced(name, "test") for name in queries]
    (key,) = plans[0].versions
    scan = OneScan(key, 0, 1, tuple(queries), Seconds(1.0))
    lead, *along = [Permitted(replace(plan, scan=scan)) for plan in plans]
    reads.clear()
    outcomes = dict(perform_together(shop.internals.watch, lead, along))
    assert all(not isinstance(each, Exception) for each in outcomes.values())
    assert len(reads) == 1
    for name in queries:
        assert list(shop.history(name)[0].together_with) == [
            each for each in queries if each != name
        ]
        (found,) = shop.verify(name, recompute=True)
        assert not found.problems


def test_a_warehouse_shares_the_scan_of_a_large_change(project: Callable[..., Path]) -> None:
    views = "".join(
        f"CREATE MATERIALIZED VIEW by_{divisor} {STATE} AS SELECT customer % {divisor} AS customer,"
        f" count(*) AS n, sum(amount) AS amount FROM latest GROUP BY 1;\n"
        for divisor in range(2, 6)
    )
    folder = project(
        "CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('data', "
        "format => 'parquet', schema => 'customer INT, amount INT');\n"
        "CREATE MATERIALIZED VIEW latest AS SELECT customer, sum(amount) AS amount "
        f"FROM orders GROUP BY customer;\n{views}"
    )
    (folder / "data").mkdir()
    warehouse = Warehouse(folder)
    for number in range(3):
        # One row per customer: all rows of `latest` change, twice since the views were built.
        customers = pa.array(range(60_000), pa.int32())
        amounts = pa.array([each * number for each in range(60_000)], pa.int32())
        orders = pa.table({"customer": customers, "amount": amounts})
        pq.write_table(orders, folder / "data" / f"{number}.parquet")
        for name in ("orders", "latest"):
            perform(warehouse.internals.watch, warehouse.internals.watch.forced(name, "test"))
        if number in (0, 2):
            assert warehouse.refresh().ok
    for divisor in range(2, 6):
        newest = warehouse.history(f"by_{divisor}")[0]
        others = [f"by_{other}" for other in range(2, 6) if other != divisor]
        assert (newest.way, sorted(newest.together_with)) == ("incremental", others)
        (found,) = warehouse.verify(f"by_{divisor}", recompute=True)
        assert not found.problems
