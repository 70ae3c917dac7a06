"""How are the files of one range reached: by Spark, by Arrow, and by name?

Some of a file can only be known by opening it: the header of a CSV file, the footer of a Parquet
file. `grouped` opens all files at once, and puts those together that answer the same, which is
nearly always all of them.
"""

from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from pyarrow import fs
from pyspark.sql import Column
from pyspark.sql import functions as sf

from springhouse.lake.delta.tables import no_glob
from springhouse.lake.storage.storage import Storage

_Answer = TypeVar("_Answer", bound=Hashable)

_AT_ONCE = 16


@dataclass(frozen=True)
class FileBatch:
    """Files in a folder, by their paths relative to it."""

    folder: Storage
    paths: tuple[str, ...]

    def for_spark(self) -> list[str]:
        """The paths as Spark's readers want them, escaped where a glob would take them."""
        return [no_glob(self.full(path)) for path in self.paths]

    def full(self, path: str) -> str:
        """The whole path of a file, for people."""
        return f"{self.folder.root}/{path}"

    def grouped(self, ask: Callable[[fs.FileSystem, str], _Answer]) -> "dict[_Answer, FileBatch]":
        """The files by what opening each of them answers."""
        filesystem, root = self.folder.filesystem, self.folder.path
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(pool.map(lambda path: ask(filesystem, f"{root}/{path}"), self.paths))
        groups: dict[_Answer, list[str]] = {}
        for path, given in zip(self.paths, answers, strict=True):
            groups.setdefault(given, []).append(path)
        return {given: FileBatch(self.folder, tuple(paths)) for given, paths in groups.items()}


FILE = "_metadata.file_path"
"""The file that a row of Spark's comes from, as Spark writes it."""


def origin(file: str = FILE) -> Column:
    """The path of a file that Spark names in the column `file`, as `FileBatch.full` gives it."""
    # Spark percent-encodes the path; a plus is a plus there, and a blank to `url_decode`.
    encoded = sf.replace(sf.col(file), sf.lit("+"), sf.lit("%2B"))
    return sf.regexp_replace(sf.url_decode(encoded), "^file:/+", "/")
