"""One estimate of the cost of a refresh, from Delta logs alone: no test here starts Spark."""

from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from springhouse.lake.delta.commits import Change, commit, create
from springhouse.lake.delta.note import Note
from springhouse.loop.schedule import Schedule
from springhouse.planner.provenance import Provenance
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.refresh.policy import Policy
from springhouse.units import Instant
from springhouse.warehouse import Warehouse

SQL = """
CREATE STREAMING TABLE clicks AS SELECT *, '' AS site, '' AS url FROM STREAM sample();
CREATE MATERIALIZED VIEW score {properties}
  AS SELECT site, user AS score FROM clicks WHERE user > 10;
"""
COLUMNS = {
    "clicks": StructType([StructField("user", LongType()), StructField("site", StringType())]),
    "score": StructType([StructField("site", StringType()), StructField("score", LongType())]),
}
ROWS = 10_000_000


class MadeWarehouse:
    """A large base table and a view of it, made by hand; their commits hold refresh costs."""

    def __init__(self, folder: Path, properties: str = "") -> None:
        (folder / "transformations").mkdir()
        (folder / "transformations" / "all.sql").write_text(SQL.format(properties=properties))
        (folder / "spark-pipeline.yml").write_text(
            "name: offers\nstorage: storage\n"
            "libraries:\n  - glob:\n      include: transformations/**\n"
        )
        self.now = Instant(0.0)
        self.warehouse = Warehouse(folder, clock=lambda: self.now)
        self._clicks = -1

    def arrive(self, rows: int) -> int:
        self._clicks += 1
        at = Instant(10.0 * self._clicks)
        self._commit("clicks", Note("append", at, channel=True, rows=ROWS, rows_added=rows))
        return self._clicks

    def refreshed(
        self, variant: str, expected: float, seconds: float, stateful: bool = True
    ) -> None:
        self._commit(
            "score",
            Note(
                "merge",
                Instant(10.0 * self._clicks + 1.0),
                after=Provenance({"clicks": frozenset({self._clicks})}),
                variant=variant,
                rows=1000,
                rows_added=10,
                changes=("_changes/x.parquet",),
                read={"clicks": self._clicks},
                stateful=stateful,
                expected=expected,
                foreseen=expected,
                seconds=seconds,
                definition=fingerprint(
                    self.warehouse.project, self.warehouse.project.views["score"]
                ),
            ),
        )

    def _commit(self, table: str, note: Note) -> None:
        place, found = (
            self.warehouse.internals.lake.place(table),
            self.warehouse.internals.lake.find(table),
        )
        for path in note.changes or ():
            # No test reads this file, but a commit checks that all files it names exist.
            file = Path(place.root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        if found is None:
            create(place, COLUMNS[table], Change(note))
        else:
            commit(found, Change(note))


@pytest.fixture
def warehouse(tmp_path: Path) -> MadeWarehouse:
    made = MadeWarehouse(tmp_path)
    for _ in range(3):
        made.arrive(100)
        made.refreshed("incremental", expected=0.25, seconds=0.5)
    return made


def test_a_small_change_is_surely_taken_in_by_increments(warehouse: MadeWarehouse) -> None:
    offer = warehouse.warehouse.internals.watch.offers.cheapest(
        "score", {"clicks": warehouse.arrive(100)}
    )
    assert offer is not None
    assert offer.decision is not None
    assert (offer.way, offer.decision.sure) == ("incremental", True)


def test_when_nearly_all_changed_it_is_computed_anew_and_looked_at_again(
    warehouse: MadeWarehouse,
) -> None:
    offer = warehouse.warehouse.internals.watch.offers.cheapest(
        "score", {"clicks": warehouse.arrive(ROWS)}
    )
    assert offer is not None
    # Without an earlier attempt, the lake decides.
    assert offer.decision is not None
    assert (offer.way, offer.decision.sure) == ("full", False)


def test_what_refreshes_took_corrects_the_number(warehouse: MadeWarehouse) -> None:
    offers = warehouse.warehouse.internals.watch.offers
    before = offers.cheapest("score", {"clicks": warehouse.arrive(100)})
    for _ in range(5):
        warehouse.refreshed("incremental", expected=0.25, seconds=1.0)
        version = warehouse.arrive(100)
    after = offers.cheapest("score", {"clicks": version})
    assert before is not None
    assert after is not None
    assert after.seconds == pytest.approx(2 * before.seconds)


def test_scheduler_and_planner_tell_the_same_number(warehouse: MadeWarehouse) -> None:
    version = warehouse.arrive(100)
    watch, now = warehouse.warehouse.internals.watch, Instant(40.0)
    warehouse.now = now
    schedule = Schedule(watch.facts, Policy(), 2, now)
    schedule.hear(watch.plans(now), now)
    waiting = {waiting.table: waiting for _, waiting in schedule.order(now)}
    offer = watch.offers.cheapest("score", {"clicks": version})
    plan = watch.plan("score", now)
    assert offer is not None
    assert plan is not None
    assert waiting["score"].expected_seconds == offer.seconds == plan.seconds
    (planned,) = [each for each in warehouse.warehouse.plan() if each.table == "score"]
    assert planned.expected_seconds == planned.planned_seconds == offer.seconds


def test_a_view_that_taught_nothing_leaves_the_number_to_the_scheduler(tmp_path: Path) -> None:
    made = MadeWarehouse(tmp_path, "TBLPROPERTIES ('springhouse.refresh' = 'full')")
    for _ in range(4):
        made.arrive(100)
        made.refreshed("full", expected=0.0, seconds=3.0, stateful=False)
    version = made.arrive(100)
    watch, now = made.warehouse.internals.watch, Instant(50.0)
    offer = watch.offers.cheapest("score", {"clicks": version})
    assert offer is not None
    assert (offer.way, offer.seconds) == ("full", None)
    schedule = Schedule(watch.facts, Policy(), 2, now)
    schedule.hear(watch.plans(now), now)
    waiting = {waiting.table: waiting for _, waiting in schedule.order(now)}
    assert waiting["score"].expected_seconds == pytest.approx(3.0)


def test_a_view_that_wants_full_refreshes_is_offered_nothing_else(tmp_path: Path) -> None:
    made = MadeWarehouse(tmp_path, "TBLPROPERTIES ('springhouse.refresh' = 'full')")
    made.arrive(100)
    made.refreshed("full", expected=6.0, seconds=3.0)
    offer = made.warehouse.internals.watch.offers.cheapest("score", {"clicks": made.arrive(100)})
    assert offer is not None
    assert offer.way == "full"
