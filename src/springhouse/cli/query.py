"""`springhouse query "SELECT …"`: which rows do the tables and views have?"""

import csv
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from springhouse.cli.options import ProjectFolder, Settings, open_warehouse
from springhouse.cli.screen import console, note, plain, print_json, show, table

if TYPE_CHECKING:
    import pyarrow as pa


class OutputFormat(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def query(
    sql: Annotated[str, typer.Argument(help="A SELECT.", show_default=False)],
    consistent: Annotated[
        bool, typer.Option("--consistent", help="Read all tables as of one common moment.")
    ] = False,
    form: Annotated[
        OutputFormat, typer.Option("--format", help="How to print the rows.")
    ] = OutputFormat.TABLE,
    limit: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many rows at most; 0 for all.")
    ] = 20,
    project: ProjectFolder = None,
    settings: Settings = None,
) -> None:
    """Run a SELECT over the tables and views."""
    from springhouse.lake.spark.queries import errors_at
    from springhouse.project.declarations.declaration import Place

    # The spinner goes to stderr, and only if stderr is a terminal.
    with open_warehouse(project, settings) as warehouse:
        with console(stderr=True).status("starting Spark …") as spinner:
            rows = warehouse.query(sql, consistent=consistent)
            spinner.update("computing …")
            with errors_at(Place("query", 1)):
                # One row more than the limit shows that there are more.
                answer = (rows.limit(limit + 1) if limit else rows).toArrow()
        shown = answer.slice(0, limit) if limit else answer
        print_rows(shown, form)
        if shown.num_rows < answer.num_rows:
            note(f"only the first {limit:,} rows are shown; --limit 0 shows all")


def print_rows(rows: "pa.Table", form: OutputFormat) -> None:
    """Print rows to stdout in one of the formats."""
    names = rows.column_names
    records = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    match form:
        case OutputFormat.TABLE:
            show(_rows_table(names, _numeric(rows), records))
        case OutputFormat.JSON:
            print_json([dict(zip(names, record, strict=True)) for record in records])
        case OutputFormat.CSV:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(names)
            writer.writerows([plain(value) for value in record] for record in records)


def _numeric(rows: "pa.Table") -> list[bool]:
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return [any(is_kind(field.type) for is_kind in kinds) for field in rows.schema]


def _rows_table(
    names: Sequence[str], numeric: Sequence[bool], records: Sequence[Sequence[Any]]
) -> Table:
    shown = table()
    for name, is_numeric in zip(names, numeric, strict=True):
        shown.add_column(Text(name), justify="right" if is_numeric else "left", overflow="fold")
    for record in records:
        shown.add_row(*(_cell(value) for value in record))
    return shown


def _cell(value: Any) -> Text:
    return Text("NULL", "dim") if value is None else Text(str(value))
