"""Does a table match its log?

Verification compares the claims of the log and of the notes with the files:

    files       every file of the newest version exists, with its size and its number of rows
    statistics  no value lies outside the bounds that readers prune by; the NULL counts are right
    state       the files that incremental refreshes build on exist and are readable
    changes     the change files that a reader still has to read exist and are readable; their
                weights add up to the rows that the commit says it added and removed
    rows        the note and the files have the same number of rows
    offsets     each commit of a flow begins where the commit before it ended, and the next refresh
                continues from the end of the last commit
    inputs      the inputs have the versions that a view reflects, and are the same tables
    set aside   the quarantine exists if records were set aside

Verification writes and repairs nothing. `run` repairs what can be repaired.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from springhouse.errors import SpringhouseError
from springhouse.lake.delta import changes
from springhouse.lake.delta.commit_entry import Commit
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import DataFile, TableVersion, read_arrow
from springhouse.lake.lake import QUARANTINE, Lake
from springhouse.lake.storage.presence import (
    FileLost,
    lost_files,
    reading,
    sizes_unknown,
    validate_file,
    validate_files,
)
from springhouse.lake.storage.storage import Storage
from springhouse.planner.delta_logs import made_anew
from springhouse.views.delta.row_select import WEIGHT


@dataclass(frozen=True)
class Verified:
    """The size of a table, and all problems with its contents.

    `size` is in bytes. `untold` says why a view could not be compared with its query; it is empty
    otherwise.
    """

    table: str
    files: int
    rows: int
    size: int
    problems: tuple[str, ...] = ()
    untold: str = ""


def verify(lake: Lake, table: str, needed_from: Sequence[int] = ()) -> Verified:
    """Compare a table with its log; `needed_from` are the versions that its readers reflect."""
    try:
        stored = lake.find(table)
        commits = lake.log(table).commits() if stored is not None else []
        lake.log(table).validate_log()
    except SpringhouseError as error:
        return Verified(table, 0, 0, 0, (error.problem,))
    if stored is None:
        return Verified(table, 0, 0, 0, ("its folder holds no Delta table",))
    problems = [
        *_files(stored),
        *_state(stored, commits),
        *_changes(stored.storage, commits, min(needed_from, default=stored.version)),
        *_count(stored, commits),
        *_offsets(stored, commits),
        *_inputs(lake, commits),
        *_set_aside(lake, table, commits),
    ]
    return Verified(table, len(stored.files), stored.rows, stored.size, tuple(problems))


def _files(stored: TableVersion) -> Iterator[str]:
    lost = {each.path: each for each in lost_files(stored.storage, _sizes(stored.files))}
    for file in stored.files:
        if file.path in lost:
            yield lost[file.path].problem
            continue
        try:
            yield from _file(stored.storage, file)
        except FileLost as error:
            yield error.problem


def _sizes(files: Sequence[DataFile]) -> dict[str, int | None]:
    return {file.path: file.size for file in files}


def _file(storage: Storage, file: DataFile) -> Iterator[str]:
    """The problems of one file. All rows are read, because a footer says nothing of the pages."""
    rows = 0
    nulls = dict.fromkeys(file.nulls, 0)
    outside: set[str] = set()
    with (
        reading(storage, file.path),
        storage.filesystem.open_input_file(f"{storage.path}/{file.path}") as opened,
    ):
        for batch in pq.ParquetFile(opened).iter_batches():
            rows += batch.num_rows
            for name in {*nulls, *file.low, *file.high} & {*batch.schema.names}:
                column = batch.column(name)
                if name in nulls:
                    nulls[name] += column.null_count
                if not _is_within(column, file.low.get(name), file.high.get(name)):
                    outside.add(name)
    said = f'the file "{file.path}"'
    # Other writers need not state the number of rows.
    if rows != file.rows and (file.rows or file.nulls):
        yield f"{said} holds {rows} rows, and the log says {file.rows}"
    for name in sorted(outside):
        yield f'{said} holds values of "{name}" outside the bounds that the log gives'
    for name, count in nulls.items():
        if count != file.nulls[name] and rows == file.rows:
            yield f'{said} holds {count} NULLs of "{name}", and the log says {file.nulls[name]}'


def _is_within(column: pa.Array, low: Any, high: Any) -> bool:
    """Whether no value lies outside the bounds; True if Arrow can't compare them."""
    if not len(column) or column.null_count == len(column):
        return True
    found = pc.min_max(column).as_py() if _is_ordered(column.type) else None
    if found is None or found["min"] is None:
        return True
    low, high = (None if each is None else _like(found["min"], each) for each in (low, high))
    # The log rounds times down to whole milliseconds or microseconds, depending on the writer.
    return bool(
        (low is None or low <= found["min"]) and (high is None or _cut(found["max"]) <= high)
    )


def _is_ordered(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_temporal(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
    )


def _like(value: Any, bound: Any) -> Any:
    """A bound, comparable with `value`; None if it has another type."""
    if isinstance(value, datetime) and isinstance(bound, datetime):
        zone = value.tzinfo
        if zone is None or bound.tzinfo is None:
            return bound.replace(tzinfo=zone)
        return bound
    if isinstance(value, date) and not isinstance(value, datetime):
        return bound if isinstance(bound, date) and not isinstance(bound, datetime) else None
    if isinstance(value, str) != isinstance(bound, str) or isinstance(bound, date):
        return None
    return bound


def _cut(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    return value


def _last_state(commits: Sequence[Commit]) -> Note | None:
    """The note that names the current state."""
    notes = [c.note for c in commits if c.note is not None]
    return next((n for n in reversed(notes) if n.kind in ("merge", "replace")), None)


def _state(stored: TableVersion, commits: Sequence[Commit]) -> Iterator[str]:
    note = _last_state(commits)
    for path in (p for paths in (note.state if note else {}).values() for p in paths):
        try:
            validate_file(stored.storage, path)
        except FileLost as error:
            yield error.problem


def _changes(storage: Storage, commits: Sequence[Commit], needed: int) -> Iterator[str]:
    """The problems of change files that a reader still has to read."""
    for made in commits:
        note = made.note
        paths = (note.changes or ()) if note is not None else ()
        if note is None or not paths:
            continue
        try:
            validate_files(storage, sizes_unknown(paths))
            told = _weights(storage, paths)
        except FileLost as error:
            # Older change files may be vacuumed or damaged: no reader starts before them.
            if made.version > needed:
                yield error.problem
            continue
        if told != (note.rows_added, note.rows_removed):
            yield (
                f"the change of version {made.version} holds {told[0]} new rows and {told[1]} "
                f"gone ones, and its commit says {note.rows_added} and {note.rows_removed}"
            )


def _weights(storage: Storage, paths: Sequence[str]) -> tuple[int, int]:
    return changes.weights(read_arrow(storage, paths, [WEIGHT]))


def _count(stored: TableVersion, commits: Sequence[Commit]) -> Iterator[str]:
    note = commits[-1].note if commits else None
    # The notes of a quarantine do not state its rows: no refresh needs that number.
    if note is not None and note.rows and note.rows != stored.rows:
        yield f"its last commit says {note.rows} rows, and its files hold {stored.rows}"


def _offsets(stored: TableVersion, commits: Sequence[Commit]) -> Iterator[str]:
    reached: dict[str, int] = {}
    for made in commits:
        for flow in (made.note.flows if made.note else {}).values():
            for transaction, (start, end) in flow.offsets.items():
                before = reached.get(transaction, start)
                if start != before:
                    yield (
                        f'version {made.version} takes "{transaction}" in from {start}, and the '
                        f"commit before it ended at {before}"
                    )
                reached[transaction] = end
    for transaction, end in reached.items():
        if stored.offset(transaction) != end:
            yield (
                f'the next refresh goes on with "{transaction}" from '
                f"{stored.offset(transaction)}, and the last commit of it ended at {end}"
            )


def _inputs(lake: Lake, commits: Sequence[Commit]) -> Iterator[str]:
    note = _last_state(commits)
    other = made_anew(lake, note) if note is not None else []
    for key, version in _read(note).items():
        newest, damage = lake.log(key).newest(), lake.log(key).damage()
        if damage is not None:
            yield f'it reads "{key}": {damage.problem}'
        elif newest is None:
            yield f'it reflects version {version} of "{key}", which is not there'
        elif newest.version < version:
            yield (
                f'it reflects version {version} of "{key}", which has only {newest.version}: '
                "that table was made anew"
            )
        elif key in other:
            yield (
                f'it reflects version {version} of another "{key}" than there is now: that table '
                "was made anew, or an older copy of it was put in its place"
            )


def _set_aside(lake: Lake, table: str, commits: Sequence[Commit]) -> Iterator[str]:
    """A problem if records were set aside and the quarantine is gone."""
    notes = [made.note for made in commits if made.note is not None]
    count = sum(flow.quarantined for note in notes for flow in note.flows.values())
    if count and lake.find(table + QUARANTINE) is None:
        yield f'{count} records were set aside, and the table "{table}{QUARANTINE}" is gone'


def _read(note: Note | None) -> Mapping[str, int]:
    return note.read if note is not None else {}
