"""Rows of several inputs become one stream, in whatever order they come."""

from collections.abc import Iterable

import pyarrow as pa

from springhouse.flows.graph import Output


class Union:
    """Everything that comes, from everywhere, by one port."""

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        return ((0, pack),)

    def end(self, port: int) -> Iterable[Output]:
        return ()
