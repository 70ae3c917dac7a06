"""The scheduler's view of a warehouse, from Delta logs alone: no test here starts Spark."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.lake.delta.commits import Change, commit, create
from springhouse.lake.delta.note import Note
from springhouse.loop.schedule import Schedule
from springhouse.planner.provenance import Provenance
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.refresh.policy import Policy
from springhouse.units import Instant
from springhouse.warehouse import Warehouse

SQL = """
CREATE STREAMING TABLE orders AS SELECT * FROM STREAM sample(limit => '0');
CREATE STREAMING TABLE changes AS SELECT * FROM STREAM sample(limit => '0');
CREATE MATERIALIZED VIEW totals AS SELECT count(id) AS id FROM orders;
CREATE MATERIALIZED VIEW customers TBLPROPERTIES ('springhouse.staleness' = '10 minutes')
  AS SELECT count(id) AS id FROM changes;
CREATE MATERIALIZED VIEW segments TBLPROPERTIES ('springhouse.staleness' = '1 minute')
  AS SELECT t.id FROM totals t JOIN customers c ON c.id = t.id;
CREATE MATERIALIZED VIEW chart
  TBLPROPERTIES ('springhouse.staleness' = '2 minutes',
                 'springhouse.staleness.totals' = '20 seconds')
  AS SELECT t.id FROM totals t JOIN customers c ON c.id = t.id;
"""
LAST = 4
COLUMNS = StructType([StructField("id", LongType())])


class Shop:
    """A warehouse with tables made by hand: commits without rows that name what they reflect."""

    def __init__(self, folder: Path) -> None:
        (folder / "transformations").mkdir()
        (folder / "transformations" / "all.sql").write_text(SQL)
        (folder / "spark-pipeline.yml").write_text(
            "name: shop\nstorage: storage\n"
            "libraries:\n  - glob:\n      include: transformations/**\n"
        )
        self.warehouse = Warehouse(folder, clock=lambda: Instant(1e6))
        self.watch = self.warehouse.internals.watch
        for number in range(LAST + 1):
            self._all_refreshed(number, 100.0 * number)

    def _all_refreshed(self, number: int, at: float) -> None:
        """New data is in all views a few seconds later, so the costs are known."""
        self.arrive("orders", at)
        self.arrive("changes", at)
        self.refreshed("totals", at + 1.0, {"orders": number}, {"orders": number})
        self.refreshed("customers", at + 2.0, {"changes": number}, {"changes": number})
        read = {"totals": number, "customers": number}
        self.refreshed("segments", at + 3.0, read, {"orders": number, "changes": number})
        through = {"orders>totals": number, "changes>customers": number}
        self.refreshed("chart", at + 4.0, read, through)

    def arrive(self, table: str, at: float) -> None:
        self._commit(table, Note("append", Instant(at), channel=True, rows=10, rows_added=10))

    def refreshed(
        self, view: str, at: float, read: Mapping[str, int], reflects: Mapping[str, int]
    ) -> None:
        after = Provenance({key: frozenset({each}) for key, each in reflects.items()})
        definition = fingerprint(self.warehouse.project, self.warehouse.project.views[view])
        note = Note(
            "merge", Instant(at), after=after, seconds=1.0, read=read, definition=definition
        )
        self._commit(view, note)

    def _commit(self, table: str, note: Note) -> None:
        place, found = (
            self.warehouse.internals.lake.place(table),
            self.warehouse.internals.lake.find(table),
        )
        if found is None:
            create(place, COLUMNS, Change(note))
        else:
            commit(found, Change(note))

    def order(self, now: float, *, observing: bool) -> dict[str, str]:
        """The waiting tables, best first, and the value that decides their order."""
        at = Instant(now)
        schedule = Schedule(self.watch.facts, Policy(), 2, at)
        schedule.hear(self.watch.plans(at), at)
        if observing:
            for name in self.watch.graph.order:
                schedule.observe(name, self.watch.planning.waits.waiting_since(name, at), at)
        return {plan.table: waiting.why for plan, waiting in schedule.order(at)}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_view_that_needs_a_common_moment_hurries_the_one_that_is_behind(shop: Shop) -> None:
    # Both base tables changed. totals is fresh; segments can't advance beyond customers.
    shop.arrive("orders", 1000.0)
    shop.arrive("changes", 1030.0)
    shop.arrive("orders", 1031.0)
    shop.refreshed("totals", 1032.0, {"orders": LAST + 2}, {"orders": LAST + 2})
    assert "segments" not in shop.order(1033.0, observing=False)
    # segments must show the customers of 1030 at 1090, but they hold up the orders of 1000.
    urgent = "seconds until its promise breaks"
    assert shop.order(1058.5, observing=False)["customers"] != urgent
    assert shop.order(1058.5, observing=True)["customers"] == urgent


def test_what_the_promise_of_another_needs_hurries_also_if_it_waited_before(shop: Shop) -> None:
    shop.arrive("changes", 1000.0)
    schedule = Schedule(shop.watch.facts, Policy(), 2, Instant(1001.0))

    def why(now: float, *, urgent: bool) -> str:
        plans = [replace(each, urgent=urgent) for each in shop.watch.plans(Instant(now))]
        schedule.hear([each for each in plans if each.table == "customers"], Instant(now))
        (found,) = schedule.order(Instant(now))
        return found[1].why

    assert why(1001.0, urgent=False) != "seconds until its promise breaks"
    assert why(1002.0, urgent=True) == "promise broken, benefit over time"


def test_a_promise_through_one_input_is_the_strictest_that_counts(shop: Shop) -> None:
    statuses = {each.name: each.promise_seconds for each in shop.warehouse.status()}
    assert (statuses["chart"], statuses["segments"]) == (20.0, 60.0)


def test_data_through_an_input_that_may_wait_longer_counts_from_later_on(shop: Shop) -> None:
    shop.arrive("changes", 1000.0)
    shop.refreshed("customers", 1001.0, {"changes": LAST + 1}, {"changes": LAST + 1})
    # The table may wait for two minutes, 100 seconds more than data that comes through totals.
    assert shop.watch.planning.waits.waiting_since("chart", Instant(1099.0)) == []
    assert shop.watch.planning.waits.waiting_since("chart", Instant(1110.0)) == [1100.0]


class Clicks:
    """A table over files, with one reader that has a promise; each schedule is a new owner's."""

    def __init__(self, folder: Path) -> None:
        (folder / "transformations").mkdir()
        (folder / "transformations" / "all.sql").write_text("""
            CREATE STREAMING TABLE clicks AS SELECT * FROM STREAM read_files('data',
              format => 'json', schema => 'id BIGINT');
            CREATE MATERIALIZED VIEW visits TBLPROPERTIES ('springhouse.staleness' = '30 seconds')
              AS SELECT count(id) AS id FROM clicks;
        """)
        (folder / "spark-pipeline.yml").write_text(
            "name: shop\nstorage: storage\n"
            "libraries:\n  - glob:\n      include: transformations/**\n"
        )
        self._data = folder / "data"
        self._data.mkdir()
        self.warehouse = Warehouse(folder, clock=lambda: Instant(1e6))
        self.watch = self.warehouse.internals.watch

    def committed(self, at: float) -> None:
        note = Note("append", Instant(at), channel=True, rows=1, rows_added=1)
        create(self.warehouse.internals.lake.place("clicks"), COLUMNS, Change(note))

    def arrive(self) -> None:
        (self._data / "1.json").write_text('{"id": 1}\n')

    def owner(self, now: float) -> Schedule:
        self.watch.take_over("clicks")
        return Schedule(self.watch.facts, Policy(), 1, Instant(now))

    def looked(self, owner: Schedule, now: float) -> tuple[float, str] | None:
        """After this owner looks: since when data waits by its count, and the deciding value."""
        at = Instant(now)
        self.watch.observing.poll(at, all_of_them=True)
        owner.hear(self.watch.plans(at), at)
        found = {plan.table: (waiting.since, waiting.why) for plan, waiting in owner.order(at)}
        return found.get("clicks")


@pytest.fixture
def clicks(tmp_path: Path) -> Clicks:
    return Clicks(tmp_path)


def test_a_table_whose_owners_die_one_after_the_other_is_late_for_each_of_them(
    clicks: Clicks,
) -> None:
    clicks.committed(at=1000.0)
    clicks.arrive()
    for now, why in (
        (1028.5, "seconds until its promise breaks"),
        (1200.0, "promise broken, benefit over time"),
    ):
        assert clicks.looked(clicks.owner(now), now) == (1000.0, why)
    # The displayed lag is measured, not estimated.
    assert clicks.watch.planning.waits.waiting_since("clicks", Instant(1200.0)) == [1200.0]


def test_what_comes_after_an_owner_has_looked_counts_from_when_it_comes(clicks: Clicks) -> None:
    clicks.committed(at=1000.0)
    owner = clicks.owner(1010.0)
    assert clicks.looked(owner, 1010.0) is None
    clicks.arrive()
    since, _ = clicks.looked(owner, 1200.0) or (None, None)
    assert since == 1200.0
