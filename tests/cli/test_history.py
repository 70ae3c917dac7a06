"""`springhouse history`: one row per commit, with what a reader would ask about it."""

from io import StringIO
from typing import Any

from rich.console import Console

from springhouse.cli.history import history_table
from springhouse.units import Instant

COMMIT: dict[str, Any] = {
    "version": 7,
    "at": 100.0,
    "kind": "merge",
    "by": "springhouse",
    "reason": "new data in orders",
    "quarantined": 0,
    "violations": {},
    "seconds": 2.0,
}


def shown(**more: Any) -> str:
    out = StringIO()
    Console(file=out, width=200).print(history_table([{**COMMIT, **more}], Instant(200.0)))
    return out.getvalue()


def test_a_refresh_names_those_that_it_shared_a_scan_with() -> None:
    assert "new data in orders, read once with by_day, by_hour" in shown(
        together=["by_day", "by_hour"]
    )
    assert "read once" not in shown(together=[])
