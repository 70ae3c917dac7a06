"""The pages in bench/results/001 match the stored findings, and short runs give the same numbers.

A change of a scheduler that moves a figure of paper 001 fails here, in seconds. Then draw the
figure again (`python bench/papers/fig09.py`), and inspect it.
"""

from importlib import import_module

import pytest
from _figure import EVENTS, QUICK_EVENTS
from fig04 import doubling

FIGURES = [import_module(f"fig{number:02}").FIGURE for number in range(4, 12)]


@pytest.mark.parametrize("drawn", FIGURES, ids=lambda drawn: f"figure {drawn.number}")
def test_the_figure_as_it_was_drawn_last_is_held(drawn):
    assert drawn.page(EVENTS).problems(drawn.again()) == []


@pytest.mark.parametrize("drawn", FIGURES, ids=lambda drawn: f"figure {drawn.number}")
def test_few_events_give_what_they_gave_before(drawn):
    assert drawn.page(QUICK_EVENTS).problems(drawn.quick()) == []


@pytest.mark.parametrize("times", [2.0, 3.0, 5.0, 10.0])
def test_doubling_doubles_the_average_whatever_the_factor(times):
    slowdowns = doubling(times)
    assert slowdowns.mean == pytest.approx(2.0)
    sampled = [slowdowns.factor(at + 0.5) for at in range(int(slowdowns.cycle_seconds))]
    assert sum(sampled) / len(sampled) == pytest.approx(2.0, rel=0.01)
