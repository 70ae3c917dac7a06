"""What is on the disk when a commit is reported?

Arrow, Spark and delta-rs do not sync the files that they write. After a power cut a log may name
empty files, or be empty itself. So every commit has three steps:

    1. each file that the commit names, and each folder on the way to it, is synced
    2. delta-rs writes the entry of the log
    3. the entry is synced, and the folder of the log; so is a checkpoint, if there is a new one

Before step 2, the entries that a commit builds on are synced, too: those of the tables that it was
computed from, and the earlier ones in its own log. Other processes may have written them.

A commit is reported after step 3. An object store needs none of this: once it has answered, the
object is durable. docs/durability.md is the whole contract.
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

    in_parallel(sync_file, new)
    root = Path(storage.path)
    folders = {Path(storage.path, path).parent for path in new}
    # A folder inside the table may have been deleted with the table, and made once more.
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
    """Return when the entries of a log are on the disk: ours, those after it, and those below.

    True if there is a new checkpoint, so that entries may go that are older than the retention.
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
    """Return when the entries that a version of a table is read from are on the disk.

    Another process may have died, or still be on its way, between the entry and its sync; another
    tool syncs nothing. A commit that builds on them would outlive them.
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
        # Some file systems that nobody can write to know no sync, and need none.
        if error.errno not in (errno.EINVAL, errno.EROFS):
            raise


def _entry(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def _sync_entry(entry: Path, *, once: bool = False) -> bool:
    """Sync an entry; False if it is not there, or if it is to be synced `once` and was."""
    try:
        found = entry.stat()
    except FileNotFoundError:
        return False
    # A table that is made anew has entries of the same names.
    known = f"{entry}:{found.st_mtime_ns}:{found.st_size}"
    if once and known in _SYNCED:
        return False
    _sync(entry)
    _SYNCED.add(known)
    return True


def is_local(storage: Storage) -> bool:
    """Whether its files are on a disk of this machine, or look like that."""
    return isinstance(storage.filesystem, fs.LocalFileSystem)


def _sync_way(folder: Path, *, anew: bool = False) -> None:
    """Sync the folders above a folder, so that it is found: once, unless it was made `anew`."""
    while (anew or str(folder) not in _SYNCED) and folder != folder.parent:
        _SYNCED.add(str(folder))
        folder = folder.parent
        try:
            _sync(folder)
        except PermissionError:
            return  # Not ours to change, and so nothing in it is new.


def _is_in(folder: Path, root: Path) -> bool:
    return folder == root or root in folder.parents


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
