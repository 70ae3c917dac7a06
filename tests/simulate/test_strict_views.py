"""A strict view skips the search. Would the search have given the same answer?

Random projects run in the pretend world. When a strict view is due, and no view upstream of it is,
the test also runs Algorithm 1 of 004, as for a view that may be inconsistent, with a bound of 0.
"""
# ruff: noqa: SLF001  the same questions are put to both ways of deciding

import random
from pathlib import Path

import pytest

from springhouse.loop.facts import Facts
from springhouse.planner.delta_logs import Channels
from springhouse.planner.offers import Offered
from springhouse.planner.relaxed.planned_refreshes import PlannedRefreshes
from springhouse.planner.relaxed.situation_in_logs import LogSituations
from springhouse.planner.relaxed.view_groups import ViewGroups
from springhouse.planner.relaxed.view_workflow import planner_of
from springhouse.planner.search.operators import WidgetVariant
from springhouse.project.declarations.declaration import Project
from springhouse.project.load import load
from springhouse.refresh.policy import Policy
from springhouse.simulate.pretend_project import PretendProject, WhatIf
from springhouse.simulate.project_record import (
    Duration,
    ProjectRecord,
    RecordedArrival,
    TableRecord,
)
from springhouse.units import Instant, Seconds

LENGTH = 60.0
AT_ONCE = "TBLPROPERTIES ('springhouse.staleness' = '1 millisecond')"


def drawn(folder: Path, dice: random.Random) -> Project:
    """Up to four tables, and up to six views over them and over one another."""
    tables = [f"t{n}" for n in range(dice.randint(1, 4))]
    statements = [f"CREATE STREAMING TABLE {t} AS SELECT * FROM STREAM sample();" for t in tables]
    known = list(tables)
    for n in range(dice.randint(1, 6)):
        reads = dice.sample(known, min(len(known), dice.choice([1, 1, 2, 3])))
        query = " UNION ALL ".join(f"SELECT 1 AS n FROM {each}" for each in reads)
        statements.append(f"CREATE MATERIALIZED VIEW v{n} {AT_ONCE} AS {query};")
        known.append(f"v{n}")
    (folder / "all").mkdir()
    (folder / "all" / "a.sql").write_text("\n".join(statements))
    (folder / "spark-pipeline.yml").write_text(
        "name: strict\nstorage: storage\nlibraries:\n  - glob: {include: all/**}\n"
    )
    return load(folder)


def recorded(project: Project, dice: random.Random) -> ProjectRecord:
    """Data that comes now and then, and costs by which the cheapest way varies."""
    found = {}
    for table in project.tables:
        times = sorted(dice.uniform(0.0, LENGTH) for _ in range(dice.randint(1, 25)))
        arrivals = tuple(RecordedArrival(at, dice.randint(1, 500)) for at in times)
        cost = {"append": Duration(dice.uniform(0.1, 1.0))}
        found[table] = TableRecord(1000, 1000, arrivals, cost)
    for view in project.views:
        ways = {
            "full": Duration(dice.uniform(0.2, 4.0)),
            "incremental": Duration(dice.uniform(0.1, 3.0), dice.uniform(0.0, 0.01)),
        }
        found[view] = TableRecord(1000, 1000, (), ways)
    return ProjectRecord(found, Seconds(LENGTH))


def searched(facts: Facts, view: str, now: Instant) -> tuple[dict[str, int], str] | None:
    """The result of the search; None if its plan begins with steps upstream."""
    project, logs, offers = facts.project, facts.logs, facts.offers
    tables = ViewGroups(project, facts.graph).tables_made_in((view,))
    planner = planner_of(project, {each: offers.offered(each) for each in tables})
    later = Instant(now + 0.01)
    situation = LogSituations(logs).situation(planner.workflow, Channels(logs), later)
    plan = planner.plan(situation, offers, [view])
    found = PlannedRefreshes(logs, project.tables, situation, plan).refresh_of(view, now)
    assert found is not None
    return None if found.first else (dict(found.versions), found.way)


@pytest.mark.parametrize("seed", range(12))
def test_the_search_says_what_the_shortcut_says(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    project = drawn(tmp_path, dice)
    offered = {
        v: Offered((), (WidgetVariant.BATCH, WidgetVariant.INCREMENTAL)) for v in project.views
    }
    record, what_if = recorded(project, dice), WhatIf(seed=seed)
    world = PretendProject(project, record, offered, Policy(), what_if, LENGTH)
    planning = world._facts.planning
    compared = 0
    for second in range(1, int(LENGTH)):
        world.run(float(second))
        planning.look()
        for plan in planning.plans(world.now):
            if plan.table not in project.views:
                continue
            found = searched(world._facts, plan.table, world.now)
            # If a sibling is further behind, a view goes only that far: `whole` plans beyond that.
            whole = planning.plan_whole(plan.table, world.now)
            if found is not None and whole is not None:
                assert found == (dict(whole.versions), whole.way)
                compared += 1
    assert compared >= 5
