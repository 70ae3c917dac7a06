"""A project in a pretend world: the warehouse's own loop, over pretend logs, sources and time."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from springhouse.planner.offers import Offered
from springhouse.planner.search.operators import WidgetVariant
from springhouse.project.declarations.declaration import Project
from springhouse.project.load import load
from springhouse.refresh.policy import Policy
from springhouse.simulate.pretend_project import PretendProject, WhatIf
from springhouse.simulate.project_outcome import ProjectOutcome, simulate_run
from springhouse.simulate.project_record import (
    Duration,
    ProjectRecord,
    RecordedArrival,
    TableRecord,
    read_record,
)
from springhouse.units import Dice, Seconds

SQL = """
CREATE STREAMING TABLE orders AS SELECT * FROM STREAM sample();
CREATE STREAMING TABLE customers AS SELECT * FROM STREAM sample();
CREATE STREAMING TABLE large AS SELECT * FROM STREAM(orders);
CREATE MATERIALIZED VIEW totals TBLPROPERTIES ('springhouse.staleness' = '10 seconds')
  AS SELECT count(*) AS n FROM orders;
CREATE MATERIALIZED VIEW by_customer TBLPROPERTIES ('springhouse.staleness' = '30 seconds')
  AS SELECT c.offset, count(*) AS n
  FROM orders o JOIN customers c ON o.offset = c.offset GROUP BY c.offset;
CREATE MATERIALIZED VIEW relaxed TBLPROPERTIES ('springhouse.staleness.totals' = '1 minute',
  'springhouse.inconsistency' = '1 minute')
  AS SELECT o.offset, t.n FROM orders o JOIN totals t ON o.offset = t.n;
"""
INCREMENTAL = (WidgetVariant.BATCH, WidgetVariant.INCREMENTAL)
OFFERED = {
    "large": Offered((), (WidgetVariant.INCREMENTAL,)),
    "totals": Offered((), INCREMENTAL),
    "by_customer": Offered((), INCREMENTAL),
    "relaxed": Offered((), (*INCREMENTAL, WidgetVariant.ASYNCHRONOUS), ("orders",)),
}
LENGTH = 60.0


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "a.sql").write_text(SQL)
    (tmp_path / "spark-pipeline.yml").write_text(
        "name: shop\nstorage: storage\nlibraries:\n  - glob: {include: all/**}\n"
    )
    return load(tmp_path)


def record(seconds: float = 0.4) -> ProjectRecord:
    """Orders come every other second, customers came once; each refresh takes `seconds`."""
    dice = Dice(7)
    orders = tuple(
        RecordedArrival(2.0 * number + dice.between(0.0, 2.0), 100) for number in range(30)
    )
    ways = {"full": Duration(2 * seconds), "incremental": Duration(seconds, 1e-4)}
    tables: Mapping[str, TableRecord] = {
        "orders": TableRecord(3000, 100, orders, {"append": Duration(seconds)}),
        "customers": TableRecord(50, 50, (), {"append": Duration(seconds)}),
        "large": TableRecord(3000, 0, (), {"append": Duration(seconds)}),
        "totals": TableRecord(1, 1, (), ways),
        "by_customer": TableRecord(50, 50, (), ways),
        "relaxed": TableRecord(50, 50, (), ways | {"asynchronous": Duration(seconds)}),
    }
    return ProjectRecord(tables, Seconds(LENGTH))


def fare(project: Project, recorded: ProjectRecord, **what_if: float) -> dict[str, ProjectOutcome]:
    asked = WhatIf(**what_if)  # type: ignore[arg-type]  # its fields, by name
    found = simulate_run(project, recorded, OFFERED, Policy(), asked, 240.0)
    return {each.name: each for each in found.tables}


def test_promises_are_kept_where_there_is_time(project: Project) -> None:
    found = fare(project, record())
    assert found["totals"].kept_share > 0.99
    assert found["by_customer"].kept_share > 0.99
    assert 100 <= found["orders"].refreshes <= 125


def test_a_dimension_that_was_loaded_once_makes_no_view_late(project: Project) -> None:
    assert fare(project, record())["by_customer"].mean_lag < 30.0


def test_a_view_with_a_promise_waits_as_long_as_that_allows(project: Project) -> None:
    found = fare(project, record())
    assert found["by_customer"].refreshes < found["totals"].refreshes < found["orders"].refreshes


def test_more_data_or_longer_refreshes_or_fewer_tracks_are_felt(project: Project) -> None:
    usual = fare(project, record())
    slow = fare(project, record(), costs_times=6.0)
    assert slow["orders"].mean_staleness > 2 * usual["orders"].mean_staleness
    assert fare(project, record(), arrivals_times=2.0)["orders"].refreshes > 180
    one = fare(project, record(), tracks=1, costs_times=3.0)
    two = fare(project, record(), tracks=2, costs_times=3.0)
    assert one["orders"].mean_staleness > two["orders"].mean_staleness


def test_what_it_records_tells_the_same_story_again(project: Project) -> None:
    """Recording the logs of a pretend run, and running them again, gives much the same."""
    world = PretendProject(project, record(), OFFERED, Policy(), WhatIf(), 240.0)
    world.run(240.0)
    again = read_record(project, world.logs)
    assert again.tables["orders"].durations["append"].start == pytest.approx(0.4, rel=0.05)
    first, second = fare(project, record()), fare(project, again)
    for name in ("orders", "totals", "by_customer"):
        assert second[name].mean_lag == pytest.approx(first[name].mean_lag, rel=0.2, abs=0.5)


@pytest.mark.parametrize("seconds", [1.0, 2.0, 4.0])
def test_so_it_does_where_data_waited_for_a_track(project: Project, seconds: float) -> None:
    """A log with only the start times of refreshes would lose how long their data had waited."""
    world = PretendProject(project, record(seconds), OFFERED, Policy(), WhatIf(tracks=1), 240.0)
    world.run(240.0)
    again = read_record(project, world.logs)
    first = fare(project, record(seconds), tracks=1)
    second = fare(project, again, tracks=1)
    for name in ("orders", "totals", "by_customer"):
        assert second[name].mean_lag == pytest.approx(first[name].mean_lag, rel=0.2, abs=0.3)


def test_the_same_seed_gives_the_same_run(project: Project) -> None:
    durations = {"append": Duration(0.4, 0, (0.5, 1.5))}
    spread = replace(record().tables["orders"], durations=durations)
    recorded = ProjectRecord({**record().tables, "orders": spread}, Seconds(LENGTH))
    assert fare(project, recorded) == fare(project, recorded)
    assert fare(project, recorded, seed=1) != fare(project, recorded, seed=2)


def test_a_table_without_a_past_is_like_the_others(project: Project) -> None:
    tables = {**record().tables, "totals": TableRecord()}
    found = fare(project, ProjectRecord(tables, Seconds(LENGTH)))
    assert found["totals"].refresh_seconds == pytest.approx(0.4, rel=0.5)


MADE_OF_LATEST = ("by_day", "by_hour", "by_country", "by_product")
SHARING = """
CREATE STREAMING TABLE orders AS SELECT * FROM STREAM sample();
CREATE MATERIALIZED VIEW latest AS
  SELECT o.offset, count(*) AS n FROM orders o GROUP BY o.offset;
""" + "".join(
    f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ('springhouse.staleness' = '1 minute') "
    "AS SELECT n, count(*) AS m FROM latest GROUP BY n;\n"
    for name in MADE_OF_LATEST
)


def test_views_that_share_a_scan_pay_for_it_once_and_stay_together(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "a.sql").write_text(SHARING)
    (tmp_path / "spark-pipeline.yml").write_text(
        "name: shop\nstorage: storage\nlibraries:\n  - glob: {include: all/**}\n"
    )
    shop = load(tmp_path)
    offered = {name: Offered((), INCREMENTAL) for name in ("latest", *MADE_OF_LATEST)}

    def shares_and_seconds(rows: int) -> tuple[list[float], list[float]]:
        orders = tuple(RecordedArrival(2.0 * number, rows) for number in range(30))
        quick, slow = {"incremental": Duration(0.1)}, {"incremental": Duration(0.3, 3e-6)}
        tables = {
            "orders": TableRecord(3000, 100, orders, {"append": Duration(0.1)}),
            "latest": TableRecord(1, 1, (), quick),
            **{name: TableRecord(1, 1, (), slow) for name in MADE_OF_LATEST},
        }
        recorded = ProjectRecord(tables, Seconds(LENGTH))
        world = PretendProject(shop, recorded, offered, Policy(), WhatIf(), 600.0)
        world.run(600.0)
        notes = [[e.note for e in world.logs.log(n).commits()[2:]] for n in MADE_OF_LATEST]
        # The record holds the duration of a refresh that runs alone.
        again = read_record(shop, world.logs).tables["by_day"].durations["incremental"]
        assert again.seconds(10 * rows) == pytest.approx(0.3 + rows * 3e-5, rel=0.2)
        shares = [sum(bool(note.saved) for note in each) / len(each) for each in notes]
        return shares, [sum(note.seconds for note in each) / len(each) for each in notes]

    shares, seconds = shares_and_seconds(50_000)
    assert min(shares) > 0.8
    # Alone, 27 changes of 50,000 rows would take 4.3 seconds.
    assert max(seconds) < 3.0
    assert shares_and_seconds(100)[0] == [0.0] * 4
