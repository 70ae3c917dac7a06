"""How is a record parsed where the server can't tell good records from bad ones?

Spark's `from_json` and `from_csv` say which records do not fit. Other servers that speak Spark
Connect have functions of these names that do not. Sail's functions return NULL for a value that
does not fit, and drop digits of a value that does. For such a server this process, the client,
splits a record into fields (`client_json`, `client_csv`), and the server only casts their texts:

    value       =  try_cast(text), if the text is of a kind that Spark would accept for the type
    bad record  =  no record at all, or a field with a text and without a value

So `{"id": "1"}` and `{"id": 1.0}` are no BIGINT here either. Some things Spark does only on request
(dates in other formats, comments, documents of several lines), and some fields are nested. The
client does neither, and says so.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, is_remote
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    StructType,
    TimestampType,
)

from springhouse.errors import SourceError
from springhouse.lake.delta.tables import frame_of
from springhouse.lake.sources.file_batch import FileBatch
from springhouse.lake.sources.records import NO_REASON, NOT_UTF8, VALUE, misfit
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD
from springhouse.planner.placement import fits_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TEXT, _FITTING = "__springhouse_text_", "__springhouse_fits_"
_PROBLEM = "__springhouse_wrong"
_LINE_BREAKS = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FLAT_TYPES = (
    StringType,
    IntegralType,
    DecimalType,
    DoubleType,
    FloatType,
    BooleanType,
    DateType,
    TimestampType,
)


class FieldText(NamedTuple):
    """A field of a record: its text, and the text to cast; None if that does not fit the type."""

    text: str | None = None
    fitting: str | None = None


class RecordText(NamedTuple):
    """The text of a record and its file; `problem` is set if the record is known to be bad."""

    text: str
    file: str
    problem: str | None = None


Parse = Callable[[str], Mapping[str, FieldText] | str | None]
"""Splits a record: its fields by name; or the reason why it is bad; None if it is no record."""


@lru_cache(maxsize=8)
def is_needed(spark: "SparkSession") -> bool:
    """Whether the server's functions do not tell which records are bad; asked once."""
    if not is_remote():
        return False
    options = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', 'corrupt')"
    corrupt = f"from_json('{{\"id\": \"x\"}}', 'id BIGINT, corrupt STRING', {options}).corrupt"
    return spark.sql(f"SELECT {corrupt} AS corrupt").toArrow()["corrupt"][0].as_py() is None


def rows(
    spark: "SparkSession",
    records: Sequence[RecordText],
    parse: Parse,
    wanted: StructType,
    no_record: str,
    *,
    why: bool,
) -> DataFrame:
    """The records as rows with the columns `wanted`; bad records are marked."""
    fields: list[Mapping[str, FieldText]] = []
    problems: list[str | None] = []
    for record in records:
        parsed = record.problem or parse(record.text)
        if parsed is None or isinstance(parsed, str):
            fields.append({})
            problems.append(parsed or no_record)
        else:
            fields.append(parsed)
            problems.append(None)
    columns: dict[str, pa.Array] = {
        VALUE: pa.array([record.text for record in records], pa.string()),
        ORIGIN: pa.array([record.file for record in records], pa.string()),
        _PROBLEM: pa.array(problems, pa.string()),
    }
    for number, field in enumerate(wanted.fields):
        texts = [by_name.get(field.name, FieldText()) for by_name in fields]
        columns[f"{_TEXT}{number}"] = pa.array([each.text for each in texts], pa.string())
        columns[f"{_FITTING}{number}"] = pa.array([each.fitting for each in texts], pa.string())
    return _cast_fields(frame_of(spark, pa.table(columns)), wanted, why=why)


def _cast_fields(frame: DataFrame, wanted: StructType, *, why: bool) -> DataFrame:
    values = [
        sf.col(f"{_FITTING}{number}").try_cast(field.dataType)
        for number, field in enumerate(wanted.fields)
    ]
    misfits = [
        misfit(field, sf.col(f"{_TEXT}{number}"), value)
        for number, (field, value) in enumerate(zip(wanted.fields, values, strict=True))
    ]
    named = sf.nullif(sf.concat_ws("; ", *misfits), sf.lit(""))
    reason = sf.when(sf.col(_PROBLEM).isNull(), named).otherwise(sf.col(_PROBLEM))
    is_bad = reason.isNotNull()
    shown = reason if why else sf.lit(NO_REASON)
    marks = {BAD: shown, RECORD: sf.col(VALUE), ORIGIN: sf.col(ORIGIN)}
    return frame.select(
        *(value.alias(field.name) for field, value in zip(wanted.fields, values, strict=True)),
        *(sf.when(is_bad, mark).alias(name) for name, mark in marks.items()),
    )


def lines(
    batch: FileBatch, separator: str | None, *, with_empty: bool = False
) -> Iterator[RecordText]:
    """The lines of some files, each with its file; empty lines only with `with_empty`."""
    filesystem, root = batch.folder.filesystem, batch.folder.path
    breaks = re.compile(re.escape(separator.encode())) if separator else _LINE_BREAKS
    infos = filesystem.get_file_info([f"{root}/{path}" for path in batch.paths])
    if not fits_here(sum(info.size or 0 for info in infos)):
        raise SourceError(
            "this Spark Connect server can't read so many records of this format at once",
            where=batch.folder.root,
            hint="Let it read fewer files at once (max_files), or let Spark itself read them.",
        )
    for path in batch.paths:
        with filesystem.open_input_stream(f"{root}/{path}", compression="detect") as file:
            whole = file.read().removeprefix(_BYTE_ORDER_MARK)
        for line in breaks.split(whole):
            try:
                text, problem = line.decode("utf-8"), None
            except UnicodeDecodeError:
                text, problem = line.decode("utf-8", errors="replace"), NOT_UTF8
            if with_empty or text.strip(" "):
                yield RecordText(text, batch.full(path), problem)


def prove_simple(wanted: StructType, options: Collection[str], supported: Collection[str]) -> None:
    """Raise an error if a column or an option needs Spark's own functions."""
    unsupported = [f'the option "{name}"' for name in options if name not in supported]
    nested = [
        f'"{field.name}" as {field.dataType.simpleString().upper()}'
        for field in wanted.fields
        if not isinstance(field.dataType, _FLAT_TYPES)
    ]
    if unsupported or nested:
        features = ", ".join([*unsupported, *nested])
        raise SourceError(
            f"on this Spark Connect server read_files can't do {features}",
            hint="Do without, or let Spark itself read the files.",
        )
