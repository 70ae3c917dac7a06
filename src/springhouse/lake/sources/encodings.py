"""Is a file text in UTF-8, by its first bytes?

A file in UTF-16 or UTF-32 is not garbage, and taken for UTF-8 it may even look like records: every
other byte of it is NUL. So such a file is found before any of it is read as records. A byte order
mark tells; without one, NUL bytes do that are nearly all at even places, or nearly all at odd ones.
"""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE

from pyarrow import fs

from springhouse.lake.sources.batch import Batch

_FIRST_BYTES = 4096
# The mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (BOM_UTF32_LE, "UTF-32"),
    (BOM_UTF32_BE, "UTF-32"),
    (BOM_UTF16_LE, "UTF-16"),
    (BOM_UTF16_BE, "UTF-16"),
)


def readable(batch: Batch) -> tuple[Batch, list[tuple[str, str]]]:
    """The files that may be in UTF-8, and what is wrong with each of the others."""
    groups = batch.grouped(wrong_encoding)
    problems = [
        (problem, group.full(path))
        for problem, group in groups.items()
        if problem is not None
        for path in group.paths
    ]
    return groups.get(None, Batch(batch.folder, ())), problems


def wrong_encoding(filesystem: fs.FileSystem, path: str) -> str | None:
    """What is wrong with a file that is not in UTF-8; None for one that may be."""
    with filesystem.open_input_stream(path, compression="detect") as file:
        return told_by(file.read(_FIRST_BYTES))


def told_by(start: bytes) -> str | None:
    """The same for the first bytes of a file.

    >>> told_by("id,name".encode("utf-16-le"))
    'the file is in UTF-16, and not in UTF-8'
    >>> told_by(b"id,name")
    """
    found = _encoding(start)
    return f"the file is in {found}, and not in UTF-8" if found else None


def _encoding(start: bytes) -> str | None:
    for mark, name in _MARKS:
        if start.startswith(mark):
            return name
    nulls = start.count(0)
    if nulls * 8 < len(start) or not nulls:
        return None
    if nulls * 3 > len(start) * 2:
        return "UTF-32"
    even = start[::2].count(0)
    return "UTF-16" if max(even, nulls - even) * 10 >= nulls * 9 else None
