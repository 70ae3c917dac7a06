"""What is on the disk when a commit is reported?

Arrow, Spark and delta-rs do not sync the files that they write. After a power cut a log may name
empty files, or be empty itself. So every commit has three steps:

    1. sync each file that the commit names, and each folder on the way to it
    2. delta-rs writes the log entry
    3. sync the entry, the folder of the log, and the checkpoint if there is a new one

Before step 2, Springhouse also syncs the entries that the commit builds on: those of its input
tables, and the earlier ones in its own log. Other processes may have written them.

A commit is reported after step 3. An object store needs no sync: once it has answered, the object
is durable. docs/durability.md is the whole contract.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from pyarrow import fs

from springhouse.lake.storage.parallel import in_parallel
from springhouse.lake.storage.presence import FileLost
from springhouse.lake.storage.storage import Storage

_MOST_KNOWN = 200_000
_SYNCED: set[str] = set()
"""The files and folders that this process has synced. Files never change."""


def sync_files(storage: Storage, paths: Iterable[str], *, anew: bool = False) -> None:
    """Return when these files of a folder, given by relative paths, are on the disk.

    `anew` is for files that may have been written again under the same name.
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

    in_parallel(sync_file, new)
    root = Path(storage.path)
    folders = {Path(storage.path, path).parent for path in new}
    # A folder inside the table may have been deleted with the table and created again.
    folders |= {above for folder in folders for above in folder.parents if _is_in(above, root)}
    in_parallel(_sync, sorted(folders))
    for folder in folders:
        _sync_way(folder)
    _SYNCED.update(f"{storage.path}/{path}" for path in new)


def sync_tree(storage: Storage) -> None:
    """Return when all files in a folder are on the disk."""
    if is_local(storage):
        found = storage.files(recursive=True)
        sync_files(storage, [info.path.removeprefix(f"{storage.path}/") for info in found])


def sync_log(storage: Storage, after: int) -> bool:
    """Return when the entries of a log are on the disk: ours, later ones, and earlier ones.

    True if there is a new checkpoint: then entries older than the retention may be deleted.
    """
    if not is_local(storage):
        return False
    log = Path(storage.path, "_delta_log")
    sync_entries(storage, after)
    version, checkpoints = after + 1, list[Path]()
    while _sync_entry(_entry(log, version)):
        checkpoints += log.glob(f"{version:020}.checkpoint*")
        version += 1
    if checkpoints:
        checkpoints += log.glob("_last_checkpoint")
    for checkpoint in checkpoints:
        _sync(checkpoint)
    _sync(log)
    _sync_way(log, anew=after < 0)
    return bool(checkpoints)


def sync_entries(storage: Storage, version: int) -> None:
    """Return when the entries that a version of a table needs are on the disk.

    Another process may write an entry and die, or not be finished, before its sync. Other tools
    sync nothing. After a power cut, a commit that builds on such entries would outlive them.
    """
    if not is_local(storage):
        return
    log, synced = Path(storage.path, "_delta_log"), False
    try:
        while version >= 0 and _sync_entry(_entry(log, version), once=True):
            synced = True
            if (log / f"{version:020}.checkpoint.parquet").exists():
                break
            version -= 1
        if synced:
            _sync(log)
    except OSError as error:
        # Some read-only file systems have no sync, and need none.
        if error.errno not in (errno.EINVAL, errno.EROFS):
            raise


def _entry(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def _sync_entry(entry: Path, *, once: bool = False) -> bool:
    """Sync an entry; False if it does not exist, or if it was synced before and `once` is set."""
    try:
        found = entry.stat()
    except FileNotFoundError:
        return False
    # A table that is created again has entries with the same names.
    known = f"{entry}:{found.st_mtime_ns}:{found.st_size}"
    if once and known in _SYNCED:
        return False
    _sync(entry)
    _SYNCED.add(known)
    return True


def is_local(storage: Storage) -> bool:
    """Whether its files are on a disk of this machine, or seem to be."""
    return isinstance(storage.filesystem, fs.LocalFileSystem)


def _sync_way(folder: Path, *, anew: bool = False) -> None:
    """Sync the folders above a folder, so that its entry is durable; once, unless `anew`."""
    while (anew or str(folder) not in _SYNCED) and folder != folder.parent:
        _SYNCED.add(str(folder))
        folder = folder.parent
        try:
            _sync(folder)
        except PermissionError:
            return  # We can't write in this folder, so it has no new entries.


def _is_in(folder: Path, root: Path) -> bool:
    return folder == root or root in folder.parents


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
