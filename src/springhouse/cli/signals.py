"""What do Ctrl-C and SIGTERM do while a warehouse runs?"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_ASKED_TO_STOP = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at each signal, whatever this thread is doing."""

    def handle(number: int, frame: Any) -> None:
        stop()

    before = {number: signal.signal(number, handle) for number in _ASKED_TO_STOP}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
