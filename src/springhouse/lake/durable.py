"""What is on the disk when a commit is reported?

Neither Arrow, nor Spark, nor delta-rs asks the system to write a file through to the disk: after a
power cut a log may name files that are empty, or be empty itself. So every commit is three steps:

    1. each file that the commit names, and each folder on the way to it, is synced
    2. delta-rs writes the entry of the log
    3. the entry is synced, and the folder of the log; so is a checkpoint, if there is a new one

Whoever hears of a commit hears of it after step 3. An object store needs none of this: it has an
object for good once it has answered. docs/durability.md is the whole contract.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from pyarrow import fs

from springhouse.lake.at_once import at_once
from springhouse.lake.presence import FileLost
from springhouse.lake.storage import Storage

_MOST_KNOWN = 200_000
_SYNCED: set[str] = set()
"""Files and folders that were synced in the life of this process. Files never change."""


def sync_files(storage: Storage, paths: Iterable[str], *, anew: bool = False) -> None:
    """Return when files in a folder, by their relative paths, are on the disk.

    `anew` is for files that may have been written once more under the same name.
    """
    if not is_local(storage):
        return
    if len(_SYNCED) > _MOST_KNOWN:
        _SYNCED.clear()
    new = [path for path in paths if anew or f"{storage.path}/{path}" not in _SYNCED]

    def sync_file(path: str) -> None:
        try:
            _sync(Path(storage.path, path))
        except FileNotFoundError as error:
            raise FileLost(storage, path, "is missing") from error

    at_once(sync_file, new)
    folders = sorted({Path(storage.path, path).parent for path in new})
    at_once(_sync, folders)
    for folder in folders:
        _sync_way(folder)
    _SYNCED.update(f"{storage.path}/{path}" for path in new)


def sync_tree(storage: Storage) -> None:
    """Return when all files in a folder are on the disk."""
    if is_local(storage):
        found = storage.files(recursive=True)
        sync_files(storage, [info.path.removeprefix(f"{storage.path}/") for info in found])


def sync_log(storage: Storage, after: int) -> bool:
    """Return when the entries of a log after a version are on the disk: ours, and those below it.

    True if there is a new checkpoint, so that entries may go that are older than the retention.
    """
    if not is_local(storage):
        return False
    log = Path(storage.path, "_delta_log")
    version, checkpoints = after + 1, list[Path]()
    while (entry := log / f"{version:020}.json").exists():
        _sync(entry)
        checkpoints += log.glob(f"{version:020}.checkpoint*")
        version += 1
    for checkpoint in checkpoints:
        _sync(checkpoint)
    _sync(log)
    _sync_way(log)
    return bool(checkpoints)


def is_local(storage: Storage) -> bool:
    """Whether its files are on a disk of this machine, or look like that."""
    return isinstance(storage.filesystem, fs.LocalFileSystem)


def _sync_way(folder: Path) -> None:
    """Sync the folders above a folder, so that it is found: once, for it stays."""
    while str(folder) not in _SYNCED and folder != folder.parent:
        _SYNCED.add(str(folder))
        folder = folder.parent
        try:
            _sync(folder)
        except PermissionError:
            return  # Not ours to change, and so nothing in it is new.


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
