"""What do the settings, the commands and the Python interface look like, as the code has them?

Writes the pages of docs/reference from the code: `python scripts/reference.py`. With `--check` it
writes nothing, and fails if a page is not what the code says.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from springhouse.project.settings import ENVIRONMENT, GROUPS, Holder, Setting
from springhouse.project.table_properties import DELTA_PROPERTIES

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
GENERATED = "<!-- Made by `make reference` from the code. Do not edit. -->"


def settings_page() -> Iterator[str]:
    """All settings, in groups."""
    yield from ("# Settings", "", GENERATED, "")
    yield (
        "A setting of a project stands in `configuration:` of its `spark-pipeline.yml`, or after "
        "`-c` on the command line. A setting of a table or view stands in its `TBLPROPERTIES`. All "
        'values are texts: write `"2"`, not `2`. A duration looks like `5 minutes`, `90s`, '
        "`1h 30m`, `1 day` or `INTERVAL 2 HOURS`. `${env:NAME}` stands for the value of an "
        "environment variable, and `${file:PATH}` for the text of a file."
    )
    for title, group in GROUPS.items():
        yield from ("", f"## {title}", "")
        yield from _table("setting", "meaning", "values", "default", "set on")
        for setting in group:
            yield _row(
                f"`{setting.key}`",
                setting.meaning,
                _values(setting),
                f"`{setting.default}`" if setting.default is not None else setting.unset,
                ", ".join(_holder(each) for each in setting.holders),
            )
    yield from ("", "## Properties of Delta", "")
    yield (
        "`TBLPROPERTIES` may also have these properties of Delta. Its other properties change how "
        "files are written or read, and are refused."
    )
    yield ""
    yield from (f"- `{key}`" for key in sorted(DELTA_PROPERTIES))
    yield from ("", "## Environment variables", "")
    yield from _table("variable", "meaning")
    yield from (_row(f"`{name}`", meaning) for name, meaning in ENVIRONMENT.items())


def _values(setting: Setting[Any]) -> str:
    allowed = f": {setting.type.allowed}" if setting.type.allowed else ""
    unit = f" ({setting.unit})" if setting.unit else ""
    return setting.type.name + allowed + unit


def _holder(holder: Holder) -> str:
    return {Holder.PROJECT: "project", Holder.TABLE: "table", Holder.VIEW: "view"}[holder]


def _table(*headers: str) -> Iterator[str]:
    yield _row(*headers)
    yield "|" + "---|" * len(headers)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


PAGES: dict[str, Callable[[], Iterator[str]]] = {"settings.md": settings_page}


def main() -> None:
    """Write the pages, or check them."""
    check = sys.argv[1:] == ["--check"]
    wrong = []
    for name, page in PAGES.items():
        text, file = "\n".join(page()) + "\n", FOLDER / name
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        wrong.append(f"docs/reference/{name}")
        if not check:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
            print(f"wrote {wrong[-1]}")
    if check and wrong:
        sys.exit(f"not what the code says: {', '.join(wrong)}; run `make reference`")


if __name__ == "__main__":
    main()
