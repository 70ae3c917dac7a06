"""How do production keys become surrogate keys (the primary flow of 000 section 7.1)?

Port 0 takes the known pairs of keys, and port 1 takes the rows. An unknown production key gets the
next number. The new pair leaves by port 1, so that the flow can write it to the known pairs. As in
SQL, all NaN are one key, and both zeros are one key.
"""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.flow_graph import Output
from springhouse.flows.sql.sort_order import with_one_zero

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
            values = map(_dictionary_key, pack.column(self._on).to_pylist())
            self._keys.update(zip(values, keys, strict=True))
            self._last = max([self._last, *(key for key in keys if key is not None)])
            return ()
        if not self._known_ended:
            self._early.append(pack)
            return ()
        return self._with_keys(pack)

    def end(self, port: int) -> Iterable[Output]:
        if port == ROWS:
            return ()
        self._known_ended = True
        early, self._early = self._early, []
        return (output for pack in early for output in self._with_keys(pack))

    def _with_keys(self, pack: pa.RecordBatch) -> list[Output]:
        # Python's loops run over the distinct values, not over all rows.
        encoded = pc.dictionary_encode(with_one_zero(pack.column(self._on)))
        values = encoded.dictionary.to_pylist()
        apart = [_dictionary_key(value) for value in values]
        new = [
            value
            for value, key in zip(values, apart, strict=True)
            if value is not None and key not in self._keys
        ]
        for value in new:
            self._last += 1
            self._keys[_dictionary_key(value)] = self._last
        numbers = pa.array([self._keys.get(key) for key in apart], pa.int64())
        keys = numbers.take(encoded.indices)
        outputs = [
            (0, pa.RecordBatch.from_arrays([*pack.columns, keys], schema=self._schema)),
        ]
        if new:
            kind = self._known_schema.field(self._on).type
            pairs = {self._on: pa.array(new, kind)}
            number = self._known_schema.field(self._key).type
            pairs[self._key] = pa.array(
                [self._keys[_dictionary_key(value)] for value in new], number
            )
            result = [pairs[name] for name in self._known_schema.names]
            outputs.append((1, pa.RecordBatch.from_arrays(result, schema=self._known_schema)))
        return outputs


def _dictionary_key(value: object) -> object:
    """The value as a key of a dictionary. NaN needs a substitute: it does not equal itself."""
    return "NaN" if value != value else value
