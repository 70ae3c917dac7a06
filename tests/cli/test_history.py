"""`springhouse history`: one row per commit, with its most important facts."""

import json
from dataclasses import replace
from io import StringIO

from rich.console import Console

from springhouse.cli.history import history_table
from springhouse.units import Instant
from springhouse.warehouse import CommitRecord
from springhouse.warehouse.reports.result import utc

COMMIT = CommitRecord(
    version=7,
    at=utc(100.0),
    kind="merge",
    by="springhouse",
    reason="new data in orders",
    duration_seconds=2.0,
)


def shown(commit: CommitRecord) -> str:
    out = StringIO()
    Console(file=out, width=200).print(history_table([commit], Instant(200.0)))
    return out.getvalue()


def test_a_refresh_names_those_that_it_shared_a_scan_with() -> None:
    together = replace(COMMIT, together_with=("by_day", "by_hour"))
    assert "new data in orders, read once with by_day, by_hour" in shown(together)
    assert "read once" not in shown(COMMIT)


def test_a_commit_is_json_with_its_moment_in_utc() -> None:
    told = json.loads(json.dumps(COMMIT.to_dict()))
    assert (told["at"], told["duration_seconds"]) == ("1970-01-01T00:01:40.000Z", 2.0)
    assert told["rows"] is None
