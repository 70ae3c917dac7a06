"""How are the files of one range read: by Spark, by Arrow, and named to people?

A format has to open each file to know its header or its footer. `grouped` opens many files at once,
and groups those with the same answer, which is nearly always all of them.
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
        """The whole path of a file, as a message shows it."""
        return f"{self.folder.root}/{path}"

    def grouped(self, look: Callable[[fs.FileSystem, str], _Answer]) -> "dict[_Answer, FileBatch]":
        """The files, grouped by the answer of a function that opens each of them."""
        filesystem, root = self.folder.filesystem, self.folder.path
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(pool.map(lambda path: look(filesystem, f"{root}/{path}"), self.paths))
        groups: dict[_Answer, list[str]] = {}
        for path, answer in zip(self.paths, answers, strict=True):
            groups.setdefault(answer, []).append(path)
        return {answer: FileBatch(self.folder, tuple(paths)) for answer, paths in groups.items()}


FILE = "_metadata.file_path"
"""Spark's column with the file that a row comes from."""


def origin(file: str = FILE) -> Column:
    """The path of the file in the column `file`, spelled as `FileBatch.full` spells it."""
    # Spark percent-encodes the path; a plus is a plus there, and a blank to `url_decode`.
    encoded = sf.replace(sf.col(file), sf.lit("+"), sf.lit("%2B"))
    return sf.regexp_replace(sf.url_decode(encoded), "^file:/+", "/")
