r"""How is CSV read?

With `header`, columns are matched by name in each file, so files may differ in the order of their
columns. Without it, columns are matched by position. Case and surrounding blanks of names do not
matter. A file whose header has no column of the schema is one bad record: it has another delimiter,
or no header, or belongs to another table. A line that repeats the header of its file is a header
too, as in concatenated files. Quotes inside quotes are doubled, as in RFC 4180 and nearly every
program that writes CSV (Spark's own default is a backslash: `escape => '\'`).

Records are lines, which Spark reads in parallel, unless a quoted field continues on the next line.
Then only Spark's CSV reader finds the ends of records; it also decodes other encodings. So that
reader reads files with such a field, and all files with `multiline` or `encoding`. It reads all
fields as text, and `_joined` joins them to a record for the same grammar. The quarantine then shows
the fields of the record, not its exact quotes.

A file with a quoted field that continues on the next line and never ends is one bad record. Nobody
knows which of its quotes is wrong, and the reader would make one long field of all records behind.

The reader replaces bytes that are no text in the `encoding` by U+FFFD; a record with such a
character is bad.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, TextIO

from pyarrow import fs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from springhouse.lake.delta.tables import quoted
from springhouse.lake.sources import client_csv, client_records, encodings
from springhouse.lake.sources.file_batch import FILE, FileBatch, origin
from springhouse.lake.sources.records import (
    CORRUPT,
    FIELDS,
    NOT_UTF8,
    VALUE,
    Grammar,
    bad_files,
    no_rows,
    rows,
    strange_file,
    with_corrupt,
)
from springhouse.lake.sources.source import ORIGIN
from springhouse.planner.placement import fits_here
from springhouse.project.options.file_options import FileOptions
from springhouse.project.options.reader_values import delimiter

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

_CHUNK_BYTES = 64 * 1024
_LONGEST_HEADER = 120
_UNLISTED = "__springhouse_unlisted_"
_SUPPORTED = ("sep", "quote", "escape", "comment", "nullvalue", "linesep")
"""The options that mean the same if the client splits the records."""


class _FileLook(NamedTuple):
    """The header of a file, or the problem that keeps the file from being read."""

    header: str = ""
    problem: str | None = None


class _Kind(NamedTuple):
    """Files that are read in one way; `is_cut` if a quoted field continues on the next line."""

    look: _FileLook
    is_cut: bool = False


class CsvFiles:
    """Files of comma-separated values, or values separated by something else."""

    def __init__(self, options: FileOptions) -> None:
        self._header = options.header
        self._multiline = options.multiline
        self._encoding = options.reader.get("encoding")
        self._reader = {"escape": '"', **options.reader}
        # The separator itself, and not as Spark's reader spells it.
        self._own = {**self._reader, "sep": delimiter(self._reader.get("sep", ","))}
        self._parser = {
            **self._reader,
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": CORRUPT,
        }

    def infer(self, spark: "SparkSession", batch: FileBatch) -> list[StructType]:
        """The columns that the records have, one schema for each header among the files."""
        schemas = []
        for kind, group in self._kinds(spark, batch).items():
            if kind.look.problem is None:
                reader = self._read(spark, kind.is_cut, inferSchema=True)
                schemas.append(_roomy(reader.csv(group.for_spark()).schema))
        return schemas

    def rows(
        self, spark: "SparkSession", batch: FileBatch, schema: StructType, *, why: bool
    ) -> DataFrame:
        """The records as rows."""
        by_client = client_records.is_needed(spark)
        if by_client:
            options = [*self._reader, *(["multiline"] if self._multiline else [])]
            client_records.prove_simple(schema, options, _SUPPORTED)
        parts = []
        for kind, group in self._kinds(spark, batch).items():
            names = self._names(spark, kind, group)
            problem = kind.look.problem or self._misnamed(kind.look.header, names, schema)
            if problem is not None:
                files = [(problem, group.full(path)) for path in group.paths]
                parts.append(bad_files(spark, schema, files))
                continue
            layout = self._layout(names, schema)
            if by_client:
                parts.append(self._client_rows(spark, kind, group, layout, schema, why=why))
                continue
            if self._by_reader(kind):
                records = self._joined(spark, group, layout, kind.is_cut)
            else:
                records = self._lines(spark, group, kind.look.header)
            no_record = f"not a row of {len(layout)} columns"
            grammar = Grammar(self._parse, no_record, encoding=self._encoding)
            parts.append(rows(records, grammar, layout, schema, why=why))
        return reduce(DataFrame.union, parts or [no_rows(spark, schema)])

    def _by_reader(self, kind: _Kind) -> bool:
        return kind.is_cut or self._multiline or self._encoding is not None

    def _kinds(self, spark: "SparkSession", batch: FileBatch) -> "dict[_Kind, FileBatch]":
        """The files by the way to read them, without files that have no line."""
        looks = batch.grouped(self._look)
        sound = tuple(p for look, group in looks.items() if not look.problem for p in group.paths)
        flaws = self._flaws(spark, FileBatch(batch.folder, sound)) if sound else {}
        kinds: dict[_Kind, list[str]] = {}
        for look, group in looks.items():
            if self._header and not look.header and look.problem is None:
                continue
            for path in group.paths:
                is_cut, is_utf8 = flaws.get(path, (False, True))
                kind = _Kind(look, is_cut)
                # Spark's own reader would replace such bytes by another character.
                if self._by_reader(kind) and not is_utf8:
                    kind = _Kind(look._replace(problem=NOT_UTF8))
                elif is_cut and (problem := self._open_quote(batch, path)) is not None:
                    kind = _Kind(look._replace(problem=problem))
                kinds.setdefault(kind, []).append(path)
        return {kind: FileBatch(batch.folder, tuple(paths)) for kind, paths in kinds.items()}

    def _look(self, filesystem: fs.FileSystem, path: str) -> _FileLook:
        """The header: the first line that is not empty and not a comment; "" if there is none."""
        separator = self._reader.get("linesep")
        breaks = re.compile(re.escape(separator.encode()) if separator else rb"\r\n|\r|\n")
        start, lines = b"", [b""]
        if (damage := encodings.compression_problem(filesystem, path)) is not None:
            return _FileLook(problem=damage)
        with filesystem.open_input_stream(path, compression="detect") as file:
            while chunk := file.read(_CHUNK_BYTES):
                start += chunk
                problem = encodings.encoding_problem(start[:_CHUNK_BYTES])
                if problem is not None and not self._encoding:
                    return _FileLook(problem=problem)
                if not self._header:
                    return _FileLook()
                lines = breaks.split(start)
                # The last line may be incomplete.
                if header := self._first(lines[:-1]):
                    return _FileLook(header)
        return _FileLook(self._first(lines))

    def _first(self, lines: Sequence[bytes]) -> str:
        texts = (line.decode("utf-8-sig", errors="replace") for line in lines)
        comment = self._reader.get("comment")
        return next(
            (text for text in texts if text.strip() and not (comment and text.startswith(comment))),
            "",
        )

    def _open_quote(self, batch: FileBatch, path: str) -> str | None:
        """The problem of a file with a quoted field that never ends; None if all of them end."""
        filesystem, full = batch.folder.filesystem, f"{batch.folder.path}/{path}"
        with filesystem.open_input_stream(full, compression="detect") as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
            number = client_csv.open_quote(_lines_of(text, self._reader.get("linesep")), self._own)
        return f"a quoted field that begins in line {number} never ends" if number else None

    def _flaws(self, spark: "SparkSession", batch: FileBatch) -> dict[str, tuple[bool, bool]]:
        """By file: whether a quoted field continues on the next line, and whether it is UTF-8."""
        if self._encoding is not None:
            return {}
        filesystem, root = batch.folder.filesystem, batch.folder.path
        infos = filesystem.get_file_info([f"{root}/{path}" for path in batch.paths])
        small = fits_here(sum(info.size or 0 for info in infos))
        if small or client_records.is_needed(spark):
            answers = batch.grouped(self._flaws_of)
            return {path: flaws for flaws, group in answers.items() for path in group.paths}
        quote = self._reader.get("quote", '"')
        is_cut = sf.contains(VALUE, sf.lit(quote)) if quote else sf.lit(False)
        is_cut &= ~sf.rlike(VALUE, sf.lit(f"(?s)^(?:{whole_line(self._own)})$"))
        texts = spark.read.text(batch.for_spark(), lineSep=self._reader.get("linesep"))
        flaws = texts.groupBy(origin().alias(ORIGIN)).agg(
            sf.bool_or(is_cut), sf.bool_and(sf.is_valid_utf8(VALUE))
        )
        by_file = {row[0]: (bool(row[1]), bool(row[2])) for row in flaws.collect()}
        return {path: by_file.get(batch.full(path), (False, True)) for path in batch.paths}

    def _flaws_of(self, filesystem: fs.FileSystem, path: str) -> tuple[bool, bool]:
        with filesystem.open_input_stream(path, compression="detect") as file:
            whole = file.read()
        try:
            text = whole.decode("utf-8")
        except UnicodeDecodeError:
            text, is_utf8 = whole.decode("utf-8", errors="replace"), False
        else:
            is_utf8 = True
        quote = self._reader.get("quote", '"')
        if not quote or quote not in text:
            return False, is_utf8
        separator = self._reader.get("linesep")
        lines = re.split(re.escape(separator) if separator else r"\r\n|\r|\n", text)
        is_whole = re.compile(whole_line(self._own), re.DOTALL)
        return any(quote in line and not is_whole.fullmatch(line) for line in lines), is_utf8

    def _names(self, spark: "SparkSession", kind: _Kind, group: FileBatch) -> Sequence[str]:
        """The names in the header of the files."""
        if not self._header or kind.look.problem is not None:
            return ()
        if not self._by_reader(kind) or client_records.is_needed(spark):
            return client_csv.csv_texts(kind.look.header, self._own) or ()
        # Only the reader knows where the header ends. Read as a header, names would be changed.
        reader = self._read(spark, kind.is_cut).option("header", False)
        first = reader.csv(group.for_spark()[0]).first()
        return [name or "" for name in first] if first is not None else ()

    def _misnamed(self, header: str, names: Sequence[str], schema: StructType) -> str | None:
        """The problem of a header; None if columns can be matched by it."""
        if not self._header or not schema.fields:
            return None
        wanted = {_key(name) for name in schema.fieldNames()}
        matching = [_key(name) for name in names if _key(name) in wanted]
        if not matching:
            return strange_file(header[:_LONGEST_HEADER], schema.fieldNames())
        twice = next((name for name in matching if matching.count(name) > 1), None)
        return f'the header of the file has the column "{twice}" twice' if twice else None

    def _layout(self, names: Sequence[str], schema: StructType) -> StructType:
        """The columns of the files in their order, with types of the schema; text for others."""
        if not self._header:
            return schema
        wanted = {_key(field.name): field for field in schema.fields}
        return StructType(
            [
                wanted.get(_key(name), StructField(f"{_UNLISTED}{number}", StringType()))
                for number, name in enumerate(names)
            ]
        )

    def _client_rows(
        self,
        spark: "SparkSession",
        kind: _Kind,
        group: FileBatch,
        layout: StructType,
        schema: StructType,
        *,
        why: bool,
    ) -> DataFrame:
        comment = self._reader.get("comment")
        separator = self._reader.get("linesep")
        lines: Iterable[client_records.RecordText] = client_records.lines(
            group, separator, with_empty=kind.is_cut
        )
        if kind.is_cut:
            whole = whole_line(self._own)
            lines = client_csv.csv_records(lines, whole, separator or "\n")
        records = [
            record
            for record in lines
            if record.text != kind.look.header and not (comment and record.text.startswith(comment))
        ]
        parse = client_csv.csv_parser(layout, self._own)
        no_record = f"not a row of {len(layout)} columns"
        return client_records.rows(spark, records, parse, schema, no_record, why=why)

    def _lines(self, spark: "SparkSession", group: FileBatch, header: str) -> DataFrame:
        texts = spark.read.text(group.for_spark(), lineSep=self._reader.get("linesep"))
        records = texts.select(VALUE, sf.col(FILE).alias(ORIGIN)).where(sf.trim(VALUE) != "")
        if "comment" in self._reader:
            records = records.where(~sf.startswith(VALUE, sf.lit(self._reader["comment"])))
        return records.where(sf.col(VALUE) != header) if header else records

    def _joined(
        self, spark: "SparkSession", group: FileBatch, layout: StructType, is_cut: bool
    ) -> DataFrame:
        texts = StructType([StructField(field.name, StringType()) for field in layout.fields])
        mode = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        reader = self._read(spark, is_cut, **mode)
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

    def _read(self, spark: "SparkSession", is_cut: bool, **more: str | bool) -> "DataFrameReader":
        # The reader finds the ends of lines only in UTF-8.
        by_document = self._multiline or is_cut or self._encoding is not None
        own = {"header": self._header, "multiLine": by_document}
        return spark.read.options(**self._reader, **own, **more)


def whole_line(options: Mapping[str, str]) -> str:
    r"""The pattern of a line that closes all quotes that it opens, for Python and Java.

    >>> is_whole = re.compile(whole_line({})).fullmatch
    >>> [bool(is_whole(line)) for line in ('1,"a"', '1,"a', 'a"', '"a ""b"" c",5" d')]
    [True, False, True, True]
    """
    quote, escape = options.get("quote", '"'), options.get("escape", '"')
    separator = re.escape(options.get("sep", ","))
    mark, slash = re.escape(quote), re.escape(escape)
    # Possessive: a part matches in one way only, and Java does not recurse deeply.
    inner = f"[^{mark}]*+(?:{mark}{mark}[^{mark}]*+)*+"
    if quote != escape:
        inner = f"[^{mark}{slash}]*+(?:{slash}.[^{mark}{slash}]*+)*+"
    field = f"(?:{mark}{inner}{mark}|(?!{mark})(?:(?!{separator}).)*+)"
    return f"{field}(?:{separator}{field})*+"


def _lines_of(text: TextIO, separator: str | None) -> Iterator[str]:
    """The lines of a text, each with the line break behind it."""
    if separator is None:
        yield from text
        return
    rest = ""
    while chunk := text.read(_CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(separator)
        yield from (f"{line}\n" for line in lines)
    yield rest


def _key(name: str) -> str:
    """A key that is equal for names that Spark considers equal."""
    return name.strip().casefold()


def _roomy(inferred: StructType) -> StructType:
    """The schema with BIGINT for INT: the next file may hold larger numbers."""
    return StructType(
        [
            StructField(f.name, LongType() if isinstance(f.dataType, IntegerType) else f.dataType)
            for f in inferred.fields
        ]
    )
