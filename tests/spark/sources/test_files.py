"""`read_files`: the same offsets give the same rows, and a record that does not fit is bad."""

import gzip
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from springhouse.errors import SchemaError, SourceError
from springhouse.lake.sources.read_files import ReadFiles
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD, Range, SourceContext

Put = Callable[..., Path]

NAMES = "id, amount, placed_at"
ORDERS = "id BIGINT, amount DECIMAL(12,2), placed_at TIMESTAMP"


def everything(source: ReadFiles, spark: SparkSession) -> DataFrame:
    return source.read(spark, {"0": Range(0, source.latest()["0"])})


def good(rows: DataFrame) -> list[tuple[Any, ...]]:
    kept = rows.where(f"{BAD} IS NULL").drop(BAD, RECORD, ORIGIN) if BAD in rows.columns else rows
    return sorted((tuple(row) for row in kept.collect()), key=repr)


def bad(rows: DataFrame) -> list[tuple[str, str]]:
    found = rows.where(f"{BAD} IS NOT NULL").select(BAD, RECORD).collect()
    return sorted(tuple(row) for row in found)


def write_parquet(path: Path, columns: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns)), path)


# --- offsets --------------------------------------------------------------------------------------


def test_the_same_range_gives_the_same_rows_after_a_restart(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/b.json", '{"id": 1}\n{"id": 2}\n')
    source = ReadFiles("data", context=context, format="json", schema="id BIGINT")
    assert source.latest() == {"0": 1}
    put("data/a.json", '{"id": 3}\n')
    assert source.latest() == {"0": 2}
    for reader in (source, ReadFiles("data", context=context, format="json", schema="id BIGINT")):
        assert good(reader.read(spark, {"0": Range(0, 1)})) == [(1,), (2,)]
        assert good(reader.read(spark, {"0": Range(1, 2)})) == [(3,)]
        assert good(reader.read(spark, {"0": Range(0, 2)})) == [(1,), (2,), (3,)]


def test_without_ranges_the_columns_are_there_and_no_rows(
    spark: SparkSession, context: SourceContext
) -> None:
    source = ReadFiles("data", context=context, format="json", schema="id BIGINT NOT NULL")
    rows = source.read(spark, {})
    assert rows.columns == ["id", BAD, RECORD, ORIGIN]
    assert rows.count() == 0


@pytest.mark.parametrize("change", ["grown", "touched", "gone"])
def test_a_file_that_changed_before_it_was_read_is_an_error_that_names_it(
    change: str, spark: SparkSession, context: SourceContext, put: Put
) -> None:
    path = put("data/a.json", '{"id": 1}\n')
    source = ReadFiles("data", context=context, format="json", schema="id BIGINT")
    source.latest()
    match change:
        case "grown":
            put("data/a.json", '{"id": 1}\n{"id": 2}\n')
        case "touched":
            os.utime(path, (5, 5))
        case _:
            path.unlink()
    with pytest.raises(SourceError) as raised:
        source.read(spark, {"0": Range(0, 1)})
    assert 'the file "a.json"' in raised.value.problem
    assert ("is gone" if change == "gone" else "has changed") in raised.value.problem
    assert raised.value.hint is not None


def test_a_file_may_go_once_it_was_read(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.json", '{"id": 1}\n').touch()
    source = ReadFiles("data", context=context, format="json", schema="id BIGINT")
    assert good(everything(source, spark)) == [(1,)]
    (context.folder / "data" / "a.json").unlink()
    put("data/b.json", '{"id": 2}\n')
    assert source.latest() == {"0": 2}
    assert good(source.read(spark, {"0": Range(1, 2)})) == [(2,)]


@pytest.mark.parametrize(
    "name", ["a b.json", "x[1].json", "p%41+q.json", "ü.json", "st*r?.json", "{z},#.json", "b\\s"]
)
def test_names_are_taken_as_they_are(
    name: str, spark: SparkSession, context: SourceContext, put: Put
) -> None:
    path = put(f"da ta/{name}", "no json\n")
    source = ReadFiles("da ta", context=context, format="json", schema="id BIGINT")
    rows = everything(source, spark).collect()
    assert [(row[RECORD], row[ORIGIN]) for row in rows] == [("no json", str(path))]


def test_a_bad_schema_is_an_error_before_anything_is_read(context: SourceContext) -> None:
    with pytest.raises(SourceError) as raised:
        ReadFiles("data", context=context, format="json", schema="id BIGINTEGER")
    assert 'expected a type, found "BIGINTEGER"' in raised.value.problem
    assert raised.value.hint == 'Did you mean "INTEGER"?'


# --- JSON -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("oops", "not a JSON object"),
        ('{"id": 1', "not a JSON object"),
        ('{"id": 1}{"id": 2}', "not a JSON object"),
        ('[{"id": 1}', "not a JSON object"),
        ('{"ID": 1, "Amount": 2}', f"none of its fields (ID, Amount) is in the schema ({NAMES})"),
        ("null", "not a JSON object"),
        ("5", "not a JSON object"),
        ('{"id": "x"}', "id: 'x' is not BIGINT"),
        ('{"id": 1, "amount": "abc"}', "amount: 'abc' is not DECIMAL(12,2)"),
        (
            '{"id": 1.5, "amount": 123456789012}',
            "id: '1.5' is not BIGINT; amount: '123456789012' is not DECIMAL(12,2)",
        ),
        ('{"id": 1, "placed_at": "yesterday"}', "placed_at: 'yesterday' is not TIMESTAMP"),
        ('{"id": "' + "x" * 99 + '"}', f"id: '{'x' * 60}…' is not BIGINT"),
    ],
)
def test_a_json_record_that_does_not_fit_says_why(
    record: str, reason: str, spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.json", f'{{"id": 7}}\n{record}\n')
    source = ReadFiles("data", context=context, format="json", schema=ORDERS)
    rows = everything(source, spark)
    assert bad(rows) == [(reason, record)]
    assert good(rows) == [(7, None, None)]


def test_json_records_are_lines_that_are_not_empty(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.json", '\n{"id": 1, "amount": 12.5, "unlisted": [1]}\r\n   \n{"amount": "3"}')
    (context.folder / "data" / "b.json.gz").write_bytes(gzip.compress(b'{"id": 2}\n'))
    source = ReadFiles(
        "data", context=context, format="json", schema="id BIGINT, amount DECIMAL(12,2)"
    )
    rows = everything(source, spark)
    assert good(rows) == [(1, Decimal("12.50")), (2, None), (None, Decimal("3.00"))]
    assert bad(rows) == []


def test_which_records_are_bad_does_not_depend_on_what_is_selected(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.json", '{"id": 1, "amount": "abc"}\n{"id": 2, "amount": 1}\n')
    source = ReadFiles("data", context=context, format="json", schema=ORDERS)
    rows = everything(source, spark)
    assert rows.where(f"{BAD} IS NULL").select("id").collect() == [(2,)]
    assert rows.where(f"{BAD} IS NOT NULL").selectExpr("struct(id)").count() == 1
    assert rows.where(f"{BAD} IS NOT NULL").count() == 1


def test_a_column_declared_not_null_has_to_be_there(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.json", '{"id": 1}\n{"note": "x"}\n{"id": null}\n')
    source = ReadFiles("data", context=context, format="json", schema="id BIGINT NOT NULL")
    rows = everything(source, spark)
    assert good(rows) == [(1,)]
    assert bad(rows) == [
        ("id: missing", '{"id": null}'),
        ("none of its fields (note) is in the schema (id)", '{"note": "x"}'),
    ]


def test_nested_misfits_are_bad_too(spark: SparkSession, context: SourceContext, put: Put) -> None:
    put("data/a.json", '{"who": {"id": 1}}\n{"who": {"id": "x"}}\n')
    source = ReadFiles("data", context=context, format="json", schema="who STRUCT<id: BIGINT>")
    rows = everything(source, spark)
    assert len(good(rows)) == 1
    assert bad(rows) == [("a nested field does not fit the schema", '{"who": {"id": "x"}}')]


def test_reader_options_are_passed_on(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.json", "{'day': '31.01.2026'} // a comment\n")
    source = ReadFiles(
        "data",
        context=context,
        format="json",
        schema="day DATE",
        dateFormat="dd.MM.yyyy",
        allowComments="true",
    )
    assert good(everything(source, spark)) == [(date(2026, 1, 31),)]


def test_a_multiline_document_is_an_object_or_an_array_of_them(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    exact = "12345678901234567.89"
    put("data/a.json", f'[\n {{"id": 1,\n  "price": {exact}}},\n {{"id": "x"}}, 5\n]\n')
    put("data/b.json", '{\n "id": 2\n}\n')
    put("data/c.json", '{"id": 3}\n{"id": 4}\n')
    source = ReadFiles(
        "data",
        context=context,
        format="json",
        multiLine="true",
        schema="id BIGINT, price DECIMAL(20,2)",
    )
    rows = everything(source, spark)
    assert good(rows) == [(1, Decimal(exact)), (2, None)]
    assert bad(rows) == [
        ("id: 'x' is not BIGINT", '{"id":"x"}'),
        ("not a JSON object", "5"),
        ("not a JSON object", '{"id": 3}\n{"id": 4}\n'),
    ]


def test_inferred_columns_keep_their_types_and_new_ones_are_added(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.json", '{"id": 1, "at": "2026-01-31T00:00:00Z"}\noops\n')
    source = ReadFiles("data", context=context, format="json")
    rows = everything(source, spark)
    assert rows.drop(BAD, RECORD, ORIGIN).dtypes == [("at", "string"), ("id", "bigint")]
    assert bad(rows) == [("not a JSON object", "oops")]
    assert json.loads(json.dumps(source.memory)) == source.memory

    put("data/b.json", '{"id": "two", "note": "new"}\n{"id": 3, "note": "new"}\n')
    again = ReadFiles("data", context=replace(context, memory=source.memory), format="json")
    again.latest()
    rows = again.read(spark, {"0": Range(1, 2)})
    assert good(rows) == [(None, 3, "new")]
    assert bad(rows) == [("id: 'two' is not BIGINT", '{"id": "two", "note": "new"}')]
    assert rows.drop(BAD, RECORD, ORIGIN).columns == ["at", "id", "note"]
    assert good(again.read(spark, {"0": Range(0, 1)})) == [("2026-01-31T00:00:00Z", 1, None)]


def test_a_range_without_one_good_record_has_no_columns_yet(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.json", "oops\n")
    source = ReadFiles("data", context=context, format="json")
    assert bad(everything(source, spark)) == [("not a JSON object", "oops")]


# --- CSV ------------------------------------------------------------------------------------------


def test_csv_columns_are_matched_by_name_file_by_file(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.csv", "id,amount,name\n1,2.5,Ann\n\n")
    put("data/b.csv", '\ufeffName,unlisted,ID\r\n"say ""hi"", you",x,2\r\n')
    put("data/c.csv", "")
    source = ReadFiles(
        "data",
        context=context,
        format="csv",
        header="true",
        schema="id BIGINT, name STRING, amount DECIMAL(12,2)",
    )
    rows = everything(source, spark)
    assert bad(rows) == []
    assert good(rows) == [(1, "Ann", Decimal("2.50")), (2, 'say "hi", you', None)]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("x,2.5", "id: 'x' is not BIGINT"),
        ("1,abc", "amount: 'abc' is not DECIMAL(12,2)"),
        ("1", "not a row of 2 columns"),
        ("1,2,3", "not a row of 2 columns"),
        (",2", "id: missing"),
    ],
)
@pytest.mark.parametrize("multiline", ["false", "true"])
def test_a_csv_record_that_does_not_fit_says_why(
    multiline: str, record: str, reason: str, spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.csv", f"id;amount\n7;1\n{record}\n".replace(";", ","))
    source = ReadFiles(
        "data",
        context=context,
        format="csv",
        header="true",
        multiline=multiline,
        schema="id BIGINT NOT NULL, amount DECIMAL(12,2)",
    )
    rows = everything(source, spark)
    assert bad(rows) == [(reason, record)]
    assert good(rows) == [(7, Decimal("1.00"))]
    assert rows.where(f"{BAD} IS NULL").select("id").collect() == [(7,)]


def test_csv_without_a_header_goes_by_position(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.csv", "# made by hand\n1|NA\n2|b\n")
    source = ReadFiles(
        "data",
        context=context,
        format="csv",
        delimiter="|",
        comment="#",
        nullValue="NA",
        schema="id BIGINT, name STRING",
    )
    assert good(everything(source, spark)) == [(1, None), (2, "b")]


def test_csv_fields_may_hold_line_breaks_and_other_encodings(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    path = put("data/a.csv")
    path.write_bytes('id,name\n1,"two\nlines, ""né"" "\n2,\n'.encode("latin-1"))
    source = ReadFiles(
        "data",
        context=context,
        format="csv",
        header="true",
        multiline="true",
        encoding="ISO-8859-1",
        schema="id BIGINT, name STRING",
    )
    rows = everything(source, spark)
    assert bad(rows) == []
    assert good(rows) == [(1, 'two\nlines, "né" '), (2, None)]
    # Only a bad record names its origin.
    assert {row[ORIGIN] for row in rows.select(ORIGIN).collect()} == {None}


def test_inferred_csv_columns_keep_their_types_and_new_ones_are_added(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("data/a.csv", "id,day\n1,2026-01-31\n")
    source = ReadFiles("data", context=context, format="csv", header="true")
    rows = everything(source, spark)
    assert rows.drop(BAD, RECORD, ORIGIN).dtypes == [("id", "bigint"), ("day", "date")]
    put("data/b.csv", "note,id\nx,3000000000\ny,z\n")
    source.latest()
    rows = source.read(spark, {"0": Range(1, 2)})
    assert good(rows) == [(3_000_000_000, None, "x")]
    assert bad(rows) == [("id: 'z' is not BIGINT", "y,z")]


# --- Parquet and text -----------------------------------------------------------------------------


def test_parquet_files_may_lack_columns_bring_new_ones_and_be_narrower(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    write_parquet(tmp_path / "data/a.parquet", {"id": pa.array([1], pa.int64())})
    source = ReadFiles("data", context=context, format="parquet")
    assert good(everything(source, spark)) == [(1,)]
    narrow = {"id": pa.array([2], pa.int32()), "note": ["x"]}
    write_parquet(tmp_path / "data/b.parquet", narrow)
    rows = everything(source, spark)
    assert good(rows) == [(1, None), (2, "x")]
    assert rows.drop(BAD, RECORD, ORIGIN).dtypes == [("id", "bigint"), ("note", "string")]


def test_a_parquet_column_of_another_type_is_an_error_that_names_file_and_types(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    write_parquet(tmp_path / "data/a.parquet", {"id": ["one"]})
    source = ReadFiles("data", context=context, format="parquet", schema="id BIGINT")
    with pytest.raises(SchemaError) as raised:
        everything(source, spark)
    assert raised.value.where == str(tmp_path / "data/a.parquet")
    for word in ('"id"', "BIGINT", "STRING"):
        assert word in raised.value.problem
    assert raised.value.hint is not None


def test_a_file_that_is_not_parquet_is_one_bad_record(
    spark: SparkSession, context: SourceContext, tmp_path: Path, put: Put
) -> None:
    write_parquet(tmp_path / "data/a.parquet", {"id": pa.array([1, None], pa.int64())})
    put("data/b.parquet", "not at all")
    put("data/c.parquet", "")
    source = ReadFiles("data", context=context, format="parquet", schema="id BIGINT NOT NULL")
    rows = everything(source, spark)
    assert good(rows) == [(1,)]
    marked = rows.where(f"{BAD} IS NOT NULL").select(ORIGIN, BAD).collect()
    folder = tmp_path / "data"
    assert [row[0] for row in sorted(marked)] == [
        str(folder / name) for name in ("a.parquet", "b.parquet", "c.parquet")
    ]
    assert [row[1].partition(":")[0] for row in sorted(marked)] == [
        "id",
        "not a Parquet file",
        "not a Parquet file",
    ]


def test_text_is_one_column_of_lines(spark: SparkSession, context: SourceContext, put: Put) -> None:
    put("data/a.txt", "one\n\ntwo\n")
    source = ReadFiles("data", context=context, format="text")
    rows = everything(source, spark)
    assert (rows.columns[0], good(rows)) == ("value", [("one",), ("two",)])
    nothing = ReadFiles("data", context=context, format="text").read(spark, {})
    assert ("value" in nothing.columns, nothing.count()) == (True, 0)
