"""How does a person ask for all of this?

One file per command, named after it; `app` puts them together, `screen` says how things look, and
`options` holds what several commands take. Rooms that bring Arrow and Spark along are imported
inside the commands that need them, so that `--help` and `check` answer at once.
"""

import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from springhouse.errors import SpringhouseError, without_secrets

MISTAKE = 1
"""The exit code for what the user, or the world around the warehouse, has to mend."""
BUG = 70
"""The exit code for what we have to mend (EX_SOFTWARE in sysexits.h)."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and leave with its exit code; wrong usage is 2."""
    from springhouse.cli.app import app
    from springhouse.cli.screen import print_error

    try:
        app(arguments, prog_name="springhouse")
    except SpringhouseError as error:
        print_error(error)
        sys.exit(MISTAKE)
    except Exception:  # noqa: BLE001  it is a bug of ours, and this is the last place to show it
        sys.stderr.write(without_secrets(traceback.format_exc()))
        sys.exit(BUG)
    sys.exit(0)
