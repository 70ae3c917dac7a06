"""One sentence reports a damaged log or a wrong date, and names the file or table."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patience import patience
from springhouse.lake.delta.commits import Change, commit
from springhouse.lake.delta.note import FORMAT, KEY, Note
from springhouse.lake.delta.tables import open_table
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

TEN_YEARS_AHEAD = Instant(2_100_000_000.0)  # 2036-07-18

VIEW = "CREATE MATERIALIZED VIEW ids AS SELECT id FROM orders;"


@pytest.fixture
def log(idle_shop: Path) -> Path:
    return idle_shop / "storage" / "tables" / "orders" / "_delta_log"


def append(log: Path, at: Instant) -> Path:
    """Write a commit without rows; return its file."""
    ground = open_table(Storage.at(str(log.parent)))
    assert ground is not None
    commit(ground, Change(Note("append", at, channel=True, freshness=at, changes=())))
    return log / f"{ground.version + 1:020}.json"


def test_a_garbled_commit_is_named_by_run_and_status(springhouse, idle_shop, log):
    garbled = append(log, Instant(2.0))
    garbled.write_text("{")
    (idle_shop / "transformations" / "ids.sql").write_text(VIEW)
    ran = springhouse("run", "--once", "-p", idle_shop)
    assert ran.code == 1
    assert ran.err.count(str(garbled)) == 2  # The table, and the view that reads it.
    assert "damaged at version 1" in ran.err
    assert "Traceback" not in ran.out + ran.err
    told = springhouse("status", "-p", idle_shop, "--json")
    assert [each["state"] for each in json.loads(told.out)] == ["failing", "failing"]
    assert all(str(garbled) in each["problem"] for each in json.loads(told.out))


def test_a_garbled_commit_of_the_quarantine_is_named(springhouse, idle_shop, log):
    (log.parent.parent / "orders_quarantine" / "_delta_log").mkdir(parents=True)
    garbled = log.parent.parent / "orders_quarantine" / "_delta_log" / f"{0:020}.json"
    garbled.write_text("{")
    told = springhouse("status", "-p", idle_shop, "--json")
    assert str(garbled) in json.loads(told.out)[0]["problem"]


def test_a_note_of_a_newer_release_is_one_sentence(springhouse, idle_shop, log):
    newer = append(log, Instant(2.0))
    lines = [json.loads(line) for line in newer.read_text().splitlines()]
    for line in lines:
        line.get("commitInfo", {}).get(KEY, {})["format"] = FORMAT + 1
    newer.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = springhouse("run", "--once", "-p", idle_shop)
    assert ran.code == 1
    assert f"a note in format {FORMAT + 1}" in ran.err
    assert "update this one" in ran.err


def test_a_commit_dated_ahead_is_told_and_nothing_waits_for_it(springhouse, idle_shop, log):
    append(log, TEN_YEARS_AHEAD)
    ran = springhouse("run", "--once", "-p", idle_shop)
    assert ran.code == 0
    assert "version 1 is dated 2036-07-18" in ran.out
    (told,) = json.loads(springhouse("status", "-p", idle_shop, "--json").out)
    assert "2036-07-18" in told["warning"]
    assert told["state"] == "up to date"
    assert 0 <= told["staleness_seconds"] < 3600


def test_the_log_has_one_line_per_failed_refresh(idle_shop, log):
    append(log, Instant(2.0)).write_text("{")
    command = [sys.executable, "-m", "springhouse", "--log-level", "info", "run", "--once"]
    ran = subprocess.run(
        [*command, "-p", str(idle_shop)],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert ran.returncode == 1
    lines = [line for line in ran.stderr.splitlines() if "springhouse.refresh" in line]
    assert len(lines) == 1
    assert "WARNING springhouse.refresh failed table=orders times=1 problem=" in lines[0]
