"""Which file of a table's log is damaged?

delta-rs opens a table from its newest checkpoint and the entries after it. It ignores an empty
entry, and accepts one whose last lines are gone. So `validate_entries` reads these entries again.
If delta-rs can't open the table at all, `find_damage` names the file that is the reason.
"""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq

from springhouse.errors import LakeError
from springhouse.lake.delta.commit_entry import damaged_entry, read_entry
from springhouse.lake.delta.log import TableLog
from springhouse.lake.storage.storage import Storage

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.")


def validate_entries(storage: Storage, identity: str, version: int) -> None:
    """Raise an error if an entry that a version of a table needs is damaged.

    A version needs the entries after its newest checkpoint. A process checks each entry once for
    each table, which `identity` names.
    """
    log = storage.inside("_delta_log")
    valid = _VALID_ENTRIES.setdefault((storage.root, identity), set())
    if version in valid:
        return
    start = version
    if version - 1 not in valid:
        start = max((each + 1 for each in _checkpoints(log) if each <= version), default=0)
    for each in range(start, version + 1):
        if each not in valid and read_entry(log, each, _name_of(storage)) is None:
            raise damaged_entry(log, each, _name_of(storage), "the file is missing")
        valid.add(each)
    valid.add(version)


_VALID_ENTRIES: dict[tuple[str, str], set[int]] = {}
"""The entries that are known to be undamaged, by place and identity of the table."""


def find_damage(storage: Storage) -> LakeError | None:
    """The error for the damaged log file of a table that can't be opened; None without damage."""
    name, log = _name_of(storage), storage.inside("_delta_log")
    found = TableLog(storage, name).damage()
    return found if found is not None else _checkpoint_damage(log, name)


def _checkpoint_damage(log: Storage, name: str) -> LakeError | None:
    """The error for the newest checkpoint; None if it is readable."""
    hinted = _hinted_checkpoint(log)
    newest = max([*_checkpoints(log), *([] if hinted is None else [hinted])], default=None)
    if newest is None:
        return None
    parts = [i.base_name for i in log.files() if i.base_name.startswith(f"{newest:020}.checkpoint")]
    file, problem = f"{newest:020}.checkpoint.parquet", "the file is missing"
    for file in parts:
        problem = ""
        if file.endswith(".parquet"):
            problem = _unreadable(log, file)
        if problem:
            break
    if not problem:
        return None
    # Without a checkpoint, a table can be read from its entries, if all of them still exist.
    whole = read_entry(log, 0, name) is not None
    return LakeError(
        f'the checkpoint of "{name}" at version {newest} is damaged: {problem}',
        where=f"{log.root}/{file}",
        hint="Delete this file and _last_checkpoint beside it: the log holds all that is in it."
        if whole
        else "Restore this file from a backup.",
    )


def _unreadable(log: Storage, file: str) -> str:
    """Why a Parquet file can't be read; empty if it can."""
    try:
        with log.filesystem.open_input_file(f"{log.path}/{file}") as opened:
            pq.read_table(opened)
    except (OSError, pa.ArrowException) as error:
        return next(iter(str(error).splitlines()), type(error).__name__)
    return ""


def _checkpoints(log: Storage) -> list[int]:
    """The versions that have a checkpoint."""
    found = [_CHECKPOINT.match(info.base_name) for info in log.files()]
    return [int(each[1]) for each in found if each]


def _hinted_checkpoint(log: Storage) -> int | None:
    """The version of the newest checkpoint according to `_last_checkpoint`, if it names one."""
    try:
        found = json.loads(log.read_text("_last_checkpoint") or "{}")["version"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, int) else None


def _name_of(storage: Storage) -> str:
    return storage.root.rpartition("/")[2]
