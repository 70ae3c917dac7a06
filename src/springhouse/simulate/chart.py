"""What does a line chart of a few curves look like as SVG?

This module writes the SVG text itself, so nobody needs a plotting library to look at a simulation,
and equal numbers give equal bytes. The vertical axis becomes logarithmic when the largest value is
far above the smallest, unless the caller wants a linear one. A point that is NaN makes a gap.
"""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from math import ceil, floor, isnan, log10

Curve = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 24, 48, 56
_LEGEND_ROW = 18
_SHORT_NAME = 40
_COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#b8860b", "#6a4c93", "#444444")
_DASHES = ("", "7 4", "2 3", "10 3 2 3", "5 2", "1 2")
_LOGARITHMIC_FROM = 30.0
_MOST_DOTS = 40


def line_chart(
    title: str, x_label: str, y_label: str, curves: Mapping[str, Curve], *, linear: bool = False
) -> str:
    """The curves with their names as an SVG document."""
    xs = [x for curve in curves.values() for x, _ in curve]
    ys = [y for curve in curves.values() for _, y in curve if not isnan(y)]
    across = _horizontal_scale(min(xs, default=0.0), max(xs, default=1.0))
    up = _vertical_scale(ys, linear=linear)
    columns = 2 if all(len(name) <= _SHORT_NAME for name in curves) else 1
    height = _HEIGHT + _LEGEND_ROW * -(-len(curves) // columns)
    parts = [
        _text(_WIDTH / 2, 26, title, size=16, anchor="middle"),
        *_horizontal_grid(up),
        *_horizontal_axis(across),
        *_labels(x_label, y_label + (" (logarithmic)" if up.logarithmic else "")),
    ]
    for number, (name, curve) in enumerate(curves.items()):
        points = [(across.at(x), up.at(y)) for x, y in curve if y > 0 or not up.logarithmic]
        parts += _curve(number, points, dots=len(curve) <= _MOST_DOTS)
        parts += _legend(number, name, columns)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" font-family="sans-serif">\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


class _Axis:
    """Turns values into positions on the paper; `marks` are the values that it names."""

    def __init__(
        self,
        low: float,
        high: float,
        start: float,
        end: float,
        marks: Sequence[float],
        *,
        logarithmic: bool = False,
    ) -> None:
        self.low, self.high, self.logarithmic = low, high, logarithmic
        self.marks = marks
        self._start = start
        self._scale = (end - start) / ((high - low) or 1.0)

    def at(self, value: float) -> float:
        place = log10(value) if self.logarithmic else value
        return round(self._start + (place - self.low) * self._scale, 1)


def _horizontal_scale(low: float, high: float) -> _Axis:
    return _Axis(low, high, _LEFT, _WIDTH - _RIGHT, _round_steps(low, high))


def _vertical_scale(values: Sequence[float], *, linear: bool) -> _Axis:
    positive = [] if linear else [value for value in values if value > 0]
    bottom, top = _HEIGHT - _BOTTOM, _TOP
    if positive and max(positive) > _LOGARITHMIC_FROM * min(positive):
        low, high = floor(log10(min(positive))), ceil(log10(max(positive)))
        powers = [10.0**power for power in range(low, high + 1)]
        return _Axis(low, high, bottom, top, powers, logarithmic=True)
    steps = _round_steps(min([*values, 0.0]), max(values, default=1.0))
    return _Axis(steps[0], steps[-1], bottom, top, steps)


def _horizontal_grid(up: _Axis) -> list[str]:
    parts = []
    for mark in up.marks:
        y = up.at(mark)
        parts.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "#dddddd"))
        parts.append(_text(_LEFT - 8, y + 4, _number(mark), anchor="end"))
    return parts


def _horizontal_axis(across: _Axis) -> list[str]:
    bottom, parts = _HEIGHT - _BOTTOM, []
    for mark in across.marks:
        if across.low <= mark <= across.high:
            x = across.at(mark)
            parts.append(_line(x, bottom, x, bottom + 5, "#666666"))
            parts.append(_text(x, bottom + 20, _number(mark), anchor="middle"))
    parts.append(_line(_LEFT, bottom, _WIDTH - _RIGHT, bottom, "#666666"))
    return parts


def _labels(x_label: str, y_label: str) -> list[str]:
    bottom = _HEIGHT - _BOTTOM
    y_text = _text(0, 0, y_label, anchor="middle")
    return [
        _text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 42, x_label, anchor="middle"),
        f'<g transform="translate(18 {(_TOP + bottom) / 2}) rotate(-90)">{y_text}</g>',
    ]


def _round_steps(low: float, high: float) -> list[float]:
    """About five round numbers, of which the first is not above `low` and the last not below."""
    span = (high - low) or 1.0
    power = 10.0 ** floor(log10(span / 5))
    step = power * next(size for size in (1, 2, 5, 10) if span / (power * size) <= 6)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]


def _style(number: int) -> str:
    colour, dash = _COLOURS[number % len(_COLOURS)], _DASHES[number % len(_DASHES)]
    return f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'


def _curve(number: int, points: Sequence[tuple[float, float]], dots: bool) -> list[str]:
    """One curve."""
    parts = []
    for is_gap, piece in groupby(points, key=lambda point: isnan(point[1])):
        if not is_gap:
            path = " ".join(f"{x},{y}" for x, y in piece)
            parts.append(f'<polyline points="{path}" {_style(number)}/>')
    if dots:
        colour = _COLOURS[number % len(_COLOURS)]
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points]
    return parts


def _legend(number: int, name: str, columns: int) -> list[str]:
    """The entry of one curve in the legend."""
    row, column = divmod(number, columns)
    x, y = _LEFT + column * (_WIDTH - _LEFT) // 2, _HEIGHT + _LEGEND_ROW * row + 2
    line = f'<line x1="{x}" y1="{y}" x2="{x + 28}" y2="{y}" {_style(number)}/>'
    return [line, _text(x + 36, y + 4, name)]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, size: int = 12, anchor: str = "start") -> str:
    place = f'x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="#222222">{escape(text)}</text>'


def _number(value: float) -> str:
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:.3g}"
