"""How does a table stay fast to read, and which files can vacuum delete?

Compaction merges many small files into one. Vacuum deletes the files that no reader can reach any
more. Neither changes data. Besides the newest version, vacuum keeps

    every version younger than the retention,
    every version that a pending refresh still has to read: the version that a dependent table
    reflects, and all later ones, with their change files and state,
    every file younger than the grace period: it may belong to a commit in progress,
    every file and version that running work may need: those younger than the start of the oldest
    live lease (`leases`), however long ago that was.
"""

import math
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from springhouse.errors import CommitConflict
from springhouse.lake.delta.commits import Change, commit
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.requirements import CommitPermit
from springhouse.lake.delta.tables import DataFile, TableVersion, open_table
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.lake import Lake
from springhouse.lake.storage.leases import OF_TABLE, Leases
from springhouse.lake.storage.presence import reading
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant, Seconds

SMALL_FILE = 16 * 2**20
LARGE_ENOUGH = 128 * 2**20
_TRIES = 5


def compact(lake: Lake, table: str, most_files: int = 32) -> int:
    """Merge small files if the table has more than `most_files`; returns how many it replaced."""
    ground = lake.find(table)
    if ground is None or ground.delta.metadata().partition_columns:
        return 0
    # Files in buckets stay as they are: every merge rewrites the buckets that it touches.
    small = [f for f in ground.files if f.size < SMALL_FILE and not f.path.startswith("buckets-")]
    if len(small) <= most_files:
        return 0
    with lake.leases.hold() as lease:
        permit = replace(lake.permit or CommitPermit(), lease=lease)
        return _compact(lake.under(permit), table, ground, small)


def _compact(lake: Lake, table: str, ground: TableVersion, small: list[DataFile]) -> int:
    began = lake.now()
    chosen = _first_bytes(small, LARGE_ENOUGH)
    whole = pa.concat_tables(
        [_everything(ground.storage, file) for file in chosen], promote_options="permissive"
    )
    note = Note(
        kind="compaction",
        at=lake.now(),
        variant="compaction",
        reason=f"{len(small)} small files",
        rows=ground.rows,
        seconds=lake.now() - began,
    )
    add = write_arrow(ground.storage, whole)
    for _ in range(_TRIES):
        with suppress(CommitConflict):
            change = Change(replace(note, rows=ground.rows), [add], chosen)
            commit(ground, change, lake.required)
            return len(chosen)
        # Another commit came first. The new file still holds the rows of the chosen files, if the
        # table still has all of these.
        moved = lake.find(table)
        if moved is None or not {f.path for f in chosen} <= {f.path for f in moved.files}:
            return 0
        ground = moved
    return 0


def vacuum(
    lake: Lake,
    table: str,
    needed_from: Iterable[int],
    retention_seconds: Seconds,
    grace_seconds: Seconds = Seconds(3600.0),
) -> list[str]:
    """Delete the files that no reader needs; dependents still read the versions `needed_from`."""
    place = lake.place(table)
    newest = open_table(place)
    if newest is None:
        return []
    log = lake.log(table)
    log.validate_log()
    # Read the clock before listing files: work that begins later writes only younger files.
    now = lake.leases.storage_now()
    in_table = Leases(place, OF_TABLE)
    work_began = _oldest_work([lake.leases, in_table])
    horizon = min(now - retention_seconds, now, work_began)
    floor = _floor(log, newest, needed_from, Instant(horizon))
    if floor is None:
        return []
    kept = {*_referenced(log, floor), *(file.path for file in newest.files)}
    gone = _delete_unneeded(place, kept, before=min(now - grace_seconds, work_began))
    if in_table.has_any():
        in_table.remove_dead()
    return gone


def _oldest_work(places: Iterable[Leases]) -> float:
    """When the oldest running work began, by the storage's clock; infinite if no work runs."""
    starts = (leases.oldest_start() for leases in places if leases.has_any())
    return min((start for start in starts if start is not None), default=math.inf)


def _delete_unneeded(place: Storage, kept: Collection[str], *, before: float) -> list[str]:
    """Delete the files of a table that are older than `before`, except the kept ones."""
    gone = []
    for info in place.files(recursive=True):
        path = info.path.removeprefix(f"{place.path}/")
        if path.startswith(("_delta_log/", f"{OF_TABLE}/")) or path in kept:
            continue
        if info.mtime_ns is not None and info.mtime_ns / 1e9 <= before:
            with suppress(FileNotFoundError):  # Another vacuum was faster.
                place.filesystem.delete_file(info.path)
                gone.append(path)
    return gone


def _floor(
    log: TableLog, newest: TableVersion, needed_from: Iterable[int], horizon: Instant
) -> TableVersion | None:
    """The oldest version that must stay readable; None if its log is no longer readable."""
    old_enough = [c.version for c in log.commits() if c.at <= horizon]
    floor = min([newest.version, max(old_enough, default=0), *needed_from])
    if floor >= newest.version:
        return newest
    return open_table(newest.storage, max(floor, log.commits()[0].version))


def _referenced(log: TableLog, floor: TableVersion) -> Collection[str]:
    """Every file that the floor or any later version names, in its log or in its notes."""
    kept = {file.path for file in floor.files}
    state: tuple[str, ...] = ()
    for made in log.commits():
        note = made.note
        if note is not None and note.kind in ("merge", "replace"):
            state = tuple(path for paths in note.state.values() for path in paths)
        if made.version >= floor.version:
            kept.update(made.added, state, (note.changes or ()) if note else ())
            # Files that maintenance added, ours or another writer's, hold no new data. So `added`
            # does not list them.
            if note is None or note.kind == "compaction":
                opened = open_table(log.storage, made.version)
                kept.update(file.path for file in (opened.files if opened else ()))
    kept.update(state)
    return kept


def _first_bytes(files: list[DataFile], most: int) -> list[DataFile]:
    chosen: list[DataFile] = []
    size = 0
    for file in sorted(files, key=lambda f: f.path):
        if size + file.size > most and chosen:
            break
        chosen.append(file)
        size += file.size
    return chosen


def _everything(storage: Storage, file: DataFile) -> pa.Table:
    """All columns of a file, including hidden ones."""
    with (
        reading(storage, file.path),
        storage.filesystem.open_input_file(f"{storage.path}/{file.path}") as opened,
    ):
        return pq.ParquetFile(opened).read()
