"""`springhouse simulate warehouse`, for people and for programs. Nothing here starts a JVM."""

import json
import sys

import pytest

from springhouse.lake.delta.commits import Change, commit
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import open_table
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

FEW = ("simulate", "warehouse", "--events", "2000")


def told(springhouse, *arguments):
    answer = springhouse(*FEW, *arguments, "--json")
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


def test_the_papers_setting(springhouse):
    answer = springhouse(*FEW)
    assert (answer.code, answer.err) == (0, "")
    header, *rows = answer.out.splitlines()
    assert header.split()[:5] == ["table", "priority", "period", "refresh", "refreshes"]
    assert len([row for row in rows if row.startswith("table_")]) == 30
    assert "policy  whittle; tracks global; inheritance chain;" in answer.out
    assert "load    90% of 4 tracks\n" in answer.out
    compared = [line.split() for line in rows if line.startswith(("this policy", "FIFO"))]
    assert [line[0] for line in compared] == ["this", "FIFO"]


def test_the_same_seed_the_same_answer(springhouse):
    assert told(springhouse, "--seed", 7) == told(springhouse, "--seed", 7)
    assert told(springhouse, "--seed", 7) != told(springhouse, "--seed", 8)


def test_what_if(springhouse):
    usual, tracks, costs, arrivals = (
        told(springhouse, *what)
        for what in ((), ("--tracks", 8), ("--costs-times", 1.5), ("--arrivals-times", 2))
    )
    assert tracks["tracks"] == 8
    assert costs["load"] == pytest.approx(1.5 * usual["load"])
    assert arrivals["load"] == pytest.approx(2 * usual["load"])
    assert arrivals["relative_lateness"] > usual["relative_lateness"]


def test_another_policy(springhouse):
    words = "fifo; tracks global; inheritance none; chopping none; last-track take"
    fifo = told(springhouse, "--policy", words)
    assert fifo["policy"] == words
    assert fifo["relative_lateness"] == fifo["relative_lateness_of_fifo"]


def of_project(springhouse, folder, *arguments):
    return springhouse("simulate", "warehouse", "-p", folder, "--for", "2 minutes", *arguments)


def test_a_project(springhouse, shop):
    answer = of_project(springhouse, shop)
    assert answer.code == 0
    assert "guesses it for: orders, revenue_by_country" in answer.err
    orders, revenue = answer.out.splitlines()[1:3]
    assert orders.startswith("orders ")
    assert "10 s" in revenue
    assert revenue.endswith("%")
    assert "tracks  2 tracks, busy " in answer.out
    assert "a table with a promise waits" in answer.out
    assert not (shop / "storage" / "logs" / "spark.log").exists()


def test_arrivals_and_costs_are_those_of_past_refreshes(springhouse, idle_shop):
    place = Storage.at(str(idle_shop / "storage" / "tables" / "orders"))
    for number in range(10):
        note = Note("append", Instant(1_000.0 + 30.0 * number), rows_added=100, seconds=0.6)
        opened = open_table(place)
        assert opened is not None
        commit(opened, Change(note))
    answer = of_project(springhouse, idle_shop, "--tracks", 1, "--json")
    assert (answer.code, answer.err) == (0, "")
    run = json.loads(answer.out)["run"]
    orders = next(each for each in run["tables"] if each["name"] == "orders")
    assert orders["refreshes"] in (3, 4, 5)
    assert orders["refresh_seconds"] == pytest.approx(0.6)


def test_a_projects_own_policy(springhouse, shop):
    file = shop / "spark-pipeline.yml"
    text = file.read_text().replace(
        "configuration:\n", 'configuration:\n  springhouse.scheduler.basic: "edf"\n'
    )
    assert "edf" in text
    file.write_text(text)
    answer = of_project(springhouse, shop, "--json")
    assert json.loads(answer.out)["policy"].startswith("edf; ")


def test_what_if_of_a_project(springhouse, shop):
    asked = ("--promise", "revenue_by_country=40 seconds", "--priority", "orders=7")
    answer = of_project(springhouse, shop, *asked, "--json")
    orders, revenue = json.loads(answer.out)["run"]["tables"]
    assert (orders["priority"], revenue["promise_seconds"]) == (7.0, 40.0)


def test_a_plot(springhouse, tmp_path):
    file = tmp_path / "staleness.svg"
    assert springhouse(*FEW, "--plot", file).code == 0
    assert file.read_text().startswith("<svg ")
    assert "without contention" in file.read_text()


def test_a_plot_that_needs_what_is_not_there(springhouse, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    answer = springhouse(*FEW, "--plot", tmp_path / "staleness.png")
    assert answer.code == 1
    assert "a PNG needs matplotlib" in answer.err
    assert ".svg" in answer.err


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("--tables", 0), 2, "--tables"),
        (("--tracks", 0), 2, "0 is not at least 1"),
        (("--utilisation", -1), 2, "-1 is not above 0"),
        (("--arrivals-times", 0), 2, "0 is not above 0"),
        (("--slowdown", 0.5), 2, "0.5 is not at least 1"),
        (("--policy", "fastest"), 1, '"fastest" is none of'),
        (("--plot", "a.pdf"), 2, "neither in .svg nor in .png"),
        (("--plot", "nowhere/a.svg"), 1, 'there is no folder "nowhere"'),
        (("--project", ".", "--tables", 3), 2, "a project has its own tables"),
        (("--promise", "orders=1 minute"), 2, "this option needs a project"),
    ],
)
def test_mistakes(springhouse, tmp_path, monkeypatch, arguments, code, problem):
    monkeypatch.chdir(tmp_path)
    answer = springhouse(*FEW, *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert problem in " ".join(answer.err.split())
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("--promise", "revenue"), 2, "does not have the form"),
        (("--promise", "revenues=1 minute"), 1, 'no table or view "revenues"'),
        (("--priority", "orders=high"), 2, '"high" is not a number'),
        (("--slowdown", 2), 2, "a project has its own tables"),
    ],
)
def test_mistakes_with_a_project(springhouse, shop, arguments, code, problem):
    answer = of_project(springhouse, shop, *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert problem in " ".join(answer.err.split())
