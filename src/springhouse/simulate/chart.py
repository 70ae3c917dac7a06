"""How do a few curves look?

A line chart as SVG text, written by hand: no plotting library is needed to look at a simulation,
and the same numbers give the same bytes. The vertical axis becomes logarithmic when the largest
value is far above the smallest, unless it is to be linear. A point that is not a number is a gap.
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
    """The curves, each under its name, as an SVG document."""
    xs = [x for curve in curves.values() for x, _ in curve]
    ys = [y for curve in curves.values() for _, y in curve if not isnan(y)]
    positive = [] if linear else [y for y in ys if y > 0]
    logarithmic = bool(positive) and max(positive) > _LOGARITHMIC_FROM * min(positive)
    columns = 2 if all(len(name) <= _SHORT_NAME for name in curves) else 1
    below = _HEIGHT + _LEGEND_ROW * -(-len(curves) // columns)
    across = _Axis(min(xs, default=0.0), max(xs, default=1.0), _LEFT, _WIDTH - _RIGHT)
    bottom, top = _HEIGHT - _BOTTOM, _TOP
    if logarithmic:
        low, high = floor(log10(min(positive))), ceil(log10(max(positive)))
        up = _Axis(low, high, bottom, top)
        marks = [(up.at(power), _number(10.0**power)) for power in range(low, high + 1)]
    else:
        steps = _round_steps(min([*ys, 0.0]), max(ys, default=1.0))
        up = _Axis(steps[0], steps[-1], bottom, top)
        marks = [(up.at(step), _number(step)) for step in steps]
    parts = [_text(_WIDTH / 2, 26, title, size=16, anchor="middle")]
    for y, label in marks:
        parts.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "#dddddd"))
        parts.append(_text(_LEFT - 8, y + 4, label, anchor="end"))
    for step in _round_steps(across.low, across.high):
        if across.low <= step <= across.high:
            x = across.at(step)
            parts.append(_line(x, bottom, x, bottom + 5, "#666666"))
            parts.append(_text(x, bottom + 20, _number(step), anchor="middle"))
    parts.append(_line(_LEFT, bottom, _WIDTH - _RIGHT, bottom, "#666666"))
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 42, x_label, anchor="middle"))
    y_text = _text(0, 0, y_label + (" (logarithmic)" if logarithmic else ""), anchor="middle")
    parts.append(f'<g transform="translate(18 {(top + bottom) / 2}) rotate(-90)">{y_text}</g>')
    for number, (name, curve) in enumerate(curves.items()):
        points = [
            (across.at(x), up.at(log10(y) if logarithmic else y))
            for x, y in curve
            if y > 0 or not logarithmic
        ]
        parts += _drawn(number, points, dots=len(curve) <= _MOST_DOTS)
        parts += _named(number, name, columns)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {below}" '
        f'width="{_WIDTH}" height="{below}" font-family="sans-serif">\n'
        f'<rect width="{_WIDTH}" height="{below}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


class _Axis:
    """Where values lie between two places on the paper."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high
        self._start = start
        self._scale = (end - start) / ((high - low) or 1.0)

    def at(self, value: float) -> float:
        return round(self._start + (value - self.low) * self._scale, 1)


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


def _drawn(number: int, points: Sequence[tuple[float, float]], dots: bool) -> list[str]:
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


def _named(number: int, name: str, columns: int) -> list[str]:
    """One curve's place in the legend."""
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
