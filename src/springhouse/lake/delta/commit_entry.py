"""What does one entry of a Delta log say?

`_delta_log/N.json` has one action per line: added and removed files, transactions, the table's
columns, and `commitInfo`, in which every commit of ours carries a note. A `Commit` is all of this
as one value. A commit without a note comes from another writer. It counts as a change of data
unless its actions say otherwise.

An unreadable entry raises an error that names the file. `Note.holds` says how many actions the
entry has, so the reader also detects an entry whose end was cut off.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from springhouse.errors import LakeError
from springhouse.lake.delta.note import FORMAT, KEY, NewerNote, Note
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

_LATEST = 1e11
"""The latest date that an entry may have (the year 5138), so that every date can be shown."""


@dataclass(frozen=True)
class Commit:
    """One version of a table, as the log describes it.

    `dated` is the date in the log. `at` is the same, unless `commit_times` corrected it.
    """

    version: int
    at: Instant
    dated: Instant
    operation: str
    note: Note | None
    added: tuple[str, ...]  # files with new data, by paths relative to the table
    removed: tuple[str, ...]  # files whose data is gone
    transactions: Mapping[str, int]
    columns: int = 0  # how often the log has described the table's columns so far
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes of the added files
    table_id: str | None = None  # the table's id, if this commit has the metadata
    mark: str = ""  # a hash of the entry: another copy of the table has another mark

    @property
    def changes_data(self) -> bool:
        if self.note is not None:
            return self.note.changes_data
        return bool(self.added or self.removed)

    @property
    def appends_only(self) -> bool:
        """Whether the change is exactly the rows of the added files."""
        if self.note is not None:
            return self.note.changes is None and not self.removed
        return not self.removed

    @property
    def size(self) -> int:
        """The bytes of the files that hold new data."""
        return sum(self.sizes.values())

    @property
    def only_adds(self) -> bool:
        """Whether the commit only adds rows; for a commit that rewrites files, its note says so."""
        note = self.note
        is_told = note is not None and note.changes is not None and note.rows_removed == 0
        return is_told or self.appends_only


def read_commit(storage: Storage, version: int) -> Commit | None:
    """A single commit of a table; None if its log has no such entry."""
    text = storage.inside("_delta_log").read_text(f"{version:020}.json")
    return _parsed(version, text) if text else None


def read_entry(log: Storage, version: int, name: str) -> Commit | None:
    """An entry of the log of the table `name`; None if missing, an error if unreadable."""
    try:
        text = log.read_text(f"{version:020}.json")
        return None if text is None else _parsed(version, text)
    except NewerNote as newer:
        raise LakeError(
            f'version {version} of "{name}" has a note in format {newer.format}, and this '
            f"Springhouse reads format {FORMAT}",
            where=_where(log, version),
            hint="It was written by a newer Springhouse: update this one.",
        ) from None
    except UnicodeDecodeError:
        raise damaged_entry(log, version, name, "the file is not text") from None
    except (ValueError, RecursionError) as error:
        raise damaged_entry(log, version, name, str(error)) from None


class _NoCommit(ValueError):
    """The text is not an entry of a Delta log."""


def _parsed(version: int, text: str) -> Commit:
    by_kind = _actions(text)
    info = by_kind.get("commitInfo", [{}])[0]
    noted = info.get(KEY)
    note = None if noted is None else Note.from_json(noted)
    for kind, count in (note.holds if note else {}).items():
        if len(by_kind.get(kind, ())) < count:
            raise _NoCommit(f'it has {len(by_kind.get(kind, ()))} of {count} "{kind}" actions')
    # Prefer our own instant, then the log's timestamp, then the time of the newest file.
    stamp = info.get("inCommitTimestamp") or info.get("timestamp") or _newest_file(by_kind)
    at = note.at if note else Instant(_number(stamp, "timestamp") / 1000.0)
    if not abs(at) < _LATEST:
        raise _NoCommit(f"it is dated {at:g}")
    return Commit(
        version=version,
        at=at,
        dated=at,
        operation=str(info.get("operation", "")),
        note=note,
        added=_data_paths(by_kind.get("add", ())),
        removed=_data_paths(by_kind.get("remove", ())),
        transactions=dict(_transaction(each) for each in by_kind.get("txn", ())),
        columns=len(by_kind.get("metaData", ())),
        table_id=next((str(m["id"]) for m in by_kind.get("metaData", ()) if "id" in m), None),
        mark=hashlib.sha256(text.encode()).hexdigest()[:16],
        sizes=dict(_size(add) for add in by_kind.get("add", ()) if "size" in add),
    )


def _actions(text: str) -> dict[str, list[dict[str, Any]]]:
    """The actions of an entry, by kind; the entry has one JSON object per line."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise _NoCommit("the file is empty")
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for number, line in lines:
        try:
            action = json.loads(line)
        except ValueError:
            raise _NoCommit(f"line {number} is no JSON") from None
        if not isinstance(action, dict):
            raise _NoCommit(f"line {number} is no action")
        for kind, body in action.items():
            if not isinstance(body, dict):
                raise _NoCommit(f'"{kind}" in line {number} is no object')
            by_kind.setdefault(kind, []).append(body)
    return by_kind


def _transaction(action: Mapping[str, Any]) -> tuple[str, int]:
    app, version = action.get("appId"), action.get("version")
    if not isinstance(app, str) or not isinstance(version, int):
        raise _NoCommit('a "txn" has no appId or version')
    return app, version


def _size(action: Mapping[str, Any]) -> tuple[str, int]:
    return _path(action), int(_number(action["size"], "size"))


def _path(action: Mapping[str, Any]) -> str:
    path = action.get("path")
    if not isinstance(path, str):
        raise _NoCommit('an "add" or "remove" has no path')
    return unquote(path)


def _number(value: Any, what: str) -> float:
    if not isinstance(value, (int, float)):
        raise _NoCommit(f'"{what}" is no number')
    return float(min(max(value, -1e300), 1e300))


def _data_paths(actions: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(_path(action) for action in actions if action.get("dataChange", True))


def _newest_file(by_kind: Mapping[str, Sequence[Mapping[str, Any]]]) -> float:
    times = [add.get("modificationTime", 0) for add in by_kind.get("add", ())]
    return max((_number(each, "modificationTime") for each in times), default=0.0)


def damaged_entry(log: Storage, version: int, name: str, what: str) -> LakeError:
    return LakeError(
        f'the log of "{name}" is damaged at version {version}: {what}',
        where=_where(log, version),
        hint=_NEWEST
        if log.modified(f"{version + 1:020}.json") is None
        else "Restore this file from a backup. A view can also be made anew: delete its folder.",
    )


_NEWEST = (
    "It is the newest entry: if a power cut damaged it, it was never reported, and deleting it "
    "loses nothing. Otherwise restore it from a backup."
)


def _where(log: Storage, version: int) -> str:
    return f"{log.root}/{version:020}.json"
