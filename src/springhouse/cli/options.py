"""Which options do several commands share: project, settings, JSON, durations?"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from springhouse.errors import DeclarationError, SpringhouseError
from springhouse.units import Seconds

if TYPE_CHECKING:
    from springhouse.warehouse import Warehouse
    from springhouse.warehouse.running.refresh_events import Listener

ProjectFolder = Annotated[
    Path | None,
    typer.Option(
        "--project",
        "-p",
        metavar="DIR",
        help="The folder of the project. Default: this folder, or the nearest project above it.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--configuration",
        "-c",
        metavar="KEY=VALUE",
        help="Override a setting of the project; may be given several times.",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(help="A table or a view.", show_default=False)]


def project_folder(given: Path | None) -> Path:
    """The given folder, or the nearest project at or above the current one."""
    from springhouse.project.from_yaml import FILE_NAMES

    if given is not None:
        return given
    here = Path.cwd()
    for folder in (here, *here.parents):
        if any((folder / name).is_file() for name in FILE_NAMES):
            return folder
    raise SpringhouseError(
        f"there is no {FILE_NAMES[0]} in this folder or above it",
        hint="`springhouse init NAME` makes a new project; `--project DIR` names one elsewhere.",
    )


def open_warehouse(
    given: Path | None,
    settings: Sequence[str] | None = None,
    listener: "Listener" = lambda event: None,
    *,
    read_only: bool = True,
) -> "Warehouse":
    """The warehouse over the given project, or over the nearest one."""
    from springhouse.warehouse import Warehouse

    configuration = parse_settings(settings)
    folder = project_folder(given)
    return Warehouse(folder, configuration=configuration, listener=listener, read_only=read_only)


def parse_settings(texts: Sequence[str] | None) -> dict[str, str]:
    """The settings of all `-c key=value`; the last value of a key counts."""
    from springhouse.project.declarations.declaration import Place
    from springhouse.project.settings import check_setting

    settings = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f'"{text}" is not KEY=VALUE', param_hint="-c")
        error = check_setting(key, value, Place("-c", 1))
        if error is not None:
            raise SpringhouseError(error.problem, where=f"-c {text}", hint=error.hint)
        settings[key] = value
    return settings


def parse_duration(text: str) -> Seconds:
    """The seconds of a duration as people write it; any other text is wrong usage."""
    from springhouse.project.declarations.durations import duration_seconds

    try:
        return duration_seconds(text)
    except DeclarationError as error:
        raise typer.BadParameter(f"{error.problem}. {error.hint}") from None


Duration = Annotated[
    Seconds | None,
    typer.Option(
        "--for",
        metavar="DURATION",
        parser=parse_duration,
        help="Stop after this time: 60s, 5 minutes, 1h 30m.",
        show_default=False,
    ),
]
