"""Which files of a table have to be rewritten when some of its keys change?

A table that is updated in place is split into buckets by the hash of its key. The number of buckets
is a power of two. The path of a file names its bucket (`buckets-8/springhouse_bucket=3/…`), so the
paths alone show which files a change can touch. Small tables have one bucket. If a table outgrows
its buckets, the next change splits it again and rewrites all of it, once per doubling.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from springhouse.lake.delta.tables import DataFile, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column

COLUMN = "springhouse_bucket"
ROWS_PER_BUCKET = 250_000

_PATH = re.compile(r"^buckets-(\d+)/(?:.*/)?springhouse_bucket=(\d+)/")


def count_for(rows: int) -> int:
    """How many buckets a table with this number of rows should have.

    >>> count_for(0), count_for(250_001), count_for(1_000_000)
    (1, 2, 4)
    """
    count = 1
    while count * ROWS_PER_BUCKET < rows:
        count *= 2
    return count


def count_of(files: Sequence[DataFile]) -> int | None:
    """How many buckets the files are split into; None if not split, or not all in the same way."""
    found = {_split(file.path) for file in files}
    counts = {split[0] if split else None for split in found}
    return counts.pop() if len(counts) == 1 else None


def in_buckets(files: Iterable[DataFile], buckets: Iterable[int]) -> list[DataFile]:
    """The files whose bucket is one of `buckets`."""
    wanted = set(buckets)
    chosen = []
    for file in files:
        split = _split(file.path)
        if split is None or split[1] in wanted:
            chosen.append(file)
    return chosen


def bucket_column(keys: Sequence[str], count: int) -> "Column":
    """The bucket of a row, by the hash of its key."""
    return sf.pmod(sf.xxhash64(*(sf.col(quoted(key)) for key in keys)), sf.lit(count)).cast("int")


def folder(count: int, bucket: int | None = None) -> str:
    """The folder of a bucket's files inside the table."""
    return f"buckets-{count}" if bucket is None else f"buckets-{count}/{COLUMN}={bucket}"


def _split(path: str) -> tuple[int, int] | None:
    found = _PATH.match(path)
    return (int(found[1]), int(found[2])) if found else None
