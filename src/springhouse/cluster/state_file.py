"""How does a node store its persistent state?

Each node has one small file: a title line, a checksum, and the state. The node writes a new file
under another name, syncs it to disk, renames it over the old one, and syncs the folder. So after a
crash at any moment either the old file or the new one is there, complete. A file that is there but
can't be read is an error. The node never takes it for an empty disk: a node that forgets its vote
can help to elect two leaders.
"""

import fcntl
import os
from hashlib import blake2b
from pathlib import Path

from springhouse.cluster.state import PersistentState
from springhouse.cluster.wire import (
    MessageRefused,
    decode_persistent_state,
    encode_persistent_state,
)
from springhouse.errors import SpringhouseError

_TITLE = b"springhouse cluster memory 1\n"
_DIGEST = 32


class StateFile:
    """The file of one node, and a lock that keeps a second process of that node away."""

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
                f'another process already runs as node "{node}"',
                where=str(folder),
                hint="Stop it first, or give this node another name and a folder of its own.",
            ) from None

    def load(self) -> PersistentState | None:
        """The state that was saved last, or None if there is none."""
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            return None
        body = data[len(_TITLE) + _DIGEST :]
        if not data.startswith(_TITLE) or data[len(_TITLE) :][:_DIGEST] != _digest(body):
            raise self._damaged()
        try:
            cluster, node, state = decode_persistent_state(body)
        except MessageRefused:
            raise self._damaged() from None
        if (cluster, node) != (self._cluster, self._node):
            raise SpringhouseError(
                f'this file belongs to node "{node}" of the cluster "{cluster}", '
                f'not to node "{self._node}" of the cluster "{self._cluster}"',
                where=str(self.file),
                hint="Give each node a folder of its own (springhouse.cluster.memory).",
            )
        return state

    def save(self, state: PersistentState) -> None:
        """Replace the saved state; it is on the disk when the call returns."""
        body = encode_persistent_state(self._cluster, self._node, state)
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
        """Release the lock, so that another process of this node can start."""
        os.close(self._lock)

    def _damaged(self) -> SpringhouseError:
        return SpringhouseError(
            f'the file with the state of node "{self._node}" is damaged',
            where=str(self.file),
            hint="If a majority of the other nodes runs well, delete the file: the node then comes "
            "back as one that lost its disk, and gets everything from them.",
        )


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST).digest()
