"""Two processes claim the same tables: each row is committed once, and both processes go on.

First both run side by side, as fast as they can. Then they run in the worst order: one process
stops just before it writes, the other does all the work, and the first goes on with old knowledge.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SQL = """
CREATE STREAMING TABLE orders (
  CONSTRAINT paid EXPECT (amount > 0) ON VIOLATION QUARANTINE
) AS SELECT * FROM STREAM read_files('data/orders', format => 'json',
  schema => 'id BIGINT, amount BIGINT');

CREATE STREAMING TABLE large_orders AS SELECT * FROM STREAM(orders) WHERE amount > 2;

CREATE STREAMING TABLE latest;
CREATE FLOW latest_in AS AUTO CDC INTO latest FROM STREAM(orders)
  KEYS (amount) SEQUENCE BY id STORED AS SCD TYPE 1;

CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS orders, sum(amount) AS amount FROM orders;
CREATE MATERIALIZED VIEW both AS SELECT t.orders, l.id, l.amount FROM totals t CROSS JOIN latest l;
"""

ROUNDS = 8


class Shop:
    """A project with two workers, the files that arrived, and the tables that must result."""

    def __init__(
        self,
        folder: Path,
        drop: Callable[[Path, str, str], None],
        rows_of: Callable[..., list[dict[str, Any]]],
    ) -> None:
        self.folder = folder
        self._drop = drop
        self._rows_of = rows_of
        self.files = 0

    def arrive(self) -> None:
        """Write one more file: four good orders, and one without a payment."""
        orders = [(10 * self.files + i, i) for i in range(5)]
        lines = [json.dumps({"id": id, "amount": amount}) for id, amount in orders]
        self._drop(self.folder / "data" / "orders", f"{self.files:04}.json", "\n".join(lines))
        self.files += 1

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in self._rows_of(self.folder, table))

    def prove(self) -> None:
        """Every record that arrived is in every table and view once."""
        ids = [10 * n + i for n in range(self.files) for i in range(5)]
        good = [(id, id % 10) for id in ids if id % 10]
        aside = Counter(json.loads(r["record"])["id"] for r in self._quarantine())
        assert Counter(self.rows("orders")) == Counter(good)
        assert aside == Counter(id for id in ids if not id % 10)
        assert Counter(self.rows("large_orders")) == Counter(g for g in good if g[1] > 2)
        latest = [(10 * (self.files - 1) + i, i) for i in range(1, 5)]
        assert self.rows("latest") == latest
        assert self.rows("totals") == [(len(good), sum(amount for _, amount in good))]
        assert self.rows("both") == [(len(good), *row) for row in latest]

    def _quarantine(self) -> list[dict[str, Any]]:
        return self._rows_of(self.folder, "orders_quarantine")


@pytest.fixture
def shop(
    write_project: Callable[..., Path],
    drop: Callable[[Path, str, str], None],
    rows_of: Callable[..., list[dict[str, Any]]],
    spark_server: str,
) -> Shop:
    return Shop(write_project(SQL, **{"springhouse.spark.remote": spark_server}), drop, rows_of)


def test_side_by_side(shop: Shop, workers: list[Any]) -> None:
    pair = workers[:2]
    for worker in pair:
        worker.ask(f"open {shop.folder}", "opened")
    for _ in range(ROUNDS):
        shop.arrive()
        for worker in pair:
            worker.say("refresh")
        for worker in pair:
            assert worker.hear("refreshed")["failures"] == {}
        shop.prove()
    assert [event for worker in pair for event in worker.heard("failed")] == []
    assert any(worker.heard("conflict") for worker in pair), "they never met"


@pytest.mark.parametrize(
    "point",
    [
        "ensure:before:orders",
        "commit:before:orders",
        "ensure:before:orders_quarantine",
        "commit:before:orders_quarantine",
        "ensure:before:large_orders",
        "commit:before:large_orders",
        "ensure:before:latest",
        "commit:before:latest",
        "create:before:totals",
        "create:before:both",
    ],
)
def test_who_comes_late_writes_nothing(shop: Shop, workers: list[Any], point: str) -> None:
    late, other, _ = workers
    late.ask(f"arm {point}:hold", "armed")
    for worker in (late, other):
        worker.ask(f"open {shop.folder}", "opened")
    shop.arrive()
    late.ask("refresh", "holding")
    shop.arrive()
    assert other.ask("refresh", "refreshed")["failures"] == {}
    assert late.ask("go on", "refreshed")["failures"] == {}
    shop.prove()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # The second process read two files where the first read one, and has set no row aside yet.
        ("commit:before:orders_quarantine", "ensure:before:orders_quarantine"),
        ("commit:before:orders", "commit:before:orders"),
        # The second process holds newer rows than the commit that beats it, so it must try again.
        ("commit:before:totals", "commit:before:totals"),
        ("commit:before:both", "commit:before:both"),
    ],
)
def test_who_knows_more_and_loses_tries_again(
    shop: Shop, workers: list[Any], first: str, second: str
) -> None:
    starter, less, more = workers
    less.ask(f"arm {first}:hold", "armed")
    more.ask(f"arm {second}:hold", "armed")
    for worker in workers:
        worker.ask(f"open {shop.folder}", "opened")
    shop.arrive()
    assert starter.ask("refresh", "refreshed")["failures"] == {}
    shop.arrive()
    less.ask("refresh", "holding")
    shop.arrive()
    more.ask("refresh", "holding")
    assert less.ask("go on", "refreshed")["failures"] == {}
    assert more.ask("go on", "refreshed")["failures"] == {}
    shop.prove()
