"""Do all files exist that an engine will read, or that a commit will name?

Some engines read a missing file as an empty one. A view would then be silently wrong. So the lake
checks the files in the storage before it passes them to an engine, and again before it commits.

    before a scan     every file exists, with the size that the log names
    before a commit   every added file exists, with its size; so does every change and state file
                      that the note names, and every file that a remote engine had to scan
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from springhouse.errors import LakeError
from springhouse.lake.storage.parallel import in_parallel
from springhouse.lake.storage.storage import Storage

_ASKED_ONE_BY_ONE = 32
"""For more files than this, one listing of the table replaces single requests (object stores)."""


class FileLost(LakeError):
    """A file of a table is missing or damaged; `storage` is the table's folder."""

    def __init__(self, storage: Storage, path: str, happened: str) -> None:
        super().__init__(
            f'the file "{path}" of the table "{storage.name}" {happened}',
            where=storage.root,
            hint="Restore it from a backup. Otherwise: `springhouse run` computes a view anew; a "
            "streaming table of this project is read anew from its sources once you delete its "
            "folder; a table of others has to be mended by whoever writes it. `springhouse verify` "
            "lists every such file of this project.",
        )
        self.storage = storage
        self.path = path


def validate_files(storage: Storage, sizes: Mapping[str, int | None]) -> None:
    """Raise `FileLost` for the first file that is missing or has another size than expected."""
    for path, found in _sizes(storage, list(sizes)).items():
        wanted = sizes[path]
        if found is None:
            raise FileLost(storage, path, "is missing")
        if wanted is not None and found != wanted:
            raise FileLost(storage, path, f"is damaged: it has {found} bytes instead of {wanted}")


def lost_files(storage: Storage, sizes: Mapping[str, int | None]) -> list[FileLost]:
    """Every file that is missing or has another size than expected."""
    lost = []
    for path, found in _sizes(storage, list(sizes)).items():
        wanted = sizes[path]
        if found is None:
            lost.append(FileLost(storage, path, "is missing"))
        elif wanted is not None and found != wanted:
            happened = f"is damaged: it has {found} bytes instead of {wanted}"
            lost.append(FileLost(storage, path, happened))
    return lost


@dataclass(frozen=True)
class RemoteScans:
    """The files that a remote engine scans for one piece of work, with their sizes, by table.

    If a file vanishes during the scan, the engine may read it as an empty one. So the commit of the
    work requires that all these files still exist.
    """

    scans: list[tuple[Storage, Mapping[str, int | None]]] = field(default_factory=list)

    def add(self, storage: Storage, sizes: Mapping[str, int | None]) -> None:
        """Remember the files of one scan."""
        self.scans.append((storage, dict(sizes)))


@contextmanager
def reading(storage: Storage, path: str) -> Iterator[None]:
    """Raise `FileLost` instead of Arrow's own error if a file can't be read."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileLost(storage, path, "is missing") from error
    except (OSError, pa.ArrowInvalid) as error:
        if _size(storage, path) is None:
            raise FileLost(storage, path, "is missing") from error
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise FileLost(storage, path, f"is damaged: {said}") from error


def validate_file(storage: Storage, path: str) -> None:
    """Raise `FileLost` unless every row of a Parquet file can be read."""
    with (
        reading(storage, path),
        storage.filesystem.open_input_file(f"{storage.path}/{path}") as opened,
    ):
        for _ in pq.ParquetFile(opened).iter_batches():
            pass


def _sizes(storage: Storage, paths: Sequence[str]) -> dict[str, int | None]:
    """The sizes of files by path; None for missing files."""
    if storage.has_folders or len(paths) <= _ASKED_ONE_BY_ONE:
        if storage.has_folders:
            infos = storage.filesystem.get_file_info([f"{storage.path}/{path}" for path in paths])
            return {path: _found(info) for path, info in zip(paths, infos, strict=True)}
        return dict(zip(paths, in_parallel(lambda path: _size(storage, path), paths), strict=True))
    listed = {info.path: info.size for info in storage.files(recursive=True)}
    return {path: listed.get(f"{storage.path}/{path}") for path in paths}


def _size(storage: Storage, path: str) -> int | None:
    return _found(storage.filesystem.get_file_info(f"{storage.path}/{path}"))


def _found(info: fs.FileInfo) -> int | None:
    return int(info.size) if info.type == fs.FileType.File else None


def sizes_unknown(paths: Iterable[str]) -> dict[str, int | None]:
    """These paths as files of unknown size."""
    return dict.fromkeys(paths)
