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
        help="The node to ask; else the first that answers of springhouse.cluster.nodes.",
        show_default=False,
    ),
]
WithoutTls = Annotated[
    bool, typer.Option("--without-tls", help="The nodes run without TLS, on this machine.")
]


@app.command()
def status(
    at: At = None,
    without_tls: WithoutTls = False,
    project: ProjectFolder = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show all nodes: roles, term, version, owners, load, last quorum."""
    from springhouse.cli.cluster_options import joining
    from springhouse.cluster import wire

    said = joining(project, settings, without_tls=without_tls)
    answer = _ask(said, at, "Status", wire.encode_question(said.cluster))
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
    """Take all units from a node, so that it can be stopped; it stays so until --undo."""
    from springhouse.cli.cluster_options import joining
    from springhouse.cluster import wire

    said = joining(project, settings, without_tls=without_tls)
    asked = wire.encode_drain(said.cluster, node, drained=not undo)
    leader = wire.decode_drain_taken(_ask(said, at, "AskToDrain", asked))
    what = f"{node} gets units again" if undo else f"{node} is drained, as its units become free"
    show(f"{leader} leads and sees to it: {what}. See `springhouse cluster status`.")


def _ask(said: "ClusterOptions", at: str | None, method: str, request: bytes) -> bytes:
    """The answer of the node that was named, or of the first configured one that has one."""
    from springhouse.cluster.network import PeerChannel

    addresses = [at] if at else list(said.nodes.values())
    if not addresses:
        raise SpringhouseError(
            "no node is named that could be asked",
            hint="Give --at HOST:PORT, or configure springhouse.cluster.nodes.",
        )
    problems = []
    for address in addresses:
        line = PeerChannel(said.cluster, address, said.credentials)
        try:
            return line.call(method, request, _ASK_SECONDS)
        except SpringhouseError as error:
            problems.append(str(error))
        finally:
            line.close()
    raise SpringhouseError(f"no node answers: {'; '.join(problems)}")


def _head(report: "ClusterReport") -> Text:
    leader = f"{report.leader} leads" if report.leader else "nobody leads"
    newest = report.newest
    units = count_text(len(newest.assignments), "unit")
    return Text(f"{leader}, term {newest.term}, version {newest.applied.number}, {units}\n", "bold")


def nodes_table(report: "ClusterReport") -> Table:
    """One row per node; one that did not answer has only a name."""
    words = ("node", "role", ">term", ">version", ">units", "last quorum")
    shown = table(*words, ">cpu", ">memory", ">tracks", ">backlog")
    for each in report.nodes:
        load = each.load
        age = "never" if each.quorum_age is None else f"{span_text(each.quorum_age)} ago"
        shown.add_row(
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
        shown.add_row(name, Text("does not answer", "red"))
    return shown


def _role(report: "ClusterReport", each: "NodeReport") -> str:
    share = report.share_of(each.name)
    if share <= 0:
        return f"{each.role}, drained"
    if not each.load.able:
        return f"{each.role}, not ready"
    return each.role if share == 1 else f"{each.role}, share {share:.2g}"


def units_table(report: "ClusterReport") -> Table:
    """Who owns what, in the newest state that a node acts on."""
    shown = table("unit", "owner", ">offset")
    for unit, assignment in sorted(report.newest.assignments.items()):
        owner = (
            assignment.owner
            if assignment.heir is None
            else f"{assignment.owner}, then {assignment.heir}"
        )
        shown.add_row(unit, owner, f"{assignment.offset:,}")
    return shown


def remarks(report: "ClusterReport") -> list[Text]:
    """What a row has no room for."""
    told = [
        Text.assemble((f"\n{name}: ", "red"), problem) for name, problem in report.problems.items()
    ]
    if not any(each.processing for each in report.nodes):
        told.append(Text("\nno quorum: nothing is processed", "bold red"))
    return told
