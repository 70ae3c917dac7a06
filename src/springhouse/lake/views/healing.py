"""What happens if a refresh of a view finds that a file is lost?

A view can be computed again from its inputs. So a lost file of a view costs time, but no rows:

    the lost file belongs to                         then
    the view itself                                  recompute the view, without its old rows
    an input version that the view reflects          recompute the view from the new versions
    the planned version of an input                  read a newer version of that input
    the newest version of an input that is a view    recompute that view first
    the newest version of any other input            raise an error that names the file

The engine's error message is not reliable: some engines name the file that they could not read,
some do not, and a named file may be intact. So a check of the files follows each failure.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.lake import Lake
from springhouse.lake.storage.presence import FileLost, lost_files, sizes_unknown, validate_file
from springhouse.lake.storage.storage import Storage

_NAMED = re.compile(r"[^\s'\"`,]+\.parquet")


@dataclass(frozen=True)
class RecomputeInstead:
    """An order to recompute a view, with the reason; its rows may be `unreadable`."""

    why: str
    unreadable: bool = False


def lost_by(lake: Lake, view: str) -> FileLost | None:
    """The first missing file of a view, among its rows and its state."""
    stored = lake.find(view)
    if stored is None:
        return None
    newest = lake.log(view).newest()
    note = newest.note if newest is not None else None
    return next(iter(lost_files(stored.storage, _files_of(stored, note))), None)


def lost_file(lake: Lake, error: BaseException, keys: Iterable[str]) -> FileLost | None:
    """The lost file of these tables that caused a failure; None if no file is lost."""
    for each in _causes(error):
        if isinstance(each, FileLost):
            return each
    said = " ".join(str(each) for each in _causes(error))
    for key in keys:
        place = lake.place(key)
        for path in _named_in(said, place):
            damage = _damage(place, path)
            if damage is not None:
                return damage
        lost = lost_by(lake, key)
        if lost is not None:
            return lost
    return None


def _files_of(stored: TableVersion, note: Note | None) -> dict[str, int | None]:
    sizes: dict[str, int | None] = {file.path: file.size for file in stored.files}
    state = note.state.values() if note is not None else ()
    return sizes | sizes_unknown(path for paths in state for path in paths)


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def _named_in(said: str, place: Storage) -> list[str]:
    """The files of a table that a message names, as paths inside the table."""
    start = f"{place.path}/"
    named = [found.partition(start)[2] for found in _NAMED.findall(said) if start in found]
    return list(dict.fromkeys(path for path in named if path))


def _damage(place: Storage, path: str) -> FileLost | None:
    """The error for a damaged or missing file; None if the whole file is readable."""
    try:
        validate_file(place, path)
    except FileLost as lost:
        return lost
    return None
