"""Can a file be read as text, and is the text in UTF-8?

A file in UTF-16 or UTF-32 is not garbage, and taken for UTF-8 it may even look like records: every
other byte of it is NUL. So such a file is found before any of it is read as records. A byte order
mark tells; without one, NUL bytes do that are nearly all at even places, or nearly all at odd ones.

A compressed file that was cut off, or is not compressed at all, fails Spark's reader, and with it
all other files. So a compressed file is decompressed once, to see that it can be.
"""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE

from pyarrow import fs

from springhouse.lake.sources.file_batch import FileBatch

_FIRST_BYTES = 4096
# The mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (BOM_UTF32_LE, "UTF-32"),
    (BOM_UTF32_BE, "UTF-32"),
    (BOM_UTF16_LE, "UTF-16"),
    (BOM_UTF16_BE, "UTF-16"),
)


COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
"""How the names of files end that Arrow decompresses, as Spark's readers do."""

_CHUNK_BYTES = 2**20


def readable(batch: FileBatch) -> tuple[FileBatch, list[tuple[str, str]]]:
    """The files that may be in UTF-8, and what is wrong with each of the others."""
    groups = batch.grouped(problem_of)
    problems = [
        (problem, group.full(path))
        for problem, group in groups.items()
        if problem is not None
        for path in group.paths
    ]
    return groups.get(None, FileBatch(batch.folder, ())), problems


def problem_of(filesystem: fs.FileSystem, path: str) -> str | None:
    """What keeps a file from being read as UTF-8; None for one that may be."""
    damage = damage_of(filesystem, path)
    if damage is not None:
        return damage
    with filesystem.open_input_stream(path, compression="detect") as file:
        return told_by(file.read(_FIRST_BYTES))


def damage_of(filesystem: fs.FileSystem, path: str) -> str | None:
    """What keeps a compressed file from being decompressed; None if nothing does."""
    if not path.lower().endswith(COMPRESSED):
        return None
    try:
        _read_through(filesystem, path, "detect")
    except OSError as error:
        # A store that does not answer is no damage: the same happens with the bytes as they are.
        _read_through(filesystem, path, None)
        return f"the file can't be decompressed: {error}"
    return None


def _read_through(filesystem: fs.FileSystem, path: str, compression: str | None) -> None:
    with filesystem.open_input_stream(path, compression=compression) as file:
        while file.read(_CHUNK_BYTES):
            pass


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
