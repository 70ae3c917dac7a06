"""How is a table divided into portions that tasks read by themselves?"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import WriterProperties, write_deltalake

import springhouse
from springhouse.errors import LakeError
from springhouse.flows.declare import Draft
from springhouse.flows.flow_settings import Settings
from springhouse.flows.stages import divide_into_stages
from springhouse.lake.flows import portions as cutting
from springhouse.lake.flows.portions import Portion, TableSource, rows_in
from springhouse.lake.flows.task import StageTask


def numbers(*given: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(given, pa.int64())})


def read(source: TableSource, *chosen: int) -> list[dict[str, object]]:
    batches = list(rows_in(source.portions(), [numbers(*chosen)], source.schema))
    return pa.Table.from_batches(batches, source.schema).to_pylist()


def test_a_small_file_is_one_portion(tmp_path: Path) -> None:
    for start in (0, 10):
        rows = pa.table({"n": range(start, start + 3)})
        write_deltalake(str(tmp_path), rows, mode="append")
    source = TableSource(str(tmp_path))
    assert source.is_plain
    assert source.portions() == tuple(Portion(file) for file in source.files)
    assert sorted(row["n"] for row in read(source, 0, 1)) == [0, 1, 2, 10, 11, 12]
    assert len(read(source, 1)) == 3


def test_a_large_file_is_read_by_its_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_groups = WriterProperties(max_row_group_size=100)
    rows = pa.table({"n": range(1000)})
    write_deltalake(str(tmp_path), rows, writer_properties=small_groups)
    (file,) = TableSource(str(tmp_path)).files
    groups = pq.read_metadata(file)
    assert groups.num_row_groups == 10
    monkeypatch.setattr(cutting, "PORTION_BYTES", 3 * groups.row_group(0).total_byte_size)
    source = TableSource(str(tmp_path))
    made = source.portions()
    assert [portion.groups for portion in made] == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9,)]
    assert [row["n"] for row in read(source, 1)] == list(range(300, 600))
    assert [row["n"] for row in read(source, *range(len(made)))] == list(range(1000))


def test_of_many_files_none_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "PORTION_BYTES", 1)
    monkeypatch.setattr(cutting, "MOST_FOOTERS", 1)
    for _ in range(2):
        write_deltalake(str(tmp_path), pa.table({"n": [1]}), mode="append")
    assert [portion.groups for portion in TableSource(str(tmp_path)).portions()] == [None, None]


def test_a_column_that_came_later_is_null_in_old_files(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"n": [1]}))
    later = pa.table({"late": ["x"], "n": [2]})
    write_deltalake(str(tmp_path), later, mode="append", schema_mode="merge")
    found = sorted(read(TableSource(str(tmp_path)), 0, 1), key=lambda row: str(row["n"]))
    assert found == [{"n": 1, "late": None}, {"n": 2, "late": "x"}]


def test_partitioned_and_nested_tables_are_left_to_spark(tmp_path: Path) -> None:
    rows = pa.table({"kind": ["a"], "n": [1]})
    write_deltalake(str(tmp_path / "parted"), rows, partition_by=["kind"])
    nested = pa.table({"both": [{"a": 1}]})
    write_deltalake(str(tmp_path / "nested"), nested)
    assert not TableSource(str(tmp_path / "parted")).is_plain
    assert not TableSource(str(tmp_path / "nested")).is_plain


def test_a_folder_without_a_table(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="there is no Delta table to read"):
        TableSource(str(tmp_path / "none"))


@springhouse.flow
def looked_up(flow: Draft) -> None:
    rows = flow.read("rows").lookup(flow.read("names"), on="kind", take="name")
    low, high = rows.split("n < 400")
    low.write("low")
    high.write("high")


def test_a_task_reads_its_portions_and_the_tables_that_it_holds(tmp_path: Path) -> None:
    for start in (0, 500):
        rows = pa.table({"n": range(start, start + 500), "kind": [n % 2 for n in range(500)]})
        write_deltalake(str(tmp_path / "rows"), rows, mode="append")
    write_deltalake(str(tmp_path / "names"), pa.table({"kind": [0, 1], "name": ["even", "odd"]}))
    given, held = (TableSource(str(tmp_path / name)) for name in ("rows", "names"))
    (stage,) = divide_into_stages(looked_up.graph({"rows": given.schema, "names": held.schema}))
    places = {name: str(tmp_path / name) for name in stage.targets}
    settings = Settings(pack_bytes=500, queue_packs=2)
    task = StageTask(stage, places, {"names": held.files}, settings, given.portions())
    found: dict[str, list[int]] = {"low": [], "high": []}
    for number in range(2):
        for report in task([numbers(number)]):
            for row in report.to_pylist():
                if row["kind"] == "files":
                    for add in json.loads(row["told"]):
                        written = pq.read_table(tmp_path / row["name"] / add["path"])
                        found[row["name"]] += written["n"].to_pylist()
                        for n, name in zip(written["n"], written["name"], strict=True):
                            assert name.as_py() == ("odd" if n.as_py() % 2 else "even")
    assert sorted(found["low"]) == list(range(400))
    assert sorted(found["high"]) == list(range(400, 1000))
