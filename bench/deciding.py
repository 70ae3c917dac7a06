"""What does one pass of deciding cost after one arrival, with ever more views that may wait?

A warehouse of N views that may be inconsistent, ten over each pair of base tables. New rows of the
first table cause a refresh at once; data from the second may be a week old. The logs are simulated,
so that the program measures deciding and not the storage. Data arrives in one base table; then

    pass    logs are read, plans are made for changed inputs, and the scheduler gets them
    again   the same, after no change

Goals: a pass over 1,000 views under 100 ms of processor time, over 10,000 under 1 s.
Run: `python bench/deciding.py [--most 10000]`; it writes `bench/results/deciding.md`.
"""

import argparse
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

from springhouse.loop.facts import Facts, facts_of
from springhouse.loop.schedule import Schedule
from springhouse.planner.offers import Offered
from springhouse.planner.provenance import Provenance
from springhouse.planner.search.operators import WidgetVariant
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.project.lineage.graph import Graph
from springhouse.project.load import load
from springhouse.refresh.policy import Policy
from springhouse.simulate.pretend_logs import PretendLogs, PretendNote
from springhouse.simulate.pretend_project import PretendOffers, PretendSources
from springhouse.simulate.project_record import Duration, ProjectRecord, TableRecord
from springhouse.units import Instant, Seconds

RESULTS = Path(__file__).parent / "results" / "deciding.md"
VIEWS_PER_PAIR = 10
ROUNDS = 20
VARIANTS = (WidgetVariant.BATCH, WidgetVariant.INCREMENTAL, WidgetVariant.ASYNCHRONOUS)

PAIR = """
CREATE STREAMING TABLE pages_{0} AS SELECT * FROM STREAM sample();
CREATE STREAMING TABLE clicks_{0} AS SELECT * FROM STREAM sample();
"""
VIEW = """
CREATE MATERIALIZED VIEW view_{0}_{1} TBLPROPERTIES (
  'springhouse.staleness.clicks_{0}' = '1 week', 'springhouse.inconsistency' = '1 week')
  AS SELECT p.offset FROM pages_{0} p JOIN clicks_{0} c ON p.offset = c.offset;
"""


def main() -> None:
    """Measure, print, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=10_000)
    most = parser.parse_args().most
    lines = [
        "# What a pass of deciding costs",
        "",
        (
            f"`bench/deciding.py`, {ROUNDS} arrivals each, one of {os.cpu_count()} cores "
            f"({platform.machine()}, Python {platform.python_version()}), "
            f"{time.strftime('%Y-%m-%d')}. Milliseconds of processor time, medians; the worst in "
            f"brackets. One arrival moves {VIEWS_PER_PAIR} views."
        ),
        "",
        "| views | tables | first pass, all planned | pass after one arrival | nothing moved |",
        "|---|---|---|---|---|",
    ]
    for count in (10, 100, 1_000, 10_000):
        if count <= most:
            lines.append(measured(count))
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n")


def measured(count: int) -> str:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        facts, logs = warehouse(Path(folder), count // VIEWS_PER_PAIR)
    now = Instant(1_000.0)
    schedule = Schedule(facts, Policy(), 4, now)

    def decide(at: float) -> float:
        began = time.process_time()
        facts.planning.look()
        plans = facts.planning.plans(Instant(at))
        schedule.hear(plans, Instant(at))
        schedule.starts([], Instant(at))
        return 1000 * (time.process_time() - began)

    first = decide(now)
    moved, still = [], []
    for number in range(ROUNDS):
        at = now + 10.0 * (number + 1)
        arrive(logs, f"pages_{number % (count // VIEWS_PER_PAIR)}", at)
        moved.append(decide(at + 1.0))
        still.append(decide(at + 2.0))
    return (
        f"| {count:,} | {count // VIEWS_PER_PAIR * 2:,} | {first:,.0f} | "
        f"{statistics.median(moved):,.1f} ({max(moved):,.1f}) | "
        f"{statistics.median(still):,.1f} ({max(still):,.1f}) |"
    )


def warehouse(folder: Path, pairs: int) -> tuple[Facts, PretendLogs]:
    """Pairs of base tables with their views, all of them up to date."""
    (folder / "all").mkdir()
    texts = [
        PAIR.format(pair) + "".join(VIEW.format(pair, n) for n in range(VIEWS_PER_PAIR))
        for pair in range(pairs)
    ]
    (folder / "all" / "a.sql").write_text("".join(texts))
    (folder / "spark-pipeline.yml").write_text(
        "name: bench\nstorage: storage\nlibraries:\n  - glob: {include: all/**}\n"
    )
    project = load(folder)
    logs = PretendLogs()
    for table in project.tables:
        arrive(logs, table, 0.0)
    for name, view in project.views.items():
        pair = name.split("_")[1]
        read = {f"pages_{pair}": 0, f"clicks_{pair}": 0}
        after = Provenance({key: frozenset({0}) for key in read})
        definition = fingerprint(project, view)
        note = PretendNote(
            "merge", "full", after=after, definition=definition, read=read, rows=1000
        )
        logs.log(name).commit(Instant(1.0), note, is_channel=False)
    graph = Graph(project)
    ways = {each.value: Duration(0.5, 1e-4) for each in VARIANTS[1:]} | {"full": Duration(2.0)}
    record = TableRecord(1000, 1000, (), ways)
    recorded = ProjectRecord(dict.fromkeys(graph.order, record), Seconds(60.0))
    offered = {
        name: Offered((), VARIANTS, (f"pages_{name.split('_')[1]}",)) for name in project.views
    }
    offers = PretendOffers(project, graph, logs, recorded, offered)
    sources = PretendSources(project, graph, logs, {})
    facts = facts_of(project, logs, sources, lambda _, chooser: offers.over(chooser))
    return facts, logs


def arrive(logs: PretendLogs, table: str, at: float) -> None:
    """Add a hundred new rows."""
    note = PretendNote("append", "append", rows=1000, rows_added=100)
    logs.log(table).commit(Instant(at), note, is_channel=True)


if __name__ == "__main__":
    main()
