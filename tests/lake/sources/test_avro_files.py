"""The results of a task that reads Avro files: rows, and a reason for each bad record."""

from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

from springhouse.lake.sources.avro_files import AvroReadTask
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


def put(path: Path, fields: list[dict[str, Any]], *rows: dict[str, Any]) -> None:
    schema = {"type": "record", "name": "Row", "fields": fields}
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), rows)


def read(folder: Path, *paths: str, required: str = "id") -> list[dict[str, Any]]:
    reading = AvroReadTask(str(folder), COLUMNS, frozenset({required}))
    batches = reading.rows(iter([pa.record_batch({"path": list(paths)})]))
    return [row for batch in batches for row in batch.to_pylist()]


def test_columns_are_matched_by_name_and_may_be_missing(tmp_path: Path) -> None:
    put(
        tmp_path / "a",
        [{"name": "ID", "type": "int"}, {"name": "x", "type": "int"}],
        {"ID": 1, "x": 7},
    )
    put(
        tmp_path / "b",
        [{"name": "name", "type": "string"}, {"name": "id", "type": "long"}],
        {"id": 2, "name": "Jo"},
    )
    nothing = {BAD: None, RECORD: None, ORIGIN: None}
    assert read(tmp_path, "a", "b") == [
        {"id": 1, "name": None, **nothing},
        {"id": 2, "name": "Jo", **nothing},
    ]


def test_a_record_that_does_not_fit_says_why_and_the_others_are_rows(tmp_path: Path) -> None:
    either = [{"name": "id", "type": ["null", "long", "string"]}]
    put(tmp_path / "a", either, {"id": 1}, {"id": "x"}, {"id": None}, {"id": 4})
    told = [(row["id"], row[BAD], row[RECORD]) for row in read(tmp_path, "a")]
    assert told == [
        (1, None, None),
        (None, 'id: "x" is not int64', '{"id":"x"}'),
        (None, "id: missing", '{"id":null}'),
        (4, None, None),
    ]


def test_a_file_that_breaks_off_gives_what_comes_before(tmp_path: Path) -> None:
    put(tmp_path / "a", [{"name": "id", "type": "long"}], *({"id": n} for n in range(50_000)))
    whole = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b").write_text("this is not Avro")
    rows = read(tmp_path, "a", "b")
    good = [row["id"] for row in rows if row[BAD] is None]
    assert good == list(range(len(good)))
    assert 0 < len(good) < 50_000
    bad = [row for row in rows if row[BAD] is not None]
    assert [row[ORIGIN] for row in bad] == [f"{tmp_path}/a", f"{tmp_path}/b"]
    assert all(row[BAD].startswith("not readable as Avro from here on: ") for row in bad)
