"""Files and values that do not fit: the rows are right, or the quarantine gives the reason.

Every test reads its data in two ways. Spark's functions parse the records, or this process splits
them, as it does for servers whose functions cannot tell bad records from good ones.
"""

import bz2
import gzip
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from springhouse.lake.sources import client_records
from springhouse.lake.sources.read_files import ReadFiles
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD, Range, SourceContext

Put = Callable[[str, bytes | str], Path]
SCHEMA = "id BIGINT, note STRING"
STRANGE = "none of the columns of the file ({}) is in the schema (id, note)"


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture(params=["by Spark", "by the client"])
def read(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    context: SourceContext,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., list[Any]]:
    """Read all of `data`: good rows as tuples, and (reason, record, file's name) of bad ones."""
    if request.param == "by the client":
        # The code asks the server for its abilities; Sail gives this answer.
        monkeypatch.setattr(client_records, "is_needed", lambda session: True)

    def everything(**options: str) -> list[Any]:
        source = ReadFiles("data", context=context, **{"schema": SCHEMA, **options})
        ranges = {"0": Range(0, source.latest()["0"])}
        found = told(source.read(spark, ranges))
        glanced = told(source.glance(spark, ranges))
        assert [row for row in found if len(row) == 2] == [r for r in glanced if len(r) == 2]
        assert len(found) == len(glanced)
        return found

    return everything


def told(rows: DataFrame) -> list[Any]:
    marked = [*rows.columns[-3:]] == [BAD, RECORD, ORIGIN]
    found = rows.toArrow().to_pylist()
    return sorted(
        (
            (row[BAD], row[RECORD], row[ORIGIN].rpartition("/")[2])
            if marked and row[BAD] is not None
            else tuple(value for name, value in row.items() if name not in (BAD, RECORD, ORIGIN))
            for row in found
        ),
        key=repr,
    )


CSV_FILES: Mapping[str, tuple[bytes | str, list[Any]]] = {
    "semicolons": ("id;note\n1;x\n", [(STRANGE.format("id;note"), None, "a.csv")]),
    "no header": ("1,x\n2,y\n", [(STRANGE.format("1,x"), None, "a.csv")]),
    "another table": ("key,text\n1,x\n", [(STRANGE.format("key,text"), None, "a.csv")]),
    "a column twice": (
        "id,note,ID\n1,x,2\n",
        [('the header of the file has the column "id" twice', None, "a.csv")],
    ),
    "case and blanks": (" ID , Note\n1,x\n", [(1, "x")]),
    "UTF-8 with a mark": (b"\xef\xbb\xbfid,note\n1,x\n", [(1, "x")]),
    "UTF-16 with a mark": (
        "id,note\n1,x\n".encode("utf-16"),
        [("the file is in UTF-16, and not in UTF-8", None, "a.csv")],
    ),
    "UTF-16 without": (
        "id,note\n1,x\n".encode("utf-16-be"),
        [("the file is in UTF-16, and not in UTF-8", None, "a.csv")],
    ),
    "line breaks in quotes": (
        'id,note\n1,"a\nb"\n2,"say ""hi""\n\n3,x\nagain"\n4,y\n',
        [(1, "a\nb"), (2, 'say "hi"\n\n3,x\nagain'), (4, "y")],
    ),
    "bytes that are no text": (
        b"id,note\n1,x\n2,caf\xe9\n",
        [
            (1, "x"),
            ("not UTF-8: some of its bytes are no text in this encoding", "2,caf�", "a.csv"),
        ],
    ),
}


@pytest.mark.parametrize("name", CSV_FILES)
def test_a_csv_file_is_right_or_set_aside_as_a_file(
    name: str, put: Put, read: Callable[..., list[Any]]
) -> None:
    content, expected = CSV_FILES[name]
    put("a.csv", content)
    put("b.csv", "note,id\nz,9\n")
    assert read(format="csv", header="true") == sorted([*expected, (9, "z")], key=repr)


OPEN_QUOTES = {
    "in the middle": 'id,note\n1,x\n2,"a,3\n4,y\n',
    "in the last line": 'id,note\n1,x\n2,"a',
    "closed in a later record": 'id,note\n1,x\n2,"a\n3,"b"\n4,y\n',
}


@pytest.mark.parametrize("name", OPEN_QUOTES)
def test_a_quote_that_never_ends_swallows_no_record(
    name: str, put: Put, read: Callable[..., list[Any]]
) -> None:
    put("a.csv", OPEN_QUOTES[name])
    put("b.csv", 'id,note\n8,5" pipe\n9,"z\nz"\n')
    assert read(format="csv", header="true") == [
        ("a quoted field that begins in line 3 never ends", None, "a.csv"),
        (8, '5" pipe'),
        (9, "z\nz"),
    ]


@pytest.mark.parametrize(("form", "content"), [("csv", "id,note\n1,x\n"), ("json", '{"id":1}\n')])
@pytest.mark.parametrize("extension", ["gz", "bz2"])
def test_a_damaged_compressed_file_is_one_bad_file(
    form: str, content: str, extension: str, put: Put, read: Callable[..., list[Any]]
) -> None:
    compress = {"gz": gzip.compress, "bz2": bz2.compress}[extension]
    # The text must not compress well. Otherwise the damage is within the first bytes of the file.
    long = content + "".join(sha256(str(n).encode()).hexdigest() for n in range(1000))
    put(f"cut.{form}.{extension}", compress(long.encode())[:-2000])
    put(f"plain.{form}.{extension}", content)
    put(f"whole.{form}.{extension}", compress(content.encode()))
    found = read(format=form, header="true") if form == "csv" else read(format=form)
    assert [row for row in found if len(row) == 2] == [(1, "x" if form == "csv" else None)]
    bad = [(row[0].partition(":")[0], row[1], row[2]) for row in found if len(row) == 3]
    told = "the file can't be decompressed"
    assert bad == [(told, None, f"{name}.{form}.{extension}") for name in ("cut", "plain")]


SEPARATORS = {
    "||": ("||", 'id||note\n1||x\n2||"a||b"\n3||"c\n||d"\n'),
    r"\t": ("tab", 'id\tnote\n1\tx\n2\t"a||b"\n3\t"c\n||d"\n'),
}


@pytest.mark.parametrize("separator", SEPARATORS)
def test_csv_with_a_separator_of_several_characters(
    separator: str, put: Put, read: Callable[..., list[Any]]
) -> None:
    put("a.csv", SEPARATORS[separator][1])
    expected = [(1, "x"), (2, "a||b"), (3, "c\n||d")]
    assert read(format="csv", header="true", delimiter=separator) == expected


ENCODED = ("iso-8859-1", "utf-16", "utf-16le", "utf-16be", "utf-32", "utf-8")


@pytest.mark.parametrize("encoding", ENCODED)
def test_csv_in_another_encoding_is_read_to_the_last_character(
    encoding: str, spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("a.csv", 'id,note\n1,é\n2,"a\nb"\n3,z'.encode(encoding))
    told_of_it = {"format": "csv", "schema": SCHEMA, "header": "true", "encoding": encoding}
    source = ReadFiles("data", context=context, **told_of_it)
    rows = source.read(spark, {"0": Range(0, source.latest()["0"])})
    assert told(rows) == [(1, "é"), (2, "a\nb"), (3, "z")]


def test_bytes_that_are_no_text_in_the_given_encoding_are_bad(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("a.csv", b"id,note\n1,x\n2,\xe9\n")
    for encoding in ("utf-8", "us-ascii"):
        told_of_it = {"format": "csv", "schema": SCHEMA, "header": "true", "encoding": encoding}
        source = ReadFiles("data", context=context, **told_of_it)
        rows = source.read(spark, {"0": Range(0, source.latest()["0"])})
        reason = f"not {encoding.upper()}: some of its bytes are no text in this encoding"
        assert told(rows) == [(reason, "2,�", "a.csv"), (1, "x")]


def test_csv_without_a_header_in_another_encoding_is_one_bad_file(
    put: Put, read: Callable[..., list[Any]]
) -> None:
    put("a.csv", "1,x\n2,y\n".encode("utf-16-le"))
    expected = [("the file is in UTF-16, and not in UTF-8", None, "a.csv")]
    assert read(format="csv", schema="id STRING, note STRING") == expected


def test_json_in_another_encoding_is_one_bad_file(put: Put, read: Callable[..., list[Any]]) -> None:
    for number, encoding in enumerate(["utf-16", "utf-16-le", "utf-32"]):
        put(f"{number}.json", '{"id": 1, "note": "x"}\n'.encode(encoding))
    put("9.json", b'\xef\xbb\xbf{"id": 1, "note": "caf\xe9"}\n{"id": 2, "note": "y"}\n')
    utf8 = "not UTF-8: some of its bytes are no text in this encoding"
    assert read(format="json") == [
        (utf8, '{"id": 1, "note": "caf�"}', "9.json"),
        ("the file is in UTF-16, and not in UTF-8", None, "0.json"),
        ("the file is in UTF-16, and not in UTF-8", None, "1.json"),
        ("the file is in UTF-32, and not in UTF-8", None, "2.json"),
        (2, "y"),
    ]


def test_an_array_of_json_is_as_many_records_as_it_has_elements(
    put: Put, read: Callable[..., list[Any]]
) -> None:
    put("a.json", '[{"id":1},{"id":2,"note":"x"}]\n [ 5, {"id":"x"} ]\n[]\n{"id":3}\n')
    assert read(format="json") == [
        ("id: 'x' is not BIGINT", '{"id":"x"}', "a.json"),
        ("not a JSON object", "5", "a.json"),
        (1, None),
        (2, "x"),
        (3, None),
    ]


NUMBERS = (
    *(
        "1",
        "-0.0",
        "1.10",
        "1e5",
        "-1.5E-3",
        "1e400",
        "12345678901234567890.12345678901234567890123",
    ),
    *("123456789012345678901234567890123456789012345", "1.23456789012345678901e20", "0"),
    *(
        "0.1234567890123456789012345678901234567",
        '"1 and -2.5"',
        '"\\"1\\" 2"',
        "01",
        "-",
    ),
)
"""What differs by its digits between a record of its own and an element of an array."""


@pytest.mark.parametrize("kind", ["STRING", "DOUBLE", "DECIMAL(38,2)", "DECIMAL(38,37)", "BIGINT"])
def test_an_element_of_an_array_is_what_it_is_as_a_record(
    kind: str, put: Put, read: Callable[..., list[Any]]
) -> None:
    lines = [f'{{"id":{n},"note":{text}}}\n' for n, text in enumerate(NUMBERS)]
    lines += [f'[{{"id":{n},"note":{text}}}]\n' for n, text in enumerate(NUMBERS, 100)]
    put("a.json", "".join(lines))
    schema = f"id BIGINT, note {kind}"
    found = dict(row for row in read(format="json", schema=schema) if len(row) == 2)
    alone = {number: value for number, value in found.items() if number < 100}
    in_arrays = {number - 100: value for number, value in found.items() if number >= 100}
    assert repr(sorted(alone.items())) == repr(sorted(in_arrays.items()))
    assert len(alone) >= 2


def test_a_json_record_of_thirty_megabytes(put: Put, read: Callable[..., list[Any]]) -> None:
    put("a.json", '{"id": 1, "note": "' + "x" * 30_000_000 + '"}\n{"id": 2, "note": "y"}\n')
    ((first, long), second) = read(format="json")
    assert (first, long == "x" * 30_000_000, second) == (1, True, (2, "y"))


def test_multiline_json_may_begin_with_a_byte_order_mark(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("a.json", b'\xef\xbb\xbf[{"id": 1,\n "note": "x"},\n {"id": 2}]\n')
    source = ReadFiles("data", context=context, format="json", schema=SCHEMA, multiline="true")
    rows = source.read(spark, {"0": Range(0, source.latest()["0"])})
    assert told(rows) == [(1, "x"), (2, None)]


def test_text_that_is_not_utf8_is_bad(
    spark: SparkSession, context: SourceContext, put: Put
) -> None:
    put("a.txt", b"one\ncaf\xe9\n")
    put("b.txt", "two\n".encode("utf-16"))
    source = ReadFiles("data", context=context, format="text")
    rows = source.read(spark, {"0": Range(0, source.latest()["0"])})
    assert told(rows) == [
        ("not UTF-8: some of its bytes are no text in this encoding", "caf�", "a.txt"),
        ("one",),
        ("the file is in UTF-16, and not in UTF-8", None, "b.txt"),
    ]


def test_parquet_and_avro_with_other_columns_are_bad_files(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"key": [1], "text": ["x"]}), tmp_path / "data" / "a.parquet")
    pq.write_table(pa.table({"ID": [1]}), tmp_path / "data" / "b.parquet")
    fields = [{"name": "key", "type": "long"}, {"name": "text", "type": "string"}]
    schema = fastavro.parse_schema({"type": "record", "name": "Other", "fields": fields})
    with (tmp_path / "data" / "a.avro").open("wb") as file:
        fastavro.writer(file, schema, [{"key": 1, "text": "x"}, {"key": 2, "text": "y"}])
    for form, expected in (("parquet", [(1, None)]), ("avro", [])):
        source = ReadFiles(f"data/*.{form}", context=context, format=form, schema=SCHEMA)
        rows = source.read(spark, {"0": Range(0, source.latest()["0"])})
        aside = (STRANGE.format("key, text"), None, f"a.{form}")
        assert told(rows) == sorted([aside, *expected], key=repr)
        context.storage.remove()


def test_avro_values_that_arrow_would_change_are_bad(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    moment = {"type": "long", "logicalType": "timestamp-micros"}
    fields = [
        {"name": "small", "type": ["null", "double"]},
        {"name": "share", "type": ["null", "double"]},
        {"name": "day", "type": ["null", moment]},
        {"name": "at", "type": ["null", "long"]},
    ]
    schema = fastavro.parse_schema({"type": "record", "name": "Order", "fields": fields})
    nothing = dict.fromkeys(("small", "share", "day", "at"))
    given = [
        {**nothing, "small": 1.5},
        {**nothing, "small": 2.0},
        {**nothing, "small": 128.0},
        {**nothing, "share": 1e300},
        {**nothing, "share": 0.5},
        {**nothing, "day": 86_400_000_000},
        {**nothing, "at": 5},
    ]
    with (tmp_path / "data" / "a.avro").open("wb") as file:
        fastavro.writer(file, schema, given)
    wanted = "small TINYINT, share FLOAT, day DATE, at TIMESTAMP"
    source = ReadFiles("data", context=context, format="avro", schema=wanted)
    rows = told(source.read(spark, {"0": Range(0, source.latest()["0"])}))
    assert [row for row in rows if len(row) == 4] == [
        (2, None, None, None),
        (None, 0.5, None, None),
    ]
    assert sorted(row[0].partition(":")[0] for row in rows if len(row) == 3) == [
        "at",
        "day",
        "share",
        "small",
        "small",
    ]
