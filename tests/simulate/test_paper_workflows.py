"""The three workflows are those of Figures 1, 6 and 7, with the bounds of section 5.1."""

import pytest

from springhouse.planner.bounds import limits_of
from springhouse.planner.search.invocation_costs import InputRead
from springhouse.simulate.paper_workflows import (
    DAY,
    HOUR,
    PAPER_WORKFLOWS,
    WEEK,
    crawl_selection,
    feedback_prioritization,
    search_preprocessing,
)


def test_section_5_1_search_preprocessing():
    model = search_preprocessing()
    limits = limits_of(model.workflow, model.bounds)
    assert limits["output"].staleness == {"pages>digests": 0.0}
    assert limits["output"].inconsistency == WEEK
    assert list(limits["scores"].staleness.values()) == [DAY]


def test_section_5_1_feedback_prioritization():
    model = feedback_prioritization()
    limits = limits_of(model.workflow, model.bounds)
    assert limits["output"].staleness == {"log>news": 0.0, "log>other": DAY}


def test_section_5_1_crawl_selection_has_six_pathways():
    model = crawl_selection()
    limits = limits_of(model.workflow, model.bounds)
    assert len(model.workflow.pathways("output")) == 6
    assert sorted(limits["output"].staleness.values()) == [HOUR, 4 * HOUR, DAY]
    assert set(limits) == {"successful", "digests", "output"}


@pytest.mark.parametrize("make", PAPER_WORKFLOWS.values())
def test_everything_has_a_width_a_history_and_a_cost(make):
    model = make()
    assert set(model.widths) == set(model.history) == set(model.workflow.order)
    for operator in model.workflow.operators:
        read = [InputRead(1000.0, 10.0) for _ in operator.ports]
        found = model.estimate(operator, read)
        assert found.cost > 0
        assert len(found.rows) == len(operator.outputs)
    for converters in model.workflow.converters.values():
        for converter in converters:
            found = model.estimate(converter.operator, [InputRead(1000.0, 10.0)])
            assert found.cost > 0
            assert found.rows[0] > 0
    assert set(model.yields) <= {each.name for each in model.workflow.operators}


def test_a_batch_gives_about_what_history_says():
    """The base that a batch makes from the history is as large as the existing one."""
    for make in PAPER_WORKFLOWS.values():
        model = make()
        for operator in model.workflow.operators:
            if operator.moves or operator.outputs[0].channel.startswith("output"):
                continue
            read = [InputRead(model.history[port.channel]) for port in operator.ports]
            made = model.estimate(operator, read).rows
            for output, rows in zip(operator.outputs, made, strict=True):
                assert rows == pytest.approx(model.history[output.channel], rel=0.15), output
