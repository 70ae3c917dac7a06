"""In which folder does a user's function work?

`spark-pipelines` calls query functions in the project's folder, so `open("rates.json")` means the
file beside the pipeline file. A process has only one working folder, and refreshes run on several
threads: those that want the same folder share it, another folder has to wait, and who leaves last
goes back to where the process was.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_changed = threading.Condition()
_inside: list[Path] = []
"""One entry per thread that works somewhere; all are equal. A nested call adds another one."""
_before: list[Path] = []
"""Where the process was; empty if nobody works."""


@contextmanager
def working_in(folder: Path | None) -> Iterator[None]:
    """Make `folder` the working folder of the process; None leaves it."""
    if folder is None:
        yield
        return
    with _changed:
        _changed.wait_for(lambda: all(other == folder for other in _inside))
        if not _inside:
            _before.append(Path.cwd())
            os.chdir(folder)
        _inside.append(folder)
    try:
        yield
    finally:
        with _changed:
            _inside.pop()
            if not _inside:
                os.chdir(_before.pop())
                _changed.notify_all()
