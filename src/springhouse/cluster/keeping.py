"""How does a node keep what it must not forget?

One small file per node: a line that says what it is, a checksum, and the memory. It is written to
another name, brought to the disk, renamed over the old one, and the folder is brought to the disk
as well; so after a crash at any moment there is the old file or the new one, whole. A file that is
there and can't be read is an error and never taken for an empty disk: a node that forgets its vote
can help to elect two leaders.
"""

import fcntl
import os
from hashlib import blake2b
from pathlib import Path

from springhouse.cluster.state import PersistentState
from springhouse.cluster.wire import MessageRefused, recalled, remembered
from springhouse.errors import SpringhouseError

_TITLE = b"springhouse cluster memory 1\n"
_DIGEST = 32


class StateFile:
    """The file of one node, and the lock that keeps a second process of that node away."""

    def __init__(self, folder: Path, cluster: str, node: str) -> None:
        self._folder = folder
        self._cluster, self._node = cluster, node
        self.file = folder / "memory"
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise SpringhouseError(
                f'another process runs as node "{node}" already',
                where=str(folder),
                hint="Stop it first, or give this node another name and a folder of its own.",
            ) from None

    def load(self) -> PersistentState | None:
        """What was kept last; None if nothing ever was."""
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            return None
        body = data[len(_TITLE) + _DIGEST :]
        if not data.startswith(_TITLE) or data[len(_TITLE) :][:_DIGEST] != _digest(body):
            raise self._damaged()
        try:
            cluster, node, memory = recalled(body)
        except MessageRefused:
            raise self._damaged() from None
        if (cluster, node) != (self._cluster, self._node):
            raise SpringhouseError(
                f'this is the memory of node "{node}" of the cluster "{cluster}", '
                f'not of "{self._node}" of "{self._cluster}"',
                where=str(self.file),
                hint="Give each node a folder of its own (springhouse.cluster.memory).",
            )
        return memory

    def save(self, memory: PersistentState) -> None:
        """Keep this instead; it is on the disk when the call returns."""
        body = remembered(self._cluster, self._node, memory)
        fresh = self._folder / "memory.new"
        with fresh.open("wb") as file:
            file.write(_TITLE + _digest(body) + body)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.file)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self) -> None:
        """Let another process of this node begin."""
        os.close(self._lock)

    def _damaged(self) -> SpringhouseError:
        return SpringhouseError(
            f'the memory of node "{self._node}" is damaged',
            where=str(self.file),
            hint="If a majority of the other nodes is well, delete the file: the node then comes "
            "back as one that lost its disk, and gets everything from them.",
        )


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST).digest()
