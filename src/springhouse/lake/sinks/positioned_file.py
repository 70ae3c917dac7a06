"""How does a plain text file hold every event exactly once?

The `PositionedFileEventSink` of paper 003, section 4.4.2: one line per event, and checkpoints that
map offsets to positions in the file. A checkpoint `(offset, position)` says: the first `position`
bytes hold exactly the events below `offset`. A second file holds them, `<name>.checkpoints`.

    write      append the lines, sync them, then append the checkpoint, sync it
    open       take the newest checkpoint inside the file; cut off everything behind its position
    resume(o)  take the newest checkpoint that is not above `o`; cut off everything behind it

So bytes that a dead process left behind its last checkpoint never count as events, and a source
that replays from `offset` (003 section 2.1) writes nothing twice. `resume` is for callers that keep
the offsets elsewhere, such as the nodes of a cluster: the file may be ahead of those offsets.

Only one process writes: the file is locked while it is open, and the lock ends with the process.
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
"""The most checkpoints to keep; when there are more, only the newer half stays."""


class Checkpoint(NamedTuple):
    """The first `position` bytes of the file hold exactly the events below `offset`."""

    offset: int
    position: int

    def line(self) -> bytes:
        """The checkpoint as a line, with a checksum that a half-written line does not have.

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
        """The offset of the next event: all events below it are in the file."""
        return self._checkpoints[-1].offset

    def resume(self, offset: int) -> int:
        """Forget the events from `offset` on; returns the next offset, which may be lower."""
        kept = [each for each in self._checkpoints if each.offset <= offset]
        if len(kept) < len(self._checkpoints):
            self._checkpoints = kept
            self._cut()
        return self.offset

    def write(self, lines: Sequence[str], start: int, end: int) -> None:
        """Append the events of the offsets from `start` up to, but not including, `end`."""
        if start != self.offset or end < start:
            raise SinkError(
                f"the offsets {start} to {end} do not follow {self.offset}",
                where=str(self.path),
                hint="Read the source from the `offset` of the file.",
            )
        if any("\n" in line for line in lines):
            raise SinkError("an event contains a line break", where=str(self.path))
        position = self._checkpoints[-1].position
        if os.fstat(self._data).st_size != position:
            raise SinkError(
                f"the file is not {position} bytes long any more: another program wrote to it",
                where=str(self.path),
                hint="Let only one process write it. Opening it again cuts off the other bytes.",
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
        """Release the file for other processes."""
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
        # Checkpoints first: one that outlives its bytes would be valid again for other bytes.
        self._rewrite_log()
        if os.fstat(self._data).st_size > self._checkpoints[-1].position:
            os.ftruncate(self._data, self._checkpoints[-1].position)
            os.fsync(self._data)

    def _rewrite_log(self) -> None:
        """Replace the log by a file with exactly the known checkpoints."""
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
    """The checkpoints in a log, up to the first incomplete line.

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
    # Never O_APPEND: NFS, the network share of the paper's experiment, only emulates it.
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
            hint="Wait until it closes the file, or end it: the lock ends with the process.",
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
