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
    name: Annotated[str, typer.Option("--name", help="The name of this node.", show_default=False)],
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="The address of this node. Default: the one in springhouse.cluster.nodes.",
            show_default=False,
        ),
    ] = None,
    peers: Annotated[
        str | None,
        typer.Option(
            "--peers",
            metavar="NAME=HOST:PORT,…",
            help="All other nodes. Default: those in springhouse.cluster.nodes.",
            show_default=False,
        ),
    ] = None,
    without_tls: Annotated[
        bool,
        typer.Option("--without-tls", help="Do without TLS: only to try it out, on one machine."),
    ] = False,
    duration: Duration = None,
    project: ProjectFolder = None,
    settings: Settings = None,
) -> None:
    """Share the work on a project with other nodes, until Ctrl-C."""
    from springhouse.cli.cluster_options import joining
    from springhouse.warehouse.node.cluster_member import ClusterMember

    write_cluster_log()
    said = joining(project, settings, without_tls=without_tls)
    members = said.members(name, listen, peers)
    running = ClusterMember(members, said)
    given = {**said.given, NODE_NAME.key: name}
    others = ", ".join(f"{each} at {at}" for each, at in members.peers.items()) or "nobody"
    # The first signal lets the node hand its units over, the second ends its warehouse.
    with running.joined(), stopped_by_signals(running.stop):
        _say(f"{name} of {members.cluster} listens on {members.listen}; with it: {others}")
        # Only now: it brings Arrow and Spark along, and our vote must not wait for that.
        from springhouse.warehouse import Warehouse

        permits = running.permits
        with Warehouse(
            said.folder, configuration=given, listener=_tell, permits=permits
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
