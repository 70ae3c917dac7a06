"""How does Spark stream one of our tables, without a connector for Delta?

This module links the files of the table's commits into a folder, in the order of the commits, and
Spark streams that folder. The name of a link begins with the version of its commit:

    <version>-<number>.parquet          files of the first table that was linked
    <version>-<number>-<id>.parquet     files of a table that was created again under this name
    _table_ids                          the ids of these tables, the present one last

The first time, it links the files of the present version: vacuum may have deleted files of older
versions. If a table was created again, it links all commits of the new table.
"""

import os
import re
import shutil
import uuid
from pathlib import Path

from springhouse.errors import SourceError
from springhouse.lake.delta.changes import only_appended
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.tables import open_table
from springhouse.lake.ingest.checkpoints import StreamingFlow
from springhouse.lake.ingest.identity import recreated_error
from springhouse.lake.storage.storage import Storage
from springhouse.project.declarations.declaration import Reference

_IDS = "_table_ids"


def link_new_files(
    log: TableLog, folder: Storage, reference: Reference, stream: StreamingFlow
) -> int:
    """Link the files of every new commit into a folder; returns the newest linked version."""
    newest, table_id = log.newest(), log.table_id()
    assert newest is not None
    assert table_id is not None
    if not folder.exists():
        _link_snapshot(log, folder, newest.version, newest.made, table_id)
        return newest.made
    ids = (folder.read_text(_IDS) or table_id).split()
    if not log.has_id(ids[-1]):
        if not stream.policy.read_recreated:
            raise recreated_error(stream.flow, f"table:{log.name}")
        ids.append(table_id)
    suffix = f"-{table_id[:8]}" if len(ids) > 1 else ""
    linked = _linked_names(folder, suffix)
    versions = [int(name.split("-")[0]) for name in linked]
    first, last = min(versions, default=-1), max(versions, default=-1)
    if newest.made > last and not only_appended(log, max(last, 0), newest.made):
        raise SourceError(
            f'the table "{log.name}" is updated in place, and a stream can only read what is added',
            where=str(reference.place),
            hint=f'Read it with spark.read.table("{log.name}") in a materialized view.',
        )
    _link_commits(log, folder, first, last, suffix, linked)
    _write_ids(folder, ids)
    return newest.made


def _link_snapshot(log: TableLog, folder: Storage, version: int, made: int, table_id: str) -> None:
    """Link the present files of the table, under the version that last changed its rows."""
    opened = open_table(log.storage, version)
    assert opened is not None
    # Filled under another name and then renamed: a folder with this name is complete.
    new = folder.inside("..", f".{log.name}.{uuid.uuid4().hex}")
    new.make()
    for index, file in enumerate(opened.files):
        _link(f"{log.storage.path}/{file.path}", f"{new.path}/{_name(made, index)}")
    _write_ids(new, [table_id])
    new.filesystem.move(new.path, folder.path)


def _linked_names(folder: Storage, suffix: str) -> set[str]:
    """The links that stand for files of the present table."""
    pattern = re.compile(rf"\d+-\d+{suffix}\.parquet")
    return {info.base_name for info in folder.files() if pattern.fullmatch(info.base_name)}


def _link_commits(
    log: TableLog, folder: Storage, first: int, last: int, suffix: str, linked: set[str]
) -> None:
    for commit in log.commits():
        # The process may have died after it had linked only a part of the last commit.
        if commit.changes_data and commit.version > first and commit.version >= last:
            for index, path in enumerate(commit.added):
                name = _name(commit.version, index, suffix)
                if name not in linked:
                    _link(f"{log.storage.path}/{path}", f"{folder.path}/{name}")


def _write_ids(folder: Storage, ids: list[str]) -> None:
    text = "\n".join(ids)
    if folder.read_text(_IDS) != text:
        Path(folder.path, _IDS).write_text(text)


def _name(version: int, index: int, suffix: str = "") -> str:
    return f"{version:020}-{index:05}{suffix}.parquet"


def _link(source: str, target: str) -> None:
    # A link takes no space and no time. If links do not work (another disk), make a copy.
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except OSError:
        # Spark ignores files with such a name, so an unfinished copy does no harm.
        half_done = Path(target).with_name(f".{Path(target).name}.tmp")
        shutil.copyfile(source, half_done)
        half_done.replace(target)
