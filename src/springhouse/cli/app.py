"""Which commands are there?"""

from typing import Annotated

import typer

import springhouse
from springhouse.cli import (
    check,
    cluster,
    explain,
    history,
    init,
    node,
    plan,
    query,
    run,
    simulate,
    status,
    vacuum,
    verify,
)
from springhouse.cli.log_output import LogLevel, write_log

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # Help and usage errors without boxes are easier to wrap and grep.
    # A bug of ours shows a traceback, as plain text that one can paste into a report.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"springhouse {springhouse.__version__}")
        raise typer.Exit


@app.callback()
def springhouse_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    log_level: Annotated[
        LogLevel | None,
        typer.Option("--log-level", help="Write the log to stderr, from this level up."),
    ] = None,
) -> None:
    """A streaming warehouse on Spark: tables and views that stay as fresh as promised.

    Start with `springhouse init shop`.
    """
    if log_level is not None:
        write_log(log_level)


app.command()(init.init)
app.command()(check.check)
app.command()(run.run)
app.command()(status.status)
app.command()(plan.plan)
app.command()(query.query)
app.command()(explain.explain)
app.command()(history.history)
app.command()(vacuum.vacuum)
app.command()(verify.verify)
app.command()(node.node)
app.add_typer(cluster.app, name="cluster")
app.add_typer(simulate.app, name="simulate")
