"""What do the files that a flow writes look like?"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from springhouse.lake.flows.parquet_sink import ParquetSink, worth_a_dictionary

ROWS = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "kind": pa.array([n % 3 for n in range(1000)], pa.int32()),
        "name": pa.array([f"customer {n % 10}" for n in range(1000)]),
        "empty": pa.nulls(1000, pa.float64()),
    }
)


def test_only_columns_whose_values_repeat_have_a_dictionary(tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path), ROWS.schema)
    for pack in ROWS.to_batches(max_chunksize=300):
        sink.write(pack)
    sink.close()
    (add,) = sink.adds
    written = pq.ParquetFile(tmp_path / add["path"])
    assert written.read() == ROWS
    group = written.metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert {name for name, column in columns.items() if column.has_dictionary_page} == {
        "kind",
        "name",
        "empty",
    }
    bounds = json.loads(add["stats"])
    assert (bounds["minValues"]["id"], bounds["maxValues"]["id"]) == (0, 999)


def test_dates_that_python_does_not_know_have_no_bounds(tmp_path: Path) -> None:
    far = {"day": pa.array([3_000_000, None], pa.int32()).cast(pa.date32()), "n": [1, 2]}
    far["at"] = pa.array([-(10**17), 0], pa.int64()).cast(pa.timestamp("us", "UTC"))
    rows = pa.table(far)
    sink = ParquetSink(str(tmp_path), rows.schema)
    for pack in rows.to_batches():
        sink.write(pack)
    sink.close()
    (add,) = sink.adds
    told = json.loads(add["stats"])
    assert (told["numRecords"], told["minValues"]) == (2, {"n": 1})
    assert told["nullCount"] == {"day": 1, "n": 0, "at": 0}


def test_nested_columns_are_written_as_arrow_likes_to() -> None:
    assert worth_a_dictionary(pa.table({"n": [1, 2], "both": [{"a": 1}, {"a": 2}]})) is True
