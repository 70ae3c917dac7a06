"""How are views refreshed next? From Delta logs alone: no test here starts Spark."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from springhouse.lake.delta.commits import Change, commit, create
from springhouse.lake.delta.note import Note
from springhouse.planner.delta_logs import reflected_by
from springhouse.planner.provenance import Provenance
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.units import Instant
from springhouse.warehouse import Warehouse
from springhouse.warehouse.reports.planned_refresh import PathwayBound

HOUR, DAY = 3_600.0, 86_400.0
SQL = """
CREATE STREAMING TABLE pages AS SELECT *, '' AS site, '' AS url FROM STREAM sample();
CREATE STREAMING TABLE clicks AS SELECT *, '' AS site, '' AS url FROM STREAM sample();
CREATE MATERIALIZED VIEW click_score TBLPROPERTIES ('springhouse.staleness' = '1 day')
  AS SELECT site, count(user) AS score FROM clicks GROUP BY site;
CREATE MATERIALIZED VIEW output
  TBLPROPERTIES ({promises})
  AS SELECT url, score FROM pages JOIN click_score ON pages.site = click_score.site;
"""
RELAXED = "'springhouse.staleness.click_score' = '1 week', 'springhouse.inconsistency' = '1 week'"
COLUMNS = {
    "pages": StructType([StructField("url", StringType()), StructField("site", StringType())]),
    "clicks": StructType([StructField("user", LongType()), StructField("site", StringType())]),
    "click_score": StructType(
        [StructField("site", StringType()), StructField("score", LongType())]
    ),
    "sites": StructType([StructField("site", StringType())]),
    "counts": StructType([StructField("site", StringType()), StructField("score", LongType())]),
    "news": StructType([StructField("site", StringType())]),
    "top": StructType([StructField("site", StringType()), StructField("score", LongType())]),
    "queue": StructType([StructField("site", StringType()), StructField("score", LongType())]),
    "output": StructType([StructField("url", StringType()), StructField("score", LongType())]),
}


class MadeWarehouse:
    """A warehouse with tables made by hand: commits without rows that name what they reflect."""

    def __init__(self, folder: Path, sql: str) -> None:
        (folder / "transformations").mkdir()
        (folder / "transformations" / "all.sql").write_text(sql)
        (folder / "spark-pipeline.yml").write_text(
            "name: ways\nstorage: storage\n"
            "libraries:\n  - glob:\n      include: transformations/**\n"
        )
        self.now = Instant(1e6)
        self.warehouse = Warehouse(folder, clock=lambda: self.now)

    def arrive(self, table: str, at: float) -> None:
        """Commit new rows to a base table."""
        self._commit(table, Note("append", Instant(at), channel=True, rows=1000, rows_added=100))

    def refreshed(
        self, view: str, at: float, read: Mapping[str, int], reflects: Mapping[str, Collection[int]]
    ) -> None:
        declared = self.warehouse.project.views[view]
        mixed = tuple(key.rpartition(">")[2] for key, each in reflects.items() if len(each) > 1)
        self._commit(
            view,
            Note(
                "merge",
                Instant(at),
                after=Provenance({key: frozenset(each) for key, each in reflects.items()}),
                rows=1000,
                rows_added=100,
                changes=("_changes/x.parquet",),
                read=read,
                mixed=mixed,
                stateful=True,
                definition=fingerprint(self.warehouse.project, declared),
            ),
        )

    def _commit(self, table: str, note: Note) -> None:
        place = self.warehouse.internals.lake.place(table)
        found = self.warehouse.internals.lake.find(table)
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
def relaxed(tmp_path: Path) -> MadeWarehouse:
    made = MadeWarehouse(tmp_path, SQL.format(promises=RELAXED))
    made.arrive("pages", 100.0)
    made.arrive("clicks", 100.0)
    made.refreshed("click_score", 200.0, {"clicks": 0}, {"clicks": {0}})
    read = {"pages": 0, "click_score": 0}
    made.refreshed("output", 300.0, read, {"pages": {0}, "clicks>click_score": {0}})
    return made


def test_new_pages_drive_a_refresh_alone(relaxed: MadeWarehouse) -> None:
    relaxed.arrive("pages", 400.0)
    relaxed.arrive("clicks", 400.0)
    found = relaxed.warehouse.internals.watch.plan("output", Instant(500.0))
    assert found is not None
    assert (found.way, found.driver) == ("asynchronous", "pages")
    assert found.versions == {"pages": 1, "click_score": 0}
    assert found.asked == ("pages",)
    assert found.since == 400.0
    assert found.first == ()
    assert "full" in {each.way for each in found.others}


def test_new_clicks_alone_want_nothing_before_a_week_has_passed(relaxed: MadeWarehouse) -> None:
    relaxed.arrive("clicks", 400.0)
    watch = relaxed.warehouse.internals.watch
    assert watch.plan("output", Instant(500.0)) is None
    assert watch.plan("output", Instant(400.0 + 6 * DAY)) is None
    assert watch.plan("output", Instant(400.0 + 7 * DAY)) is not None


def test_the_newest_scores_are_taken(relaxed: MadeWarehouse) -> None:
    relaxed.arrive("clicks", 400.0)
    relaxed.refreshed("click_score", 450.0, {"clicks": 1}, {"clicks": {1}})
    relaxed.arrive("pages", 500.0)
    found = relaxed.warehouse.internals.watch.plan("output", Instant(600.0))
    assert found is not None
    assert found.versions["click_score"] == 1
    assert found.driver == "pages" or found.way == "incremental"


def test_all_pages_are_joined_anew_before_they_are_a_week_apart(relaxed: MadeWarehouse) -> None:
    relaxed.arrive("clicks", 400.0)
    relaxed.refreshed("click_score", 450.0, {"clicks": 1}, {"clicks": {1}})
    relaxed.arrive("pages", 500.0)
    read = {"pages": 1, "click_score": 1}
    relaxed.refreshed("output", 600.0, read, {"pages": {1}, "clicks>click_score": {0, 1}})
    relaxed.arrive("pages", 400.0 + 7 * DAY + 1.0)
    found = relaxed.warehouse.internals.watch.plan("output", Instant(400.0 + 7 * DAY + 2.0))
    assert found is not None
    assert found.way == "full"
    assert found.driver is None


def test_scores_that_are_too_old_to_be_read_are_refreshed_first(relaxed: MadeWarehouse) -> None:
    """`click_score` promises a day: an older one must not be joined with new pages."""
    relaxed.arrive("clicks", 400.0)
    late = 400.0 + 2 * DAY
    relaxed.arrive("pages", late)
    watch = relaxed.warehouse.internals.watch
    found = watch.plan("output", Instant(late + 1.0))
    assert found is not None
    assert found.needs == ("click_score",)
    plans = {plan.table: plan for plan in watch.plans(Instant(late + 1.0))}
    assert plans["click_score"].urgent
    assert plans["click_score"].reason == "output needs it"
    # Both tables are refreshed, as one unit.
    assert plans["output"].needs == ("click_score",)


def test_the_last_step_of_a_unit_does_not_wait_for_what_comes_meanwhile(
    relaxed: MadeWarehouse,
) -> None:
    """Otherwise, if data arrives faster than a unit finishes, its last step never runs."""
    relaxed.arrive("clicks", 400.0)
    late = 400.0 + 2 * DAY
    relaxed.arrive("pages", late)
    planning = relaxed.warehouse.internals.watch.planning
    unit = relaxed.warehouse.internals.watch.plan("output", Instant(late + 1.0))
    assert unit is not None
    assert unit.needs == ("click_score",)

    relaxed.refreshed("click_score", late + 2.0, {"clicks": 1}, {"clicks": {1}})
    relaxed.arrive("clicks", late + 3.0)
    later = Instant(late + 3.0 + 2 * DAY)
    again = relaxed.warehouse.internals.watch.plan("output", later)
    assert again is not None
    assert again.needs == ("click_score",), "by now the scores are too old once more"
    found = planning.step(unit, later)
    assert found is not None
    assert found.first == ()
    assert found.way == unit.way
    assert found.versions == {"pages": 1, "click_score": 1}
    assert found.reaches.newest("pages") == 1
    assert found.reaches.newest("clicks>click_score") == 1


def test_the_last_step_of_a_unit_is_left_out_if_it_would_break_the_bound(
    relaxed: MadeWarehouse,
) -> None:
    relaxed.arrive("clicks", 400.0)
    relaxed.arrive("pages", 401.0)
    # The scores of this unit were due for a refresh that never happened.
    late = Instant(500.0 + 8 * DAY)
    unit = relaxed.warehouse.internals.watch.plan("output", late)
    assert unit is not None
    assert unit.needs == ("click_score",)
    relaxed.arrive("pages", late)
    versions = {"pages": 2, "click_score": 0}
    assert (
        relaxed.warehouse.internals.watch.planning.step(replace(unit, versions=versions), late)
        is None
    )


def test_what_is_reflected_is_told_apart_along_the_tables_that_bounds_name(
    tmp_path: Path,
) -> None:
    """Each of two selections reads the same sites; only one of the pathways is bound to an hour."""
    made = MadeWarehouse(tmp_path, SELECTIONS)
    made.arrive("clicks", 100.0)
    made.refreshed("counts", 150.0, {"clicks": 0}, {"clicks": {0}})
    made.refreshed("sites", 150.0, {"clicks": 0}, {"clicks": {0}})
    old = {"counts": 0, "sites": 0}
    project, lake = made.warehouse.project, made.warehouse.internals.lake
    top = reflected_by(lake, project, project.views["top"], old)
    assert set(top.reflected) == {"clicks>counts", "clicks>sites"}
    made.refreshed("top", 200.0, old, top.reflected)
    before = reflected_by(lake, project, project.views["queue"], {"sites": 0, "top": 0})
    assert set(before.reflected) == {"clicks>sites", "clicks>counts>top", "clicks>sites>top"}
    made.refreshed("queue", 210.0, {"sites": 0, "top": 0}, before.reflected)

    # An hour later only the data along the sites has advanced; the counts may rest.
    made.arrive("clicks", 300.0)
    made.refreshed("sites", 310.0, {"clicks": 1}, {"clicks": {1}})
    new = {"counts": 0, "sites": 1}
    moved = reflected_by(lake, project, project.views["top"], new)
    made.refreshed("top", 320.0, new, moved.reflected)
    reads = {"sites": 1, "top": 1}
    after = reflected_by(lake, project, project.views["queue"], reads)
    made.refreshed("queue", 330.0, reads, after.reflected)
    assert after.newest("clicks>sites>top") == 1
    assert after.newest("clicks>counts>top") == 0
    watch = made.warehouse.internals.watch
    assert watch.plan("queue", Instant(300.0 + 2 * HOUR)) is None
    assert watch.plan("queue", Instant(300.0 + 7 * DAY)) is not None


def test_an_hour_along_one_pathway_hurries_nothing_on_the_others(tmp_path: Path) -> None:
    """`queue` bounds data along the sites to an hour, and data along the counts to a week."""
    made = MadeWarehouse(tmp_path, SELECTIONS)
    planning = made.warehouse.internals.watch.planning
    assert planning.waits.patience("top") == {"sites": 0, "counts": 7 * DAY - HOUR}
    assert planning.waits.patience("queue") == {"top": 0, "sites": 7 * DAY - HOUR}
    assert planning.waits.patience("counts") == {"clicks": 0}


def test_a_refresh_starts_early_enough_for_the_steps_that_it_begins_with(
    relaxed: MadeWarehouse,
) -> None:
    """After a plan with an extra step, the planner checks its bound earlier by that step's time."""
    relaxed.arrive("clicks", 400.0)
    watch = relaxed.warehouse.internals.watch
    week = Instant(400.0 + 7 * DAY)
    margin = 7 * DAY * 0.05
    assert watch.plan("output", Instant(week - margin - 600.0)) is None
    unit = watch.plan("output", week)
    assert unit is not None
    assert unit.needs == ("click_score",)
    expected = sum(each.seconds or 0.0 for each in (*unit.first, unit))
    assert expected > 0

    # Another week: new clicks arrive, and the total time of both tables is now known.
    relaxed.refreshed("click_score", week, {"clicks": 1}, {"clicks": {1}})
    read = {"pages": 0, "click_score": 1}
    relaxed.refreshed("output", week, read, {"pages": {0}, "clicks>click_score": {1}})
    relaxed.arrive("clicks", week + 100.0)
    later = week + 100.0 + 7 * DAY - margin
    assert watch.plan("output", Instant(later - 1.6 * expected)) is None
    assert watch.plan("output", Instant(later - 1.4 * expected)) is not None


FEEDBACK = """
CREATE STREAMING TABLE clicks AS SELECT *, '' AS site, '' AS url FROM STREAM sample();
CREATE MATERIALIZED VIEW news AS SELECT site FROM clicks WHERE site = 'news';
CREATE MATERIALIZED VIEW sites TBLPROPERTIES ('springhouse.staleness' = '1 day')
  AS SELECT site FROM clicks WHERE site <> 'news';
CREATE MATERIALIZED VIEW queue
  TBLPROPERTIES ('springhouse.staleness.news' = '0 seconds',
                 'springhouse.staleness.sites' = '1 day')
  AS SELECT site, 1 AS score FROM news UNION ALL SELECT site, 0 AS score FROM sites;
"""


def test_one_side_of_a_union_leaves_the_other_where_it_is(tmp_path: Path) -> None:
    """The provenance of the side that is not read stays the same (004, section 3.3)."""
    made = MadeWarehouse(tmp_path, FEEDBACK)
    made.arrive("clicks", 100.0)
    for each in ("news", "sites"):
        made.refreshed(each, 150.0, {"clicks": 0}, {"clicks": {0}})
    reflects = {"clicks>news": {0}, "clicks>sites": {0}}
    made.refreshed("queue", 200.0, {"news": 0, "sites": 0}, reflects)
    made.arrive("clicks", 300.0)
    made.refreshed("sites", 310.0, {"clicks": 1}, {"clicks": {1}})
    found = made.warehouse.internals.watch.plan("queue", Instant(400.0))
    assert found is not None
    assert found.needs == ("news",)
    assert (found.way, found.driver) == ("asynchronous", "news")

    made.refreshed("news", 410.0, {"clicks": 1}, {"clicks": {1}})
    found = made.warehouse.internals.watch.plan("queue", Instant(420.0))
    assert found is not None
    assert (found.way, found.driver) == ("asynchronous", "news")
    assert found.versions == {"news": 1, "sites": 0}
    assert found.reaches.reflected == {
        "clicks>news": frozenset({1}),
        "clicks>sites": frozenset({0}),
    }


SELECTIONS = """
CREATE STREAMING TABLE clicks AS SELECT *, '' AS site, '' AS url FROM STREAM sample();
CREATE MATERIALIZED VIEW counts TBLPROPERTIES ('springhouse.staleness' = '1 week')
  AS SELECT site, count(user) AS score FROM clicks GROUP BY site;
CREATE MATERIALIZED VIEW sites AS SELECT site FROM clicks;
CREATE MATERIALIZED VIEW top
  TBLPROPERTIES ('springhouse.staleness.sites' = '1 hour',
                 'springhouse.staleness.counts' = '1 week')
  AS SELECT site, score FROM counts JOIN sites USING (site);
CREATE MATERIALIZED VIEW queue
  TBLPROPERTIES ('springhouse.staleness' = '1 week', 'springhouse.inconsistency' = '1 week',
                 'springhouse.staleness.sites > top' = '1 hour')
  AS SELECT site, score FROM top UNION ALL SELECT site, 0 AS score FROM sites;
"""

SITES = """
CREATE STREAMING TABLE sites AS SELECT *, '' AS site FROM STREAM sample();
CREATE MATERIALIZED VIEW click_score AS SELECT site, score FROM counts JOIN sites USING (site);
CREATE MATERIALIZED VIEW counts AS SELECT site, count(user) AS score FROM clicks GROUP BY site;
"""


@pytest.fixture
def chained(tmp_path: Path) -> MadeWarehouse:
    """Scores are made from counts and sites; only data from clicks may be a week old."""
    promises = "'springhouse.staleness.clicks > counts > click_score' = '1 week'"
    text = SQL.format(promises=promises)
    before, _, after = text.partition("CREATE MATERIALIZED VIEW click_score")
    made = MadeWarehouse(tmp_path, before + SITES + after[after.index(";") + 1 :])
    for table in ("pages", "clicks", "sites"):
        made.arrive(table, 100.0)
    made.refreshed("counts", 150.0, {"clicks": 0}, {"clicks": {0}})
    made.refreshed("click_score", 200.0, {"counts": 0, "sites": 0}, {"clicks": {0}, "sites": {0}})
    reflects = {"pages": {0}, "clicks>click_score": {0}, "sites>click_score": {0}}
    made.refreshed("output", 300.0, {"pages": 0, "click_score": 0}, reflects)
    return made


def test_a_bound_along_a_pathway_lets_only_that_one_wait(chained: MadeWarehouse) -> None:
    watch = chained.warehouse.internals.watch
    assert watch.project.views["output"].promise.inconsistency_seconds == 7 * DAY
    chained.arrive("clicks", 400.0)
    chained.refreshed("counts", 410.0, {"clicks": 1}, {"clicks": {1}})
    read = {"counts": 1, "sites": 0}
    chained.refreshed("click_score", 420.0, read, {"clicks": {1}, "sites": {0}})
    assert watch.plan("output", Instant(500.0)) is None
    assert watch.planning.waits.bound("output", "clicks>click_score") == 7 * DAY
    assert watch.planning.waits.bound("output", "sites>click_score") == 0
    assert watch.planning.waits.bounds("output", ["pages", "click_score"]) == {
        "pages": 0,
        "click_score": 0,
    }

    chained.arrive("sites", 600.0)
    read = {"counts": 1, "sites": 1}
    chained.refreshed("click_score", 610.0, read, {"clicks": {1}, "sites": {1}})
    found = watch.plan("output", Instant(700.0))
    assert found is not None
    assert found.asked == ("sites>click_score",)
    assert found.versions["click_score"] == 2


def test_a_strict_view_takes_all_its_inputs_to_one_moment(tmp_path: Path) -> None:
    strict = MadeWarehouse(tmp_path, SQL.format(promises="'springhouse.priority' = '2'"))
    strict.arrive("pages", 100.0)
    strict.arrive("clicks", 100.0)
    strict.refreshed("click_score", 200.0, {"clicks": 0}, {"clicks": {0}})
    strict.refreshed("output", 300.0, {"pages": 0, "click_score": 0}, {"pages": {0}, "clicks": {0}})
    strict.arrive("pages", 400.0)
    watch = strict.warehouse.internals.watch
    found = watch.plan("output", Instant(500.0))
    assert found is not None
    assert found.driver is None
    assert found.versions == {"pages": 1, "click_score": 0}
    assert found.reaches == Provenance({"pages": frozenset({1}), "clicks": frozenset({0})})


def test_the_plan_tells_what_asked_and_what_else_there_was(relaxed: MadeWarehouse) -> None:
    relaxed.arrive("pages", 400.0)
    relaxed.now = Instant(500.0)
    (planned,) = [each for each in relaxed.warehouse.plan() if each.table == "output"]
    assert planned.way in ("asynchronous", "incremental")
    assert planned.input_versions == {"pages": 1, "click_score": 0}
    assert planned.reaches == {"clicks>click_score": (0,), "pages": (1,)}
    assert planned.bounds == (PathwayBound("pages", 0.0),)
    assert {each.way: each.expected_seconds for each in planned.alternatives}["full"] > 0.0


def test_promises_by_input_imply_how_far_apart(tmp_path: Path) -> None:
    warehouse = MadeWarehouse(
        tmp_path, SQL.format(promises="'springhouse.staleness.click_score' = '1 day'")
    ).warehouse
    promise = warehouse.project.views["output"].promise
    assert promise.is_relaxed
    assert promise.inconsistency_seconds == DAY
