"""Our rows, compared with the rows of Spark's own readers in PERMISSIVE mode.

The test writes every kind of value into a field of every type, with one field per record. If we
store a row, Spark's reader stores the same row. If Spark stores a row and we do not, Spark's row
differs from the record. `FALSIFIED` lists all of these rows.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from springhouse.lake.sources import client_records
from springhouse.lake.sources.read_files import ReadFiles
from springhouse.lake.sources.source import BAD, RECORD, Range, SourceContext

TYPES = {
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "int": "INT",
    "big": "BIGINT",
    "real": "FLOAT",
    "share": "DOUBLE",
    "amount": "DECIMAL(12,2)",
    "day": "DATE",
    "at": "TIMESTAMP",
    "paid": "BOOLEAN",
    "note": "STRING",
}
SCHEMA = "n BIGINT, " + ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
CORRUPT = "corrupt"
NUMBERS = (
    *("0", "-1", "127", "128", "-128", "-129", "200", "255", "256", "32767", "32768", "-32769"),
    *("2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808"),
    *("1.5", "1.0", "-0.0", "1e2", "1e39", "-1e300", "1e400", "1e-400", "0.1", "16777217"),
    *("9999999999.99", "12345678901", "1.239", "1700000000", "9223372036854", "9223372036855"),
    *("10000000000000", "-10000000000000"),
)
TEXTS = (
    *("", "x", "1", "true", "NaN", "Infinity", "-Infinity", "2024-02-29", "2023-02-29", "20240101"),
    *("2024-01-02T03:04:05Z", "2024-01-02 03:04:05.678901+02:00", "10000-01-01", "-5", "2024"),
    *("294248-01-01 00:00:00", "0000-01-01", "1,234.5", "yesterday", "é", " 1 "),
)

# Rows in which Spark stores a value that differs from the record.
FALSIFIED = {
    *(("tiny", number) for number in ("128", "200", "255")),  # -128, -56, -1
    *(("real", number) for number in ("1e39", "-1e300", "1e400")),  # infinite
    ("share", "1e400"),
    # A product with 1,000,000 overflows: moments 290,000 years before Christ.
    *(("at", number) for number in ("9223372036855", "10000000000000", "-10000000000000")),
    ("at", "9223372036854775807"),
    # Digits that are no date: Spark reads them as days since 1970.
    *(("day", f'"{text}"') for text in ("20240101", "-5", "1")),
}
# This process splits these records. A moment outside of Python's calendar is bad there.
NO_CALENDAR = {("at", "9223372036854")}


def json_records() -> Iterator[tuple[str, str, str]]:
    for column in TYPES:
        for token in [*NUMBERS, *(f'"{text}"' for text in TEXTS), "true", "null", "[1]", '{"a":1}']:
            yield column, token, f'"{column}": {token}'


def csv_records() -> Iterator[tuple[str, str, str]]:
    for number, column in enumerate(TYPES):
        for text in [*NUMBERS, *TEXTS]:
            cell = '"' + text + '"' if "," in text else text
            yield column, text, "," * (number + 1) + cell + "," * (len(TYPES) - number - 1)


def as_text(rows: DataFrame, bad: str, record: str) -> dict[str, tuple[str | None, ...] | None]:
    """Map the number of each record to its row as text, or to None if the record is bad."""
    columns = [sf.col(name).cast("string") for name in ("n", *TYPES)]
    number = sf.regexp_extract(record, "[0-9]+", 0)
    found: dict[str, tuple[str | None, ...] | None] = {}
    for row in rows.select(sf.col(bad).isNotNull(), number, *columns).collect():
        if row[0]:
            found[row[1]] = None
        else:
            found[row[2]] = tuple(row[3:])
    return found


@pytest.mark.parametrize("way", ["by Spark", "by the client"])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_rows_are_spark_s_unless_those_would_be_false(
    form: str,
    way: str,
    spark: SparkSession,
    context: SourceContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generate: Callable[[], Iterator[tuple[str, str, str]]]
    generate = json_records if form == "json" else csv_records
    cases = {str(n): case for n, case in enumerate(generate())}
    lines = [
        f'{{"n": {n}, {text}}}' if form == "json" else f"{n}{text}"
        for n, (_, _, text) in cases.items()
    ]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / f"a.{form}").write_text("\n".join(lines))
    if way == "by the client":
        monkeypatch.setattr(client_records, "is_needed", lambda session: True)
    source = ReadFiles("data", context=context, format=form, schema=SCHEMA)
    ours = as_text(source.read(spark, {"0": Range(0, source.latest()["0"])}), BAD, RECORD)
    reader = spark.read.schema(f"{SCHEMA}, {CORRUPT} STRING")
    reader = reader.option("columnNameOfCorruptRecord", CORRUPT).option("escape", '"')
    theirs = as_text(reader.format(form).load(str(tmp_path / "data")).cache(), CORRUPT, CORRUPT)
    assert ours.keys() == theirs.keys() == cases.keys()
    stricter = {cases[n][:2] for n in cases if ours[n] is None and theirs[n] is not None}
    kinder = {cases[n][:2] for n in cases if ours[n] is not None and theirs[n] is None}
    other = {
        (*cases[n][:2], ours[n], theirs[n])
        for n in cases
        if ours[n] is not None and theirs[n] is not None and ours[n] != theirs[n]
    }
    assert kinder == set()
    falsified = FALSIFIED
    if form == "csv":
        falsified = {(c, t) for c, t in FALSIFIED if c in ("real", "share")}
    if way == "by the client" and form == "json":
        falsified = falsified | NO_CALENDAR
    if form == "json":
        # A number in a STRING column: Spark's function writes 100.0 for 1e2, its reader does not.
        other = {each for each in other if each[0] != "note"}
    assert stricter == falsified
    assert other == set()
