"""How does a person use all of this from a terminal?

Each command has a file of its name. `app` puts the commands together, `screen` prints, and
`options` has the options that several commands share. A command that needs Arrow and Spark imports
their rooms itself, so that `--help` and `check` answer at once.
"""

import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from springhouse.errors import SpringhouseError, without_secrets

MISTAKE = 1
"""The exit code for a problem of the user, or of the world around the warehouse."""
BUG = 70
"""The exit code for a bug of Springhouse (EX_SOFTWARE in sysexits.h)."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and leave with its exit code, which is 2 after wrong usage."""
    from springhouse.cli.app import app
    from springhouse.cli.screen import print_error

    try:
        app(arguments, prog_name="springhouse")
    except SpringhouseError as error:
        print_error(error)
        sys.exit(MISTAKE)
    except Exception:  # noqa: BLE001  a bug of ours, and this is the last place to show it
        sys.stderr.write(without_secrets(traceback.format_exc()))
        sys.exit(BUG)
    sys.exit(0)
