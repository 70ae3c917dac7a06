"""What do the settings, the commands and the Python interface look like, as the code has them?

Writes the pages of docs/reference from the code: `python scripts/reference.py`. With `--check` it
writes nothing, and fails if a page is not what the code says.
"""

import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import typer.main

import springhouse
from springhouse.cli.app import app
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


# --- The Python interface -------------------------------------------------------------------------


def api_page() -> Iterator[str]:
    """Everything that `import springhouse` offers, and the values inside its results."""
    yield from ("# Python interface", "", GENERATED, "")
    yield (
        "All of these are names of the package `springhouse`. Everything else may change. "
        "`Instant` is a number of seconds since 1970 in UTC, and `Seconds` a number of seconds."
    )
    described: list[type] = []
    for name in _in_order(springhouse.__all__):
        value = getattr(springhouse, name)
        yield ""
        if inspect.isclass(value):
            described.append(value)
            yield from _class(name, value)
        elif inspect.isfunction(value):
            yield from _function("##", f"springhouse.{name}", value)
        else:
            yield from (f"## {name}", "", f"One of {_type(value)}.")
    yield from ("", "# Values inside the results")
    described_before = len(described)
    for each in described:
        for part in _parts(each):
            if part not in described:
                described.append(part)
    for each in described[described_before:]:
        yield ""
        yield from _class(each.__name__, each)


def _in_order(names: list[str]) -> list[str]:
    """First `open` and the warehouse, then the other classes and functions by name."""
    first = ["open", "Warehouse"]
    return [*first, *(name for name in names if name not in first)]


def _class(name: str, described: type) -> Iterator[str]:
    yield from (f"## {name}", "", _docstring(described))
    if is_dataclass(described):
        hints = typing.get_type_hints(described)
        yield ""
        yield from _table("field", "type")
        for field in fields(described):
            yield _row(f"`{field.name}`", f"`{_type(hints[field.name])}`")
    elif hasattr(described, "_fields"):  # a NamedTuple
        yield ""
        yield from _table("field", "type")
        for field_name in described._fields:
            annotation = typing.get_type_hints(described)[field_name]
            yield _row(f"`{field_name}`", f"`{_type(annotation)}`")
    elif "__init__" in vars(described) and not issubclass(described, Exception):
        yield from ("", f"```python\n{_signature(name, described.__init__)}\n```")
    for attribute, value in _attributes(described).items():
        if attribute.startswith("_"):
            continue
        if isinstance(value, property):
            yield from ("", f"### {name}.{attribute}", "", _docstring(value))
        elif inspect.isfunction(value):
            yield ""
            yield from _function("###", f"{name}.{attribute}", value)


def _attributes(described: type) -> dict[str, Any]:
    """The attributes of a class, with those that it has from classes of ours."""
    ours = [each for each in described.__mro__ if each.__module__.startswith("springhouse.")]
    return {name: value for each in reversed(ours) for name, value in vars(each).items()}


def _function(level: str, name: str, function: Callable[..., Any]) -> Iterator[str]:
    yield from (f"{level} {name}", "", f"```python\n{_signature(name, function)}\n```")
    yield from ("", _docstring(function))


def _signature(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    kept = [each for each in signature.parameters.values() if each.name != "self"]
    shown = [
        each.replace(
            annotation=each.empty
            if each.annotation is each.empty
            else _Shown(_type(each.annotation)),
            default=each.empty if each.default is each.empty else _Shown(_default(each.default)),
        )
        for each in kept
    ]
    returns = signature.return_annotation
    text = str(signature.replace(parameters=shown, return_annotation=signature.empty))
    arrow = (
        ""
        if returns is signature.empty or (name[0].isupper() and "." not in name)
        else (f" -> {_type(returns)}")
    )
    whole = f"{name}{text}{arrow}"
    if len(whole) <= 88:
        return whole
    inside = re.split(r", (?![^\[(]*[\])])", text[1:-1])
    lines = "".join(f"    {part},\n" for part in inside)
    return f"{name}(\n{lines}){arrow}"


class _Shown:
    """A text that `inspect` prints without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _default(value: Any) -> str:
    return "…" if callable(value) else repr(value)


def _type(annotation: Any) -> str:
    """A type as a user writes it, without the modules that it comes from."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"Optional\[([^\[\]]*)\]", r"\1 | None", text)
    text = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", text)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])", "", text).strip("'\"")


def _docstring(described: Any) -> str:
    return inspect.getdoc(described) or ""


def _parts(described: type) -> Iterator[type]:
    """The dataclasses of ours in the fields of a dataclass."""
    if not is_dataclass(described):
        return
    pending = list(typing.get_type_hints(described).values())
    while pending:
        found = pending.pop(0)
        pending += typing.get_args(found)
        if inspect.isclass(found) and is_dataclass(found) and found.__module__ not in _INTERNAL:
            yield found


# --- The command line -----------------------------------------------------------------------------


def cli_page() -> Iterator[str]:
    """All commands, with their arguments and options."""
    yield from ("# Command line", "", GENERATED, "")
    command = typer.main.get_command(app)
    yield from _command("springhouse", command)


def _command(name: str, command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=name)
    if name != "springhouse":
        yield from ("", f"## {name}", "")
    yield from ((command.help or "").strip(), "")
    yield f"    {name} {' '.join(command.collect_usage_pieces(context))}"
    records = [each.get_help_record(context) for each in command.params]
    if any(records):
        yield ""
        yield from _table("argument or option", "meaning")
        yield from (_row(f"`{record[0]}`", record[1]) for record in records if record)
    for each in getattr(command, "commands", {}):
        yield from _command(f"{name} {each}", command.commands[each])


_INTERNAL = ("springhouse.lake.storage.storage",)

PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "settings.md": settings_page,
    "api.md": api_page,
    "cli.md": cli_page,
}


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
