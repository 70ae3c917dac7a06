"""`springhouse init NAME`: how does a project begin?

`template/` has the files of the new project as they are: a small shop that runs at once. The
command only fills in the name of the project.
"""

import re
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from springhouse.cli.screen import show
from springhouse.errors import SpringhouseError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_PLACEHOLDER = "PROJECT_NAME"

_NEXT = """\
{folder} is a new project. Next:

  cd {folder}
  springhouse check            # is everything well declared?
  springhouse run --once       # bring everything up to date
  springhouse query "SELECT * FROM revenue_by_country"
  springhouse run              # keep it fresh; meanwhile, in another terminal:
  mv data/later.json data/orders/"""


def init(
    name: Annotated[
        str,
        typer.Argument(
            help="The folder of the new project; its last part is the name.", show_default=False
        ),
    ],
) -> None:
    """Make a new project: a small shop that runs at once."""
    folder = Path(name)
    if not _NAME.fullmatch(folder.name):
        raise SpringhouseError(
            f'"{folder.name}" can\'t be the name of a project',
            hint="A name has letters, digits, _ and -, and starts with a letter.",
        )
    if folder.exists():
        raise SpringhouseError(f"{folder} exists already", hint="Choose another name.")
    _write(resources.files("springhouse.cli") / "template", folder, folder.name)
    show(_NEXT.format(folder=folder))


def _write(template: Traversable, target: Path, name: str) -> None:
    target.mkdir(parents=True)
    for each in template.iterdir():
        if each.is_dir():
            _write(each, target / each.name, name)
        else:
            text = each.read_text(encoding="utf-8").replace(_PLACEHOLDER, name)
            (target / each.name).write_text(text, encoding="utf-8")
