"""In which folder does a user's function work?

`spark-pipelines` calls query functions in the project's folder, so `open("rates.json")` means the
file beside the pipeline file. A process has only one working folder, and refreshes run on several
threads. Threads that want the same folder share it. A thread that wants another folder waits. The
last thread that leaves restores the previous folder.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_changed = threading.Condition()
_inside: list[Path] = []
"""The folder of each thread that is inside `working_in`; all are equal. A nested call adds one."""
_before: list[Path] = []
"""The previous working folder of the process; empty if no thread is inside."""


@contextmanager
def working_in(folder: Path | None) -> Iterator[None]:
    """Make `folder` the working folder of the process; None changes nothing."""
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
