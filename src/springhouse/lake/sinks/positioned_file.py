"""How does a plain text file hold every event exactly once?

The `PositionedFileEventSink` of paper 003, section 4.4.2: one line per event, and checkpoints that
map offsets to positions in the file. A checkpoint `(offset, position)` says: the first `position`
bytes hold exactly the events below `offset`. They stand in a second file, `<name>.checkpoints`.

    write      append the lines, make them durable, then append the checkpoint, make it durable
    open       the newest checkpoint that the file is long enough for; cut off all that is behind it
    resume(o)  the newest checkpoint that is not above `o`; cut off all that is behind it

So whatever a dead process left behind its last checkpoint is never seen as an event, and a source
that replays from `offset` (003 section 2.1) writes nothing twice. `resume` is for whoever keeps the
offsets elsewhere, as the nodes of a cluster do: the file may be ahead of what they agreed on.

One process at a time: the file is locked while it is open, and the lock goes with the process.
"""

import fcntl
import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from springhouse.errors import SinkError

_MOST_CHECKPOINTS = 2_000
"""So many checkpoints are kept; when there are more, the newer half of them."""


class Checkpoint(NamedTuple):
    """The first `position` bytes of the file hold exactly the events below `offset`."""

    offset: int
    position: int

    def line(self) -> bytes:
        """The checkpoint as it is written down, with a sum that a half-written line does not have.

        >>> Checkpoint(3, 40).line()
        b'3 40 66640de8\\n'
        """
        text = f"{self.offset} {self.position}".encode()
        return text + f" {zlib.crc32(text):08x}\n".encode()


START = Checkpoint(0, 0)


class PositionedFile:
    """A text file with one line per event, open for one writer."""

    def __init__(self, path: Path, most_checkpoints: int = _MOST_CHECKPOINTS) -> None:
        self.path = path
        self._most = most_checkpoints
        path.parent.mkdir(parents=True, exist_ok=True)
        self._data = _opened(path)
        try:
            _lock(self._data, path)
            self._log = _opened(path.with_name(path.name + ".checkpoints"))
        except BaseException:
            os.close(self._data)
            raise
        length = os.fstat(self._data).st_size
        found = read_checkpoints(os.pread(self._log, os.fstat(self._log).st_size, 0))
        self._checkpoints = [START, *(each for each in found if each.position <= length)]
        self._cut()

    @property
    def offset(self) -> int:
        """The offset of the next event: all below it are in the file for good."""
        return self._checkpoints[-1].offset

    def resume(self, offset: int) -> int:
        """Forget the events from `offset` on; the offset to go on from, which may be below it."""
        kept = [each for each in self._checkpoints if each.offset <= offset]
        if len(kept) < len(self._checkpoints):
            self._checkpoints = kept
            self._cut()
        return self.offset

    def write(self, lines: Sequence[str], start: int, end: int) -> None:
        """Append the events of the offsets `start` up to, and without, `end`: all, or none."""
        if start != self.offset or end < start:
            raise SinkError(
                f"the offsets {start} to {end} do not follow on {self.offset}",
                where=str(self.path),
                hint="Ask it for its `offset`, and read the source from there.",
            )
        if any("\n" in line for line in lines):
            raise SinkError("an event has a line break in it", where=str(self.path))
        position = self._checkpoints[-1].position
        if os.fstat(self._data).st_size != position:
            raise SinkError(
                f"the file is not {position} bytes long any more: somebody else wrote to it",
                where=str(self.path),
                hint="Let one process write it; opening it again cuts off what is not ours.",
            )
        data = b"".join(line.encode() + b"\n" for line in lines)
        _append(self._data, data)
        checkpoint = Checkpoint(end, position + len(data))
        _append(self._log, checkpoint.line())
        self._checkpoints.append(checkpoint)
        if len(self._checkpoints) > self._most:
            self._checkpoints = [START, *self._checkpoints[-self._most // 2 :]]
            self._rewrite_log()

    def close(self) -> None:
        """Let others write it."""
        os.close(self._log)
        os.close(self._data)

    def __enter__(self) -> "PositionedFile":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _cut(self) -> None:
        """Cut both files down to the newest checkpoint."""
        # Checkpoints first: one that outlives its bytes would be believed once new ones are there.
        self._rewrite_log()
        if os.fstat(self._data).st_size > self._checkpoints[-1].position:
            os.ftruncate(self._data, self._checkpoints[-1].position)
            os.fsync(self._data)

    def _rewrite_log(self) -> None:
        """Put a file with exactly the checkpoints that are known in the place of the old one."""
        log = self.path.with_name(self.path.name + ".checkpoints")
        wanted = b"".join(each.line() for each in self._checkpoints[1:])
        if os.pread(self._log, len(wanted) + 1, 0) == wanted:
            return
        new = log.with_name(log.name + ".new")
        new.unlink(missing_ok=True)
        os.close(self._log)
        self._log = _opened(new)
        _append(self._log, wanted)
        new.replace(log)
        _sync_folder(log.parent)


def read_checkpoints(text: bytes) -> list[Checkpoint]:
    """The checkpoints in a log, up to the first line that is not whole.

    >>> read_checkpoints(Checkpoint(3, 40).line() + Checkpoint(5, 60).line()[:-3])
    [Checkpoint(offset=3, position=40)]
    """
    found = []
    for line in text.splitlines(keepends=True):
        parts = re.fullmatch(rb"(\d+) (\d+) [0-9a-f]{8}\n", line)
        checkpoint = Checkpoint(int(parts[1]), int(parts[2])) if parts else START
        if checkpoint.line() != line:
            break
        found.append(checkpoint)
    return found


def _opened(path: Path) -> int:
    new = not path.exists()
    # Never O_APPEND: NFS, the network share of the paper's experiment, does it by hand.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    if new:
        _sync_folder(path.parent)
    return descriptor


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise SinkError(
            "another process writes this file",
            where=str(path),
            hint="Wait until it lets go, or end it: the lock goes with the process.",
        ) from error


def _append(descriptor: int, data: bytes) -> None:
    at = os.fstat(descriptor).st_size
    while data:
        written = os.pwrite(descriptor, data, at)
        data, at = data[written:], at + written
    os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
