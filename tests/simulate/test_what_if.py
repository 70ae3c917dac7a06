"""A policy beside FIFO and beside the best possible result."""

import pytest

from springhouse.refresh.policy import Policy
from springhouse.simulate.pretend_schedule import ScheduleConditions
from springhouse.simulate.slowdowns import Slowdowns
from springhouse.simulate.what_if import what_if
from springhouse.simulate.workload import Workload, equal_tables

TABLES = equal_tables(10, prefix="low") + equal_tables(10, prefix="high", priority=10.0)


@pytest.fixture(scope="module")
def answer():
    workload = Workload(TABLES).at_utilisation(0.5, tracks=2)
    return what_if(workload, ScheduleConditions(2, Slowdowns()), Policy(), 5_000)


def test_all_three_last_equally_long(answer):
    runs = (answer.run, answer.fifo, answer.ideal)
    assert {run.outcome.seconds for run in runs} == {answer.run.outcome.seconds}
    assert answer.run.outcome.events == 5_000


def test_the_ideal_is_best_and_priorities_beat_fifo(answer):
    assert 1.0 < answer.relative_lateness < answer.relative_lateness_of_fifo
    ours, fifo = answer.run.outcome, answer.fifo.outcome
    assert ours.weighted_staleness < fifo.weighted_staleness


def test_the_windows_add_up_to_the_whole(answer):
    for run in (answer.run, answer.fifo, answer.ideal):
        starts = [0.0, *(end for end, _ in run.curve)]
        area = sum(y * (end - start) for (end, y), start in zip(run.curve, starts, strict=False))
        assert area / run.outcome.seconds == pytest.approx(run.outcome.weighted_staleness)
