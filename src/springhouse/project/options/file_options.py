"""What do the options of `read_files` mean?

Some options belong to Springhouse, and the others are passed to Spark's reader of the format. An
unknown name is an error, because Spark would silently ignore it: with a misspelt `schema`, Spark
would infer the schema from the data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from springhouse.errors import SourceError
from springhouse.project.declarations.names import did_you_mean
from springhouse.project.options.option_values import flag, whole_number, wrong_option
from springhouse.project.options.reader_values import check_value, delimiter
from springhouse.project.sql.schema_text import column_names, nested_columns

_DATES = (
    "dateFormat timestampFormat timestampNTZFormat enableDateTimeParsingFallback locale timeZone"
)
JSON_PARSER_OPTIONS = (
    "allowComments allowUnquotedFieldNames allowSingleQuotes allowNumericLeadingZeros "
    "allowBackslashEscapingAnyCharacter allowUnquotedControlChars allowNonNumericNumbers " + _DATES
)
_READER_OPTIONS = {
    "json": "primitivesAsString prefersDecimal dropFieldIfAllNull samplingRatio lineSep "
    + JSON_PARSER_OPTIONS,
    "csv": "quote escape comment charToEscapeQuoteEscaping ignoreLeadingWhiteSpace "
    "ignoreTrailingWhiteSpace nullValue nanValue positiveInf negativeInf emptyValue preferDate "
    "maxColumns maxCharsPerColumn unescapedQuoteHandling samplingRatio lineSep encoding " + _DATES,
    "parquet": "datetimeRebaseMode int96RebaseMode",
    "text": "wholetext lineSep",
    "avro": "",
}
_OWN_OPTIONS = {
    "json": "schema multiline",
    "csv": "schema multiline header delimiter sep",
    "parquet": "schema",
    "text": "",
    "avro": "schema",
}
_EVERY_FORMAT = "format pattern recursive max_files"


@dataclass(frozen=True)
class FileOptions:
    """The options of one `read_files`; `reader` has those for Spark, by lower-case name."""

    format: str
    schema: str | None = None
    columns: tuple[str, ...] | None = None  # of the schema
    header: bool = False
    multiline: bool = False
    pattern: str | None = None
    recursive: bool = False
    max_files: int = 1000
    reader: Mapping[str, str] = field(default_factory=dict)


def read_file_options(written: Mapping[str, str]) -> FileOptions:
    """The values of the options, or the error of the first wrong option."""
    options = {name.lower(): text for name, text in written.items()}
    file_format = _format(options.pop("format", None))
    known = _known(file_format)
    for name, text in options.items():
        if name not in known:
            raise SourceError(
                f'read_files has no option "{name}" for the format {file_format}',
                hint=did_you_mean(name, known.values()) or f"It has {', '.join(known.values())}.",
            )
        check_value(known[name], text)
    if "delimiter" in options:
        if "sep" in options:
            raise SourceError("delimiter and sep are one option", hint="Give one of them.")
        options["sep"] = options.pop("delimiter")
    if "sep" in options:
        delimiter(options["sep"])
    schema = options.pop("schema", None)
    if file_format == "csv" and schema is not None:
        _check_flat(schema)
    return FileOptions(
        format=file_format,
        schema=schema,
        columns=None if schema is None else column_names(schema),
        header=flag("header", options.pop("header", "false")),
        multiline=flag("multiline", options.pop("multiline", "false")),
        pattern=options.pop("pattern", None),
        recursive=flag("recursive", options.pop("recursive", "false")),
        max_files=whole_number("max_files", options.pop("max_files", "1000"), least=1),
        reader=options,
    )


def _check_flat(schema: str) -> None:
    nested = nested_columns(schema)
    if nested:
        raise SourceError(
            f'the column "{nested[0]}" has a type that no field of a CSV file can have',
            hint="Read it as STRING, and parse it in the query: from_json(…), split(…).",
        )


def _format(text: str | None) -> str:
    formats = ", ".join(_READER_OPTIONS)
    if text is None:
        raise SourceError("read_files needs a format", hint=f"Give format => one of {formats}.")
    if text.lower() not in _READER_OPTIONS:
        raise wrong_option("format", text, f"one of {formats}")
    return text.lower()


def _known(file_format: str) -> dict[str, str]:
    """The options of a format, by lower-case name."""
    names = f"{_EVERY_FORMAT} {_OWN_OPTIONS[file_format]} {_READER_OPTIONS[file_format]}".split()
    return {name.lower(): name for name in names}
