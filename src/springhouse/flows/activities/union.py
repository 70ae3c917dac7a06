"""How do the rows of several inputs become one stream? They leave in the order of arrival."""

from collections.abc import Iterable

import pyarrow as pa

from springhouse.flows.flow_graph import Output
from springhouse.flows.row_pack import with_schema


class Union:
    """Passes the packs of all inputs on by one port."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        return ((0, with_schema(self._schema, pack)),)

    def end(self, port: int) -> Iterable[Output]:
        return ()
