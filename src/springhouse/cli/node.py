"""`springhouse node`: run a project as one node of a cluster."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from springhouse.cli.log_output import write_cluster_log
from springhouse.cli.options import Duration, ProjectFolder, Settings
from springhouse.cli.signals import stopped_by_signals
from springhouse.lake.storage.clock import steady_clock
from springhouse.project.settings import NODE_NAME

if TYPE_CHECKING:
    from springhouse.warehouse import Event


def node(
    name: Annotated[str, typer.Option("--name", help="This node's name.", show_default=False)],
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="The address at which others reach it; else that in springhouse.cluster.nodes.",
            show_default=False,
        ),
    ] = None,
    peers: Annotated[
        str | None,
        typer.Option(
            "--peers",
            metavar="NAME=HOST:PORT,…",
            help="All other nodes; else those in springhouse.cluster.nodes.",
            show_default=False,
        ),
    ] = None,
    without_tls: Annotated[
        bool,
        typer.Option("--without-tls", help="No TLS; only within one machine, to try it out."),
    ] = False,
    duration: Duration = None,
    project: ProjectFolder = None,
    settings: Settings = None,
) -> None:
    """Share the work on a project with other nodes until Ctrl-C."""
    from springhouse.cli.cluster_options import read_cluster_options
    from springhouse.warehouse.node.cluster_member import ClusterMember

    write_cluster_log()
    options = read_cluster_options(project, settings, without_tls=without_tls)
    members = options.members(name, listen, peers)
    running = ClusterMember(members, options)
    given = {**options.given, NODE_NAME.key: name}
    others = ", ".join(f"{peer} at {at}" for peer, at in members.peers.items()) or "no other node"
    # The first signal makes the node hand over its units; the second ends its warehouse.
    with running.joined(), stopped_by_signals(running.stop):
        _say(f"{name} of {members.cluster} listens on {members.listen}; with it: {others}")
        # Imported late: this loads Arrow and Spark, and the vote must not wait for them.
        from springhouse.warehouse import Warehouse

        permits = running.permits
        with Warehouse(
            options.folder, configuration=given, listener=_tell, permits=permits
        ) as warehouse:
            refreshed = running.run(warehouse, duration)
    for table, failure in refreshed.failures.items():
        _say(f"failing: {table}: {failure.problem}")


def _tell(event: "Event") -> None:
    from springhouse.cli.progress import event_line

    line = event_line(event, steady_clock())
    if line is not None:
        _say(line.plain)


def _say(line: str) -> None:
    typer.echo(line)
    sys.stdout.flush()
