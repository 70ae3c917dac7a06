"""How are several files read or written at once?

By threads: Arrow releases Python's lock while it reads and writes Parquet files.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_WORKERS = ThreadPoolExecutor(os.cpu_count() or 2, "springhouse-files")


def in_parallel(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """The results of `work` for all items, in their order."""
    return list(_WORKERS.map(work, items)) if len(items) > 1 else [work(each) for each in items]
