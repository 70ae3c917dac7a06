"""`springhouse simulate cluster`: do the nodes keep their laws, whatever goes wrong?"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from springhouse.cli.options import Json
from springhouse.cli.screen import console, count_text, print_json, show, table
from springhouse.errors import SpringhouseError
from springhouse.units import span_text

if TYPE_CHECKING:
    from springhouse.simulate.cluster_model import ClusterOutcome


def cluster(
    nodes: Annotated[int, typer.Option(help="The number of nodes.", min=1, max=99)] = 5,
    units: Annotated[
        int, typer.Option(help="The number of source partitions and views.", min=1, max=10_000)
    ] = 10,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal troubles.", min=0)] = 1,
    seeds: Annotated[
        int, typer.Option(metavar="K", help="The number of seeds, from --seed on.", min=1)
    ] = 1,
    story: Annotated[
        bool, typer.Option("--story", help="Print what happens, with one seed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Simulate a cluster with crashes, lost disks, bad networks and clocks; check its laws."""
    from springhouse.simulate.cluster_checkers import BrokenLaw
    from springhouse.simulate.cluster_model import ClusterConditions
    from springhouse.simulate.cluster_run import ClusterRun

    if story and seeds > 1:
        raise typer.BadParameter("a story needs one seed, not several", param_hint="--story")
    outcomes: list[ClusterOutcome] = []
    with _each(range(seed, seed + seeds), quiet=as_json or story) as numbers:
        for number in numbers:
            conditions = ClusterConditions(nodes, units, number)
            run = ClusterRun(conditions, listener=_print_event if story else None)
            try:
                outcomes.append(run.run())
            except BrokenLaw as broken:
                hint = None if story else f"replay it with: {broken.replay}"
                problem = f"a law is broken ({broken.law}): {broken.what}"
                raise SpringhouseError(problem, where=f"seed {number}", hint=hint) from broken
    if as_json:
        runs = [asdict(outcome) for outcome in outcomes]
        print_json({"nodes": nodes, "units": units, "broken": 0, "runs": runs})
    else:
        last = f" to {seed + seeds - 1}" if seeds > 1 else ""
        size = f"{count_text(nodes, 'node')}, {count_text(units, 'unit')}"
        show(_table(outcomes), "", f"no law was broken: {size}, seed {seed}{last}")


def _print_event(at: float, what: str) -> None:
    show(f"{at:8.3f}  {what}")


@contextmanager
def _each(numbers: Sequence[int], *, quiet: bool) -> Iterator[Iterator[int]]:
    """The numbers, with a progress bar on a terminal."""
    screen = console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
        disable=quiet or len(numbers) == 1 or not screen.is_terminal,
    )
    with bar:
        yield iter(bar.track(numbers, description="seeds"))


def _table(outcomes: "Sequence[ClusterOutcome]") -> Table:
    """The averages and maxima of all runs."""
    grid = table("a run", ">average", ">at most")
    rows: tuple[tuple[str, list[float]], ...] = (
        ("events", [each.events for each in outcomes]),
        ("troubles", [each.troubles for each in outcomes]),
        ("elections won", [each.elections for each in outcomes]),
        ("versions", [each.versions for each in outcomes]),
    )
    for name, numbers in rows:
        grid.add_row(name, f"{sum(numbers) / len(numbers):,.1f}", f"{max(numbers):,.0f}")
    times: tuple[tuple[str, list[float]], ...] = (
        ("pretend time", [each.seconds for each in outcomes]),
        ("a leader after the last trouble", [each.leader_after_seconds for each in outcomes]),
        ("all units after the last trouble", [each.units_after_seconds for each in outcomes]),
    )
    for name, numbers in times:
        grid.add_row(name, span_text(sum(numbers) / len(numbers)), span_text(max(numbers)))
    return grid
