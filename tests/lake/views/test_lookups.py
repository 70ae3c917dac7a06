"""Looking up rows by value and by condition, in real Parquet files."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from springhouse.lake.delta.tables import DataFile
from springhouse.lake.storage.storage import Storage
from springhouse.lake.views.lookups import Sought, values_for
from springhouse.planner import placement

SCHEMA = pa.schema([("id", pa.int64()), ("word", pa.string())])


@pytest.fixture
def place(tmp_path: Path) -> Storage:
    return Storage.at(str(tmp_path))


def stored(place: Storage, name: str, rows: pa.Table) -> DataFile:
    path = Path(place.root) / name
    pq.write_table(rows, path)
    return DataFile(name, path.stat().st_size, rows.num_rows, {})


def numbers(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


def rows(*pairs: tuple[int | None, str]) -> pa.Table:
    ids, words = zip(*pairs, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "word": list(words)})


def test_rows_are_found_by_value_in_all_files(place: Storage) -> None:
    files = [
        stored(place, "a.parquet", rows((1, "a"), (2, "b"), (None, "none"))),
        stored(place, "b.parquet", rows((2, "c"), (9, "d"))),
    ]
    found = Sought({"id": numbers(2, 7)}).look_up(place, files, SCHEMA, ["word"])
    assert found is not None
    assert sorted(found["word"].to_pylist()) == ["b", "c"]
    found = Sought({"id": numbers(None, 9)}).look_up(place, files, SCHEMA, ["word"])
    assert found is not None
    assert sorted(found["word"].to_pylist()) == ["d", "none"]


def test_a_condition_may_ask_for_columns_that_are_not_wanted(place: Storage) -> None:
    files = [stored(place, "a.parquet", rows((1, "a"), (2, "b")))]
    sought = Sought({"id": numbers(1, 2)}, pc.field("word") == "b", frozenset({"word"}))
    assert sought.look_up(place, files, SCHEMA, ["id"]) == pa.table({"id": numbers(2)})


def test_nothing_is_sought_and_all_rows_are_found(place: Storage) -> None:
    files = [stored(place, "a.parquet", rows((1, "a"), (2, "b")))]
    found = Sought({}).look_up(place, files, SCHEMA, ["id"])
    assert found is not None
    assert found.num_rows == 2


def test_no_values_and_no_files_give_no_rows(place: Storage) -> None:
    files = [stored(place, "a.parquet", rows((1, "a")))]
    for sought, where in ((Sought({"id": numbers()}), files), (Sought({}), [])):
        found = sought.look_up(place, where, SCHEMA, ["id"])
        assert found is not None
        assert (found.num_rows, found.schema.names) == (0, ["id"])


def test_a_column_that_a_file_lacks_is_null(place: Storage) -> None:
    files = [stored(place, "a.parquet", pa.table({"id": numbers(1)}))]
    found = Sought({"id": numbers(1)}).look_up(place, files, SCHEMA, ["id", "word"])
    assert found is not None
    assert found["word"].to_pylist() == [None]


def test_files_that_are_otherwise_than_the_schema_says_are_left_to_spark(place: Storage) -> None:
    files = [stored(place, "a.parquet", pa.table({"id": ["one"], "word": ["a"]}))]
    assert Sought({"id": numbers(1)}).look_up(place, files, SCHEMA, ["id"]) is None


def test_too_many_rows_are_left_to_spark(place: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [stored(place, "a.parquet", rows((1, "a"), (1, "b")))]
    monkeypatch.setattr(placement, "GIVEN_ROWS", 1)
    assert Sought({"id": numbers(1)}).look_up(place, files, SCHEMA, ["id"]) is None


def test_a_large_table_is_looked_through_only_by_value() -> None:
    assert Sought({"id": numbers(1)}).is_worth_it(5_000_000)
    assert not Sought({"id": numbers(1)}).is_worth_it(50_000_000)
    assert Sought({}, pc.field("id") == 1).is_worth_it(500_000)
    assert not Sought({}, pc.field("id") == 1).is_worth_it(5_000_000)
    assert Sought({}).is_worth_it(1_000)
    assert not Sought({}).is_worth_it(500_000)


def chunked(kind: pa.DataType, *values: object) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


def test_values_are_those_of_all_sources_each_once() -> None:
    found = values_for(pa.int64(), [chunked(pa.int32(), 1, 2), chunked(pa.int64(), 2, None)])
    assert found is not None
    assert found.to_pylist() == [1, 2, None]


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        (pa.string(), chunked(pa.int64(), 1)),
        (pa.int64(), chunked(pa.string(), "1")),
        (pa.float64(), chunked(pa.float64(), 1.0)),
        (pa.int32(), chunked(pa.int64(), 2**40)),
        (pa.date32(), chunked(pa.timestamp("us"), None)),
        (pa.decimal128(9, 2), chunked(pa.decimal128(9, 3), Decimal("0.125"))),
        (pa.list_(pa.int64()), chunked(pa.list_(pa.int64()), [1])),
    ],
)
def test_values_that_only_spark_can_compare_are_not_used(
    kind: pa.DataType, source: pa.ChunkedArray
) -> None:
    assert values_for(kind, [source]) is None


def test_dates_and_decimals_of_one_kind_are_compared_here() -> None:
    assert values_for(pa.date32(), [chunked(pa.date32(), date(2026, 1, 1))]) is not None
    wide = chunked(pa.decimal128(12, 3), Decimal("1.500"))
    found = values_for(pa.decimal128(9, 2), [wide])
    assert found is not None
    assert found.to_pylist() == [Decimal("1.50")]
