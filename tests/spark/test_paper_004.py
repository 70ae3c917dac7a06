"""Tables 1 to 3 of 004 on Spark: the paper's week, as Delta tables and views, on a set clock."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from springhouse.units import Instant
from springhouse.warehouse import Warehouse
from springhouse.warehouse.running.execution import perform

SQL = """
CREATE STREAMING TABLE crawl AS SELECT url, digest
  FROM STREAM read_files('crawl', format => 'json', schema => 'url STRING, digest STRING');
CREATE STREAMING TABLE click_score;
CREATE FLOW scores AS AUTO CDC INTO click_score
  FROM STREAM read_files('scores', format => 'json', schema => 'site STRING, score BIGINT, seq INT')
  KEYS (site) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 1;

CREATE MATERIALIZED VIEW synchronous AS
  SELECT url, digest, score FROM crawl JOIN click_score ON split_part(url, '/', 1) = site;
CREATE MATERIALIZED VIEW asynchronous
  TBLPROPERTIES ('springhouse.staleness.click_score' = '1 week',
                 'springhouse.inconsistency' = '1 week')
  AS SELECT url, digest, score FROM crawl JOIN click_score ON split_part(url, '/', 1) = site;
"""

# Table 1.
WEEK = (
    ("Sun 3pm", "crawl", [("elsewhere.com/p", "d0")]),
    ("Mon 1am", "scores", [("a.com", 18)]),
    ("Mon 8am", "crawl", [("a.com/x", "d1")]),
    ("Tue 1am", "scores", [("a.com", 21), ("b.com", 7)]),
    ("Tue 11am", "crawl", [("a.com/y", "d2")]),
    ("Tue 5pm", "crawl", [("b.com/r", "d3")]),
    ("Wed 1am", "scores", [("a.com", 22), ("b.com", 14)]),
    ("Wed 2pm", "crawl", [("a.com/z", "d4"), ("b.com/s", "d5")]),
)

TABLE_2 = {
    "Mon 8am": {("a.com/x", "d1", 18)},
    "Tue 11am": {("a.com/x", "d1", 21), ("a.com/y", "d2", 21)},
    "Tue 5pm": {("a.com/x", "d1", 21), ("a.com/y", "d2", 21), ("b.com/r", "d3", 7)},
    "Wed 2pm": {
        ("a.com/x", "d1", 22),
        ("a.com/y", "d2", 22),
        ("b.com/r", "d3", 14),
        ("a.com/z", "d4", 22),
        ("b.com/s", "d5", 14),
    },
}
TABLE_3 = {
    "Mon 8am": {("a.com/x", "d1", 18)},
    "Tue 11am": {("a.com/x", "d1", 18), ("a.com/y", "d2", 21)},
    "Tue 5pm": {("a.com/x", "d1", 18), ("a.com/y", "d2", 21), ("b.com/r", "d3", 7)},
    "Wed 2pm": {
        ("a.com/x", "d1", 18),
        ("a.com/y", "d2", 21),
        ("b.com/r", "d3", 7),
        ("a.com/z", "d4", 22),
        ("b.com/s", "d5", 14),
    },
}
# Sections 2.1 and 2.4.
SYNCHRONOUS = {
    "Mon 8am": {"crawl": ["Mon 8am"], "click_score": ["Mon 1am"]},
    "Tue 11am": {"crawl": ["Tue 11am"], "click_score": ["Tue 1am"]},
    "Tue 5pm": {"crawl": ["Tue 5pm"], "click_score": ["Tue 1am"]},
    "Wed 2pm": {"crawl": ["Wed 2pm"], "click_score": ["Wed 1am"]},
}
ASYNCHRONOUS = {
    "Mon 8am": {"crawl": ["Mon 8am"], "click_score": ["Mon 1am"]},
    "Tue 11am": {"crawl": ["Tue 11am"], "click_score": ["Mon 1am", "Tue 1am"]},
    "Tue 5pm": {"crawl": ["Tue 5pm"], "click_score": ["Mon 1am", "Tue 1am"]},
    "Wed 2pm": {"crawl": ["Wed 2pm"], "click_score": ["Mon 1am", "Tue 1am", "Wed 1am"]},
}


def moment(text: str) -> Instant:
    day, hour = text.split()
    hours = int(hour[:-2]) + (12 if hour.endswith("pm") else 0)
    days = ("Sun", "Mon", "Tue", "Wed").index(day)
    begin = datetime(2026, 1, 4, tzinfo=UTC)
    return Instant((begin + timedelta(days=days, hours=hours)).timestamp())


class Week:
    """The week of Table 1: data arrives, and both views are refreshed after each crawl."""

    def __init__(self, folder: Path) -> None:
        self.now = Instant(0.0)
        self.warehouse = Warehouse(folder, clock=lambda: self.now)
        self._folder = folder
        self.rows: dict[str, dict[str, Any]] = {"synchronous": {}, "asynchronous": {}}
        self.reflected: dict[str, dict[str, Any]] = {"synchronous": {}, "asynchronous": {}}
        self.changed: dict[str, dict[str, Any]] = {"synchronous": {}, "asynchronous": {}}
        self.variants: list[str] = []

    def pass_by(self) -> None:
        for number, (when, what, rows) in enumerate(WEEK):
            self.now = moment(when)
            self._arrive(number, what, rows)
            # The crawl of Sunday is "any prior data"; the first join happens with the first scores.
            if when != "Sun 3pm" and (what == "crawl" or when == "Mon 1am"):
                for view in self.rows:
                    self._refresh(view, when)

    def _arrive(self, number: int, what: str, rows: list[tuple[Any, ...]]) -> None:
        names = ("url", "digest") if what == "crawl" else ("site", "score")
        records = [dict(zip(names, row, strict=True)) | {"seq": number} for row in rows]
        text = "".join(json.dumps(record) + "\n" for record in records)
        (self._folder / what).mkdir(exist_ok=True)
        (self._folder / what / f"{number}.json").write_text(text)
        perform(
            self.warehouse.internals.watch,
            self.warehouse.internals.watch.forced(
                "crawl" if what == "crawl" else "click_score", "it arrived"
            ),
        )

    def _refresh(self, view: str, when: str) -> None:
        self.now = Instant(self.now + 1.0)
        before = self.warehouse.internals.lake.find(view)
        perform(
            self.warehouse.internals.watch,
            self.warehouse.internals.watch.forced(view, "a crawl came"),
        )
        found = self.warehouse.query(f"SELECT * FROM {view}").collect()
        self.rows[view][when] = set(map(tuple, found))
        newest = self.warehouse.internals.lake.log(view).newest()
        assert newest is not None
        assert newest.note is not None
        self.reflected[view][when] = {
            channel: [self._when(channel, version) for version in sorted(versions)]
            for channel, versions in newest.provenance.reflected.items()
        }
        if view == "asynchronous":
            self.variants.append(newest.note.variant)
        if before is not None:
            self.changed[view][when] = (newest.note.rows_added, newest.note.rows_removed)

    def _when(self, channel: str, version: int) -> str:
        since = self.warehouse.internals.lake.log(channel).channel().since(version)
        return next(when for when, _, _ in WEEK if moment(when) == since)


@pytest.fixture(scope="module")
def week(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Week:
    folder = tmp_path_factory.mktemp("week")
    (folder / "transformations").mkdir()
    (folder / "transformations" / "all.sql").write_text(SQL)
    (folder / "spark-pipeline.yml").write_text(
        "name: week\nstorage: storage\nlibraries:\n  - glob:\n      include: transformations/**\n"
    )
    found = Week(folder)
    found.pass_by()
    return found


def test_table_2_synchronous_output(week: Week) -> None:
    for when, rows in TABLE_2.items():
        assert week.rows["synchronous"][when] == rows, when
        assert week.reflected["synchronous"][when] == SYNCHRONOUS[when], when


def test_table_3_asynchronous_output(week: Week) -> None:
    for when, rows in TABLE_3.items():
        assert week.rows["asynchronous"][when] == rows, when
        assert week.reflected["asynchronous"][when] == ASYNCHRONOUS[when], when
    # Until Monday at eight only the crawl has changed, so the join cannot mix different moments.
    assert week.variants[2:] == ["asynchronous"] * 3


def test_an_asynchronous_refresh_only_adds_what_is_new(week: Week) -> None:
    """The second columns of Tables 2 and 3."""
    assert week.changed["asynchronous"]["Wed 2pm"] == (2, 0)
    assert week.changed["synchronous"]["Wed 2pm"] == (5, 3)


def test_explain_tells_that_it_is_inconsistent(week: Week) -> None:
    told = week.warehouse.explain("asynchronous").stored
    assert not told.consistent
    assert told.valid_from.timestamp() == moment("Wed 2pm")
    assert told.valid_until.timestamp() == moment("Tue 1am")
    assert week.warehouse.explain("synchronous").stored.consistent


def test_all_that_is_mixed_is_joined_anew_by_a_refresh_of_everything(week: Week) -> None:
    week.now = Instant(week.now + 60.0)
    assert week.warehouse.refresh().ok
    found = set(map(tuple, week.warehouse.query("SELECT * FROM asynchronous").collect()))
    assert found == TABLE_2["Wed 2pm"]
    assert week.warehouse.explain("asynchronous").stored.consistent
