"""`springhouse cluster status` and `springhouse cluster drain`: ask any node."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from springhouse.cli.options import Json, ProjectFolder, Settings
from springhouse.cli.screen import count_text, print_json, show, table
from springhouse.errors import SpringhouseError
from springhouse.units import span_text

if TYPE_CHECKING:
    from springhouse.cli.cluster_options import ClusterOptions
    from springhouse.cluster.cluster_report import ClusterReport, NodeReport

app = typer.Typer(no_args_is_help=True, help="Look after the nodes of a cluster.")

_ASK_SECONDS = 5.0

At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="HOST:PORT",
        help="The node to ask; without it, the first of springhouse.cluster.nodes that answers.",
        show_default=False,
    ),
]
WithoutTls = Annotated[
    bool, typer.Option("--without-tls", help="The nodes run on this machine, without TLS.")
]


@app.command()
def status(
    at: At = None,
    without_tls: WithoutTls = False,
    project: ProjectFolder = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show all nodes: role, term, version, load, last quorum, and the owners of units."""
    from springhouse.cli.cluster_options import read_cluster_options
    from springhouse.cluster import wire

    options = read_cluster_options(project, settings, without_tls=without_tls)
    answer = _ask(options, at, "Status", wire.encode_question(options.cluster))
    report = wire.decode_cluster_report(answer)
    if as_json:
        print_json(report.as_json())
        return
    show(_head(report), nodes_table(report), "", units_table(report), *remarks(report))


@app.command()
def drain(
    node: Annotated[str, typer.Argument(help="The node's name.", show_default=False)],
    undo: Annotated[bool, typer.Option("--undo", help="Give it units again.")] = False,
    at: At = None,
    without_tls: WithoutTls = False,
    project: ProjectFolder = None,
    settings: Settings = None,
) -> None:
    """Take all units from a node, so that you can stop it; lasts until --undo."""
    from springhouse.cli.cluster_options import read_cluster_options
    from springhouse.cluster import wire

    options = read_cluster_options(project, settings, without_tls=without_tls)
    request = wire.encode_drain(options.cluster, node, drained=not undo)
    leader = wire.decode_drain_taken(_ask(options, at, "AskToDrain", request))
    action = f"gives units to {node} again" if undo else f"moves the units of {node} to other nodes"
    show(f"{leader} leads, and {action}. See `springhouse cluster status`.")


def _ask(options: "ClusterOptions", at: str | None, method: str, request: bytes) -> bytes:
    """The answer of the node at this address, or of the first configured node that answers."""
    from springhouse.cluster.network import PeerChannel

    addresses = [at] if at else list(options.nodes.values())
    if not addresses:
        raise SpringhouseError(
            "there is no node to ask",
            hint="Give --at HOST:PORT, or set springhouse.cluster.nodes.",
        )
    problems = []
    for address in addresses:
        channel = PeerChannel(options.cluster, address, options.credentials)
        try:
            return channel.call(method, request, _ASK_SECONDS)
        except SpringhouseError as error:
            problems.append(str(error))
        finally:
            channel.close()
    raise SpringhouseError(f"no node answers: {'; '.join(problems)}")


def _head(report: "ClusterReport") -> Text:
    leader = f"{report.leader} leads" if report.leader else "no node leads"
    newest = report.newest
    units = count_text(len(newest.assignments), "unit")
    return Text(f"{leader}, term {newest.term}, version {newest.applied.number}, {units}\n", "bold")


def nodes_table(report: "ClusterReport") -> Table:
    """One row per node; of a node that does not answer, only the name."""
    words = ("node", "role", ">term", ">version", ">units", "last quorum")
    rows = table(*words, ">cpu", ">memory", ">tracks", ">backlog")
    for each in report.nodes:
        load = each.load
        age = "never" if each.quorum_age is None else f"{span_text(each.quorum_age)} ago"
        rows.add_row(
            each.name,
            _role(report, each),
            str(each.term),
            str(each.applied.number),
            str(len(each.working)),
            Text(age, "" if each.processing else "red"),
            f"{load.cpu:.0%}",
            f"{load.memory:.0%}",
            f"{load.tracks:.0%}",
            span_text(load.backlog_seconds),
        )
    for name in report.problems:
        rows.add_row(name, Text("does not answer", "red"))
    return rows


def _role(report: "ClusterReport", each: "NodeReport") -> str:
    share = report.share_of(each.name)
    if share <= 0:
        return f"{each.role}, drained"
    if not each.load.able:
        return f"{each.role}, not ready"
    return each.role if share == 1 else f"{each.role}, share {share:.2g}"


def units_table(report: "ClusterReport") -> Table:
    """The owner of each unit, in the newest state that any node has applied."""
    rows = table("unit", "owner", ">offset")
    for unit, assignment in sorted(report.newest.assignments.items()):
        owner = (
            assignment.owner
            if assignment.heir is None
            else f"{assignment.owner}, then {assignment.heir}"
        )
        rows.add_row(unit, owner, f"{assignment.offset:,}")
    return rows


def remarks(report: "ClusterReport") -> list[Text]:
    """The remarks below the tables."""
    lines = [
        Text.assemble((f"\n{name}: ", "red"), problem) for name, problem in report.problems.items()
    ]
    if not any(each.processing for each in report.nodes):
        lines.append(Text("\nno quorum: no node processes anything", "bold red"))
    return lines
