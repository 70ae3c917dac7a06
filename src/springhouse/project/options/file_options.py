"""What did the user ask of `read_files`?

The options that are ours, and those that are passed on to Spark's reader of the format. A name that
neither knows is an error, because Spark would silently ignore it: a misspelt `schema` would become
an inferred one.
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
    """The options of one `read_files`; `reader` is what Spark's reader gets, by lower-case name."""

    format: str
    schema: str | None = None
    columns: tuple[str, ...] | None = None  # those of the schema
    header: bool = False
    multiline: bool = False
    pattern: str | None = None
    recursive: bool = False
    max_files: int = 1000
    reader: Mapping[str, str] = field(default_factory=dict)


def read_file_options(options: Mapping[str, str]) -> FileOptions:
    """The options as they were meant, or an error that names the one that can't be meant."""
    given = {name.lower(): text for name, text in options.items()}
    chosen = _format(given.pop("format", None))
    known = _known(chosen)
    for name, text in given.items():
        if name not in known:
            raise SourceError(
                f'read_files has no option "{name}" for the format {chosen}',
                hint=did_you_mean(name, known.values()) or f"It has {', '.join(known.values())}.",
            )
        check_value(known[name], text)
    if "delimiter" in given:
        if "sep" in given:
            raise SourceError("delimiter and sep are one option", hint="Give one of them.")
        given["sep"] = given.pop("delimiter")
    if "sep" in given:
        delimiter(given["sep"])
    schema = given.pop("schema", None)
    if chosen == "csv" and schema is not None:
        _prove_flat(schema)
    return FileOptions(
        format=chosen,
        schema=schema,
        columns=None if schema is None else column_names(schema),
        header=flag("header", given.pop("header", "false")),
        multiline=flag("multiline", given.pop("multiline", "false")),
        pattern=given.pop("pattern", None),
        recursive=flag("recursive", given.pop("recursive", "false")),
        max_files=whole_number("max_files", given.pop("max_files", "1000"), least=1),
        reader=given,
    )


def _prove_flat(schema: str) -> None:
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


def _known(chosen: str) -> dict[str, str]:
    """The options that a format has, by lower-case name."""
    names = f"{_EVERY_FORMAT} {_OWN_OPTIONS[chosen]} {_READER_OPTIONS[chosen]}".split()
    return {name.lower(): name for name in names}
