"""How does output look on the screen, and how in a pipe?

A terminal shows colours, and tables that fit its width. A file or a pipe (`less`, `grep`) gets the
same text without colours, with each row on one line, however long. Answers go to stdout, errors and
notes to stderr, so that the output of `--json` can be piped.
"""

import json
import math
import sys
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from springhouse.errors import ProjectErrors, SpringhouseError
from springhouse.units import Instant

_AS_WIDE_AS_IT_NEEDS = 10_000
_DAY_SECONDS = 86_400


def console(*, stderr: bool = False) -> Console:
    """The screen; a pipe is as wide as the widest row."""
    made = Console(stderr=stderr, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = _AS_WIDE_AS_IT_NEEDS
    return made


def show(*parts: RenderableType) -> None:
    """Print to stdout, without the spaces that fill the last column of a table."""
    screen = console()
    with screen.capture() as capture:
        for part in parts:
            screen.print(Text(part) if isinstance(part, str) else part)
    for line in capture.get().splitlines():
        sys.stdout.write(line.rstrip() + "\n")


def note(text: str) -> None:
    """Print a remark to stderr, because stdout holds only the answer."""
    console(stderr=True).print(text, style="dim", markup=False)


def print_error(error: SpringhouseError) -> None:
    """Print the problem, its place and the hint; for a project, all errors and their count."""
    screen = console(stderr=True)
    for each in error.errors if isinstance(error, ProjectErrors) else ():
        screen.print(_error_markup(each))
    screen.print(f"[bold red]error:[/] {_error_markup(error)}")


def _error_markup(error: SpringhouseError) -> str:
    where = f"[bold]{escape(error.where)}:[/] " if error.where else ""
    hint = f"\n  [dim]hint:[/] {escape(error.hint)}" if error.hint else ""
    return f"{where}{escape(error.problem)}{hint}"


def print_json(value: Any) -> None:
    """Print a value as JSON to stdout."""
    sys.stdout.write(json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n")


def plain(value: Any) -> Any:
    """A value in the types that JSON has.

    Decimals become text, so that no digit is lost; NaN and infinity become null.
    """
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


def table(*headers: str) -> Table:
    """An empty table with these columns; ">" in front of a header aligns its column right."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in headers:
        right = header.startswith(">")
        made.add_column(
            header.removeprefix(">"), justify="right" if right else "left", overflow="fold"
        )
    return made


def count_text(number: int, thing: str, things: str | None = None) -> str:
    """A number of things.

    >>> count_text(1, "row"), count_text(12000, "row"), count_text(0, "refresh", "refreshes")
    ('1 row', '12,000 rows', '0 refreshes')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def clock_text(at: Instant) -> str:
    """A moment of today."""
    return _local(at).strftime("%H:%M:%S")


def moment_text(at: datetime, now: Instant) -> str:
    """A moment: its time, and also its day if that is not near."""
    here, today = at.astimezone(), _local(now)
    near = abs((today - here).total_seconds()) < _DAY_SECONDS / 2 and here.date() == today.date()
    return here.strftime("%H:%M:%S" if near else "%Y-%m-%d %H:%M")


def _local(at: float) -> datetime:
    return datetime.fromtimestamp(at).astimezone()
