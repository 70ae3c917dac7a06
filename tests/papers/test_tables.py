"""The pages in bench/results/004 match the stored findings, and short runs give the same numbers.

A change of the planner that moves a table of paper 004 fails here, in seconds. Then make the table
again (`python bench/papers/table5.py`), and inspect it.
"""

import planning_time
import pytest
import reasons
import table5
import table6
from _finding import Page
from _table import timeless

TABLES = [table5.TABLE, table6.TABLE]


@pytest.fixture(params=TABLES, ids=lambda made: f"table {made.number}")
def made(request):
    return request.param


def test_the_table_as_it_was_made_last_is_held(made):
    rows = made.again()
    for section in made.sections:
        found = section.findings(made.of(rows, section))
        assert made.page(section).problems(found) == []


def test_short_runs_give_what_they_gave_before(made):
    rows = made.quick()
    for section in made.sections:
        found = timeless(section.findings(made.of(rows, section)))
        assert made.page(section, small=True).problems(found) == []


def test_the_reasons_as_they_were_tried_last_are_held():
    assert reasons.page().problems(reasons.findings(reasons.read())) == []


def test_planning_times_as_they_were_measured_last_are_held():
    found = planning_time.method_findings(planning_time.seconds_of(planning_time.methods_read()))
    assert Page("004-planning_time").problems(found) == []
