"""Where are the files of the warehouse, and how are they reached?

A warehouse lives under one root, a local folder, a bucket (`s3://`, see `lake/storage/s3.py`) or
any other URI that pyarrow has a file system for:

    tables/<name>/        one Delta table each, with `_changes/` and `_state/` inside
    files/<flow>/         the write-ahead log of a `read_files` source, a Delta table too
    streams/<flow>/       checkpoint and staged batches of a Structured Streaming flow
    sinks/<table>.<sink>/ how far a sink has got, a Delta table without rows
    warehouse/            a Delta table without rows, whose id is the id of the warehouse
    leases/<process>.json one file per process that writes now (`lake/storage/leases.py`)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyarrow import fs

from springhouse.errors import LakeError
from springhouse.lake.storage import s3
from springhouse.project.declarations import locations


@dataclass(frozen=True)
class Storage:
    """A folder, local or not; `root` is an absolute path or a URI with a scheme."""

    root: str

    @staticmethod
    def at(location: str, relative_to: Path | None = None) -> "Storage":
        """The storage at a path or URI, as a user writes it."""
        return Storage(locations.location(location, relative_to or Path.cwd()))

    def inside(self, *parts: str) -> "Storage":
        return Storage("/".join([self.root, *parts]))

    @property
    def name(self) -> str:
        """The last part of the path; for a table's folder, the table's name."""
        return self.root.rstrip("/").rpartition("/")[2]

    @cached_property
    def _opened(self) -> tuple[fs.FileSystem, str]:
        try:
            if self.root.startswith(s3.SCHEME):
                return s3.filesystem(), self.root.removeprefix(s3.SCHEME)
            opened, path = fs.FileSystem.from_uri(self.root)
        except (OSError, ValueError) as error:
            raise LakeError(f'the storage "{self.root}" can\'t be reached: {error}') from error
        return opened, path

    @property
    def delta_options(self) -> dict[str, str] | None:
        """The options that delta-rs needs to reach the storage."""
        return s3.delta_options() if self.root.startswith(s3.SCHEME) else None

    @property
    def has_folders(self) -> bool:
        """Whether a folder must exist before a file in it. A bucket has no folders."""
        return not self.root.startswith(s3.SCHEME)

    @property
    def filesystem(self) -> fs.FileSystem:
        return self._opened[0]

    @property
    def path(self) -> str:
        """The path of the root in its file system, without a scheme."""
        return self._opened[1]

    def exists(self) -> bool:
        return bool(self.filesystem.get_file_info(self.path).type != fs.FileType.NotFound)

    def make(self) -> None:
        if self.has_folders:
            self.filesystem.create_dir(self.path, recursive=True)

    def files(self, *, recursive: bool = False) -> list[fs.FileInfo]:
        """The files (not folders) in the storage, by path; empty if it does not exist."""
        selector = fs.FileSelector(self.path, allow_not_found=True, recursive=recursive)
        found = [i for i in self.filesystem.get_file_info(selector) if i.type == fs.FileType.File]
        return sorted(found, key=lambda info: str(info.path))

    def folders(self) -> list[str]:
        """The names of the folders directly in the storage."""
        selector = fs.FileSelector(self.path, allow_not_found=True)
        found = self.filesystem.get_file_info(selector)
        return sorted(info.base_name for info in found if info.type == fs.FileType.Directory)

    def read_text(self, name: str) -> str | None:
        """The text of a file in the storage; None if the file does not exist."""
        try:
            with self.filesystem.open_input_stream(f"{self.path}/{name}") as stream:
                return str(stream.read().decode())
        except FileNotFoundError:
            return None

    def entries(self, names: Sequence[str]) -> list[tuple[int, int] | None]:
        """Size and time (in nanoseconds) of files in the storage; None for a missing file."""
        found = self.filesystem.get_file_info([f"{self.path}/{name}" for name in names])
        return [
            (info.size or 0, info.mtime_ns or 0) if info.type == fs.FileType.File else None
            for info in found
        ]

    def modified(self, name: str) -> int | None:
        """When a file in the storage was written, in nanoseconds; None for a missing file."""
        found: int | None = self.filesystem.get_file_info(f"{self.path}/{name}").mtime_ns
        return found

    def remove(self) -> None:
        """Delete the storage with everything in it, if it exists."""
        if self.exists():
            self.filesystem.delete_dir(self.path)
