"""Charts are well-formed, and show their data."""

from math import nan
from xml.etree import ElementTree as ET

import pytest

from springhouse.simulate.chart import line_chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(**curves):
    return ET.fromstring(line_chart("a < b", "x", "y", curves))


def test_every_curve_and_its_name():
    chart = drawn(one=[(0.0, 1.0), (1.0, 2.0)], two=[(0.0, 3.0), (1.0, 0.5)])
    texts = [text.text for text in chart.iter(f"{SVG}text")]
    assert {"a < b", "x", "y", "one", "two"} <= {*texts}
    lines = [each.get("points", "").split() for each in chart.iter(f"{SVG}polyline")]
    assert [len(points) for points in lines] == [2, 2]


def test_more_is_higher():
    chart = drawn(one=[(0.0, 1.0), (1.0, 2.0), (2.0, 4.0)])
    heights = [float(dot.get("cy", "")) for dot in chart.iter(f"{SVG}circle")]
    assert heights == sorted(heights, reverse=True)


@pytest.mark.parametrize("factor", [10.0, 1_000.0])
def test_far_apart_is_logarithmic(factor):
    chart = drawn(one=[(0.0, 1.0), (1.0, factor)])
    assert ("logarithmic" in ET.tostring(chart, encoding="unicode")) == (factor > 100)


@pytest.mark.parametrize("points", [[], [(0.0, 0.0)], [(1.0, 5.0), (1.0, 5.0)]])
def test_little_to_draw(points):
    assert drawn(one=points).tag == f"{SVG}svg"


def test_a_point_that_is_no_number_is_a_gap():
    svg = line_chart("t", "x", "y", {"a": [(0, 1), (1, 2), (1, nan), (2, 3), (3, 4)]})
    assert svg.count("<polyline") == 2
    assert "nan" not in svg.replace("<title", "").split("<circle")[0]


def test_an_axis_can_be_asked_to_be_linear():
    curve = {"a": [(0, 1), (1, 1000)]}
    assert "logarithmic" in line_chart("t", "x", "y", curve)
    assert "logarithmic" not in line_chart("t", "x", "y", curve, linear=True)
