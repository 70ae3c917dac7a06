"""Can a file be read as text, and is the text in UTF-8?

A file in UTF-16 or UTF-32 may look like records in UTF-8 with NUL bytes between the characters. So
such a file is recognised before it is read as records: by its byte order mark, or else by NUL bytes
that are nearly all at even positions, or nearly all at odd ones.

A compressed file that was cut off, or is not compressed at all, makes Spark's reader fail for all
other files, too. So each compressed file is decompressed once as a test.
"""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE

from pyarrow import fs

from springhouse.lake.sources.file_batch import FileBatch

_FIRST_BYTES = 4096
# The mark of UTF-32 begins with the mark of UTF-16.
_MARKS = (
    (BOM_UTF32_LE, "UTF-32"),
    (BOM_UTF32_BE, "UTF-32"),
    (BOM_UTF16_LE, "UTF-16"),
    (BOM_UTF16_BE, "UTF-16"),
)


COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
"""The ends of the names of files that Arrow and Spark's readers decompress."""

_CHUNK_BYTES = 2**20


def readable(batch: FileBatch) -> tuple[FileBatch, list[tuple[str, str]]]:
    """The files that may be in UTF-8, and (problem, file) for each of the others."""
    groups = batch.grouped(file_problem)
    problems = [
        (problem, group.full(path))
        for problem, group in groups.items()
        if problem is not None
        for path in group.paths
    ]
    return groups.get(None, FileBatch(batch.folder, ())), problems


def file_problem(filesystem: fs.FileSystem, path: str) -> str | None:
    """Why a file can't be read as UTF-8; None if it may be UTF-8."""
    damage = compression_problem(filesystem, path)
    if damage is not None:
        return damage
    with filesystem.open_input_stream(path, compression="detect") as file:
        return encoding_problem(file.read(_FIRST_BYTES))


def compression_problem(filesystem: fs.FileSystem, path: str) -> str | None:
    """Why a compressed file can't be decompressed; None if it can, or is not compressed."""
    if not path.lower().endswith(COMPRESSED):
        return None
    try:
        _read_through(filesystem, path, "detect")
    except OSError as error:
        # If the store does not answer, reading without decompression fails, too: no damage.
        _read_through(filesystem, path, None)
        return f"the file can't be decompressed: {error}"
    return None


def _read_through(filesystem: fs.FileSystem, path: str, compression: str | None) -> None:
    with filesystem.open_input_stream(path, compression=compression) as file:
        while file.read(_CHUNK_BYTES):
            pass


def encoding_problem(start: bytes) -> str | None:
    """Why a file with these first bytes is not in UTF-8; None if it may be.

    >>> encoding_problem("id,name".encode("utf-16-le"))
    'the file is in UTF-16, and not in UTF-8'
    >>> encoding_problem(b"id,name")
    """
    encoding = _encoding(start)
    return f"the file is in {encoding}, and not in UTF-8" if encoding else None


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
