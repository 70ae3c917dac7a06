"""Runs parts of the tests, two beside each other: `beside.py system lint pure spark`.

A part is a target of the Makefile. They start in the order given, so the longest comes first. Every
line that a part prints begins with its name and is whole. In the end it says how long each part
took, and shows again what the failed ones said last; it fails if one of them failed.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

AT_ONCE = 2
"""More would make tests wait for each other that have time-outs."""

SHOWN_AGAIN = 60
LAST_WORDS_SECONDS = 10.0


@dataclass
class Part:
    """One target of the Makefile, and what became of it."""

    name: str
    width: int
    process: "subprocess.Popen[str] | None" = None
    code: int | None = None
    seconds: float = 0.0
    said: "deque[str]" = field(default_factory=lambda: deque(maxlen=SHOWN_AGAIN))

    def run(self) -> None:
        began = time.monotonic()
        self.process = subprocess.Popen(
            ["make", "--no-print-directory", self.name],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # The make that started us is not that one's parent: they share no jobs.
            env={key: value for key, value in os.environ.items() if key != "MAKEFLAGS"},
        )
        listener = threading.Thread(target=self._listen, daemon=True)
        listener.start()
        self.code = self.process.wait()
        # Something that outlived the part may hold its end of the pipe for ever.
        listener.join(timeout=LAST_WORDS_SECONDS)
        self.seconds = time.monotonic() - began

    def _listen(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            tell(f"{self.name:{self.width}} | {line}")

    @property
    def verdict(self) -> str:
        ended = {None: "not run", 0: "passed"}.get(self.code, "FAILED")
        return f"{self.name:{self.width}} | {ended} after {self.seconds / 60:.1f} minutes\n"


def tell(text: str) -> None:
    """Write a line at once, and in one piece."""
    sys.stdout.write(text)
    sys.stdout.flush()


def main(names: list[str]) -> int:
    width = max(map(len, names))
    parts = [Part(name, width) for name in names]

    def stop(number: int, _: object) -> None:
        for part in parts:
            if part.process is not None and part.process.poll() is None:
                part.process.send_signal(number)
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(part.run) for part in parts]:
            done.result()
    failed = [part for part in parts if part.code != 0]
    for part in failed:
        tell(f"\n{part.name} failed, and said last:\n{''.join(part.said)}")
    tell("\n")
    for part in parts:
        tell(part.verdict)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
