"""How does a command draw curves into a file?

It writes SVG itself, and PNG with matplotlib, if matplotlib is installed. It refuses an unusable
file before the work begins.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from springhouse.errors import SpringhouseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from springhouse.simulate.chart import Curve

Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw it over time, as .svg or .png.", show_default=False),
]


def validate_plot(file: Path | None) -> None:
    """Refuse an unusable file now, and not after a long simulation."""
    if file is None:
        return
    if file.suffix not in (".svg", ".png"):
        raise typer.BadParameter(f'"{file}" ends neither in .svg nor in .png', param_hint="--plot")
    if not file.absolute().parent.is_dir():
        raise SpringhouseError(f'there is no folder "{file.parent}" to draw "{file.name}" in')
    if file.suffix == ".png":
        _matplotlib()


def draw(file: Path, title: str, across: str, up: str, curves: "Mapping[str, Curve]") -> None:
    """Draw the named curves."""
    from springhouse.simulate.chart import line_chart

    if file.suffix == ".svg":
        file.write_text(line_chart(title, across, up, curves), encoding="utf-8")
        return
    figure = _matplotlib().Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.add_subplot(title=title, xlabel=across, ylabel=up)
    for name, curve in curves.items():
        axes.plot([x for x, _ in curve], [y for _, y in curve], label=name)
    axes.legend()
    figure.savefig(file)


def draw_staleness(file: Path, runs: "Mapping[str, Curve]") -> None:
    """Draw the staleness of tables over pretend time, one curve per run."""
    curves = {name: [(at / 3600, y) for at, y in curve] for name, curve in runs.items()}
    draw(file, "Staleness over time", "pretend time (h)", "weighted staleness (s)", curves)


def _matplotlib() -> Any:
    try:
        return import_module("matplotlib.figure")
    except ImportError:
        raise SpringhouseError(
            "a PNG needs matplotlib, which is not installed",
            hint="Install it, or name a file that ends in .svg: that needs nothing.",
        ) from None
