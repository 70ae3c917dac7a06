"""Production keys become surrogate keys (the primary flow of 000 section 7.1).

Port 0 are the pairs that are known, port 1 the rows. A key that is not known gets the next number,
and the new pair leaves by port 1, so that the flow can write it beside the known ones.
"""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.graph import Output

KNOWN, ROWS = 0, 1


class SurrogateKey:
    """Adds the column `key`, whose number stands for the value of `on`."""

    def __init__(self, known: pa.Schema, schema: pa.Schema, on: str, key: str) -> None:
        self._known_schema, self._schema, self._on, self._key = known, schema, on, key
        self._keys: dict[object, int] = {}
        self._last = 0
        self._known_ended = False
        self._early: list[pa.RecordBatch] = []

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        if port == KNOWN:
            keys = pack.column(self._key).to_pylist()
            self._keys.update(zip(pack.column(self._on).to_pylist(), keys, strict=True))
            self._last = max([self._last, *(key for key in keys if key is not None)])
            return ()
        if not self._known_ended:
            self._early.append(pack)
            return ()
        return self._keyed(pack)

    def end(self, port: int) -> Iterable[Output]:
        if port == ROWS:
            return ()
        self._known_ended = True
        early, self._early = self._early, []
        return (output for pack in early for output in self._keyed(pack))

    def _keyed(self, pack: pa.RecordBatch) -> list[Output]:
        # Each value once: the loop in Python is over new values, not over rows.
        encoded = pc.dictionary_encode(pack.column(self._on))
        values = encoded.dictionary.to_pylist()
        new = [value for value in values if value is not None and value not in self._keys]
        for value in new:
            self._last += 1
            self._keys[value] = self._last
        numbers = pa.array([self._keys.get(value) for value in values], pa.int64())
        keys = numbers.take(encoded.indices)
        outputs = [
            (0, pa.RecordBatch.from_arrays([*pack.columns, keys], schema=self._schema)),
        ]
        if new:
            kind = self._known_schema.field(self._on).type
            pairs = {self._on: pa.array(new, kind)}
            pairs[self._key] = pa.array([self._keys[value] for value in new], pa.int64())
            made = [pairs[name] for name in self._known_schema.names]
            outputs.append((1, pa.RecordBatch.from_arrays(made, schema=self._known_schema)))
        return outputs
