"""The packs that wait on an edge: bounded, in order, and never lost."""

import pyarrow as pa
import pytest

from springhouse.flows.pack_queue import PackQueue


def pack(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"a": pa.array(values, pa.int64())})


def test_first_in_first_out_and_the_end_behind_the_last() -> None:
    queue = PackQueue(2)
    queue.put(pack(1), 8)
    queue.put(pack(2, 3), 16)
    queue.closed = True
    assert (len(queue), queue.rows, queue.size, queue.has_room) == (2, 3, 24, False)
    assert queue.take() == (pack(1), 8)
    assert queue.take() == (pack(2, 3), 16)
    assert queue.take() is None, "the end"
    assert (queue.rows, queue.size, queue.most) == (0, 0, 2)


def test_a_full_queue_takes_nothing_and_drops_nothing() -> None:
    queue = PackQueue(1)
    queue.put(pack(1), 8)
    with pytest.raises(AssertionError, match="nothing is dropped"):
        queue.put(pack(2), 8)
    assert queue.take() == (pack(1), 8)


def test_nothing_comes_after_the_end() -> None:
    queue = PackQueue(None)
    queue.closed = True
    with pytest.raises(AssertionError):
        queue.put(pack(1), 8)
