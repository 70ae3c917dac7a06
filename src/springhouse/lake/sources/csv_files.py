r"""How is CSV read?

With `header`, columns are matched by name, file by file, so files may differ in the order of their
columns; without, by position. A line that repeats the header of its file is a header too, as in
files that were concatenated. Quotes inside quotes are doubled, as RFC 4180 and nearly every program
that writes CSV have it (Spark's own default is a backslash: `escape => '\'`).

Only Spark's reader can tell records from lines when a quoted field holds a line break, and decode
other encodings (`multiline`, `encoding`). It reads all fields as text, and they are put together
again to a record for the same grammar: the quarantine then shows the record's fields, not its exact
quotes.
"""

import re
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyarrow import fs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from springhouse.lake.sources import taken_apart
from springhouse.lake.sources.batch import FILE, Batch
from springhouse.lake.sources.contract import ORIGIN
from springhouse.lake.sources.records import (
    CORRUPT,
    FIELDS,
    VALUE,
    Grammar,
    no_rows,
    rows,
    with_corrupt,
)
from springhouse.lake.tables import quoted
from springhouse.project.file_options import FileOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

_CHUNK_BYTES = 64 * 1024
_HEEDED = ("sep", "quote", "escape", "comment", "nullvalue", "linesep")
"""The options that mean the same where records are taken apart in this process."""


class CsvFiles:
    """Files of comma-separated values, or values separated by something else."""

    def __init__(self, options: FileOptions) -> None:
        self._header = options.header
        self._multiline = options.multiline
        self._by_reader = options.multiline or "encoding" in options.reader
        self._reader = {"escape": '"', **options.reader}
        self._parser = {
            **self._reader,
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": CORRUPT,
        }
        self._columns: dict[str, Sequence[str]] = {}  # what Spark makes of a header

    def infer(self, spark: "SparkSession", batch: Batch) -> list[StructType]:
        """The columns that the records have, one schema for each header among the files."""
        return [
            _roomy(self._read(spark, inferSchema=True).csv(group.for_spark()).schema)
            for group in self._groups(batch).values()
        ]

    def rows(
        self, spark: "SparkSession", batch: Batch, schema: StructType, *, why: bool
    ) -> DataFrame:
        """The records as rows."""
        parts = []
        for header, group in self._groups(batch).items():
            if taken_apart.is_needed(spark):
                parts.append(self._taken_apart(spark, header, group, schema, why=why))
                continue
            layout = self._layout(self._names(spark, header, group), schema)
            if self._by_reader:
                records = self._put_together(spark, group, layout)
            else:
                records = self._lines(spark, group, header)
            grammar = Grammar(self._parse, f"not a row of {len(layout)} columns")
            parts.append(rows(records, grammar, layout, schema, why=why))
        return reduce(DataFrame.union, parts or [no_rows(spark, schema)])

    def _groups(self, batch: Batch) -> dict[str, Batch]:
        """The files by their header; those without any line are left out."""
        if not self._header:
            return {"": batch} if batch.paths else {}
        groups = batch.grouped(self._first_line)
        return {header: group for header, group in groups.items() if header}

    def _first_line(self, filesystem: fs.FileSystem, path: str) -> str:
        """The first line that is not empty and not a comment; the empty text if there is none."""
        separator = self._reader.get("linesep")
        breaks = re.compile(re.escape(separator.encode()) if separator else rb"\r\n|\r|\n")
        start, lines = b"", [b""]
        with filesystem.open_input_stream(path, compression="detect") as file:
            while chunk := file.read(_CHUNK_BYTES):
                start += chunk
                lines = breaks.split(start)
                # The last one may have been cut.
                if found := self._first(lines[:-1]):
                    return found
        return self._first(lines)

    def _first(self, lines: Sequence[bytes]) -> str:
        texts = (line.decode("utf-8-sig", errors="replace") for line in lines)
        comment = self._reader.get("comment")
        return next(
            (text for text in texts if text.strip() and not (comment and text.startswith(comment))),
            "",
        )

    def _names(self, spark: "SparkSession", header: str, group: Batch) -> Sequence[str]:
        """What Spark calls the columns of files with this header."""
        if self._header and header not in self._columns:
            self._columns[header] = self._read(spark).csv(group.for_spark()[0]).columns
        return self._columns.get(header, ())

    def _layout(self, names: Sequence[str], schema: StructType) -> StructType:
        """The columns of the files in their order: of the schema's type, or text if it has none."""
        if not self._header:
            return schema
        wanted = {field.name.casefold(): field for field in schema.fields}
        return StructType(
            [wanted.get(name.casefold(), StructField(name, StringType())) for name in names]
        )

    def _taken_apart(
        self, spark: "SparkSession", header: str, group: Batch, schema: StructType, *, why: bool
    ) -> DataFrame:
        asked = [*self._reader, *(["multiline"] if self._multiline else [])]
        taken_apart.prove_simple(schema, asked, _HEEDED)
        comment = self._reader.get("comment")
        records = [
            (text, file)
            for text, file in taken_apart.lines(group, self._reader.get("linesep"))
            if text != header and not (comment and text.startswith(comment))
        ]
        layout = self._layout(taken_apart.csv_texts(header, self._reader) or (), schema)
        parse = taken_apart.csv_parser(layout, self._reader)
        no_record = f"not a row of {len(layout)} columns"
        return taken_apart.rows(spark, records, parse, schema, no_record, why=why)

    def _lines(self, spark: "SparkSession", group: Batch, header: str) -> DataFrame:
        texts = spark.read.text(group.for_spark(), lineSep=self._reader.get("linesep"))
        records = texts.select(VALUE, sf.col(FILE).alias(ORIGIN)).where(sf.trim(VALUE) != "")
        if "comment" in self._reader:
            records = records.where(~sf.startswith(VALUE, sf.lit(self._reader["comment"])))
        return records.where(sf.col(VALUE) != header) if header else records

    def _put_together(self, spark: "SparkSession", group: Batch, layout: StructType) -> DataFrame:
        texts = StructType([StructField(field.name, StringType()) for field in layout.fields])
        reader = self._read(spark, mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT)
        read = reader.schema(with_corrupt(texts)).csv(group.for_spark())
        fields = sf.struct(*(sf.col(quoted(name)) for name in texts.fieldNames()))
        blanks = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
        record = sf.to_csv(fields, {**self._reader, **blanks})
        return read.select(sf.coalesce(CORRUPT, record).alias(VALUE), sf.col(FILE).alias(ORIGIN))

    def _parse(self, value: Column, schema: StructType) -> Column:
        columns = with_corrupt(schema).fields
        ddl = ", ".join(f"{quoted(c.name)} {c.dataType.simpleString()}" for c in columns)
        parsed = sf.from_csv(value, ddl, self._parser)
        return sf.struct(parsed.alias(FIELDS), parsed.getField(CORRUPT).alias(CORRUPT))

    def _read(self, spark: "SparkSession", **more: str | bool) -> "DataFrameReader":
        own = {"header": self._header, "multiLine": self._multiline}
        return spark.read.options(**self._reader, **own, **more)


def _roomy(inferred: StructType) -> StructType:
    """The schema with BIGINT for INT: the type stays, and the next file may hold larger numbers."""
    return StructType(
        [
            StructField(f.name, LongType() if isinstance(f.dataType, IntegerType) else f.dataType)
            for f in inferred.fields
        ]
    )
