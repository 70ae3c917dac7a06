"""The measures of a table, compared with curves drawn by hand."""

import pytest

from springhouse.refresh.table.table_profile import TableProfile
from springhouse.simulate.table_measures import ScheduleOutcome, TableMeasures
from springhouse.units import Instant, Seconds


def at(seconds):
    return Instant(float(seconds))


class TestFigure2:
    """001 Figure 2: data up to 3 arrives at 4 and is loaded at 5; data of 7 and 9 at 11."""

    def measured(self, promise=None):
        measures = TableMeasures(TableProfile("t", priority=2.0, promise_seconds=promise), at(0))
        measures.refreshed(at(5), freshness=at(3), since=at(4))
        measures.refreshed(at(11), freshness=at(9), since=at(7))
        return measures

    def test_the_area_under_the_staleness(self):
        # From 0 to 5 at time 5: 12.5. From 2 to 8 at time 11: 30. From 2 to 3 at time 12: 2.5.
        assert self.measured().area(at(12)) == 2.0 * (12.5 + 30 + 2.5)

    def test_the_average_is_not_weighted(self):
        told = self.measured().outcome_at(at(12), since=None)
        assert told.average_staleness == 45 / 12
        assert (told.refreshes, told.freshness) == (2, 9.0)

    def test_the_lag_is_that_of_the_oldest_data(self):
        assert self.measured().outcome_at(at(12), since=None).worst_lag == 4.0
        assert self.measured().outcome_at(at(20), since=at(12)).worst_lag == 8.0

    @pytest.mark.parametrize(
        ("promise", "since", "late"),
        [(5, None, 0), (3, None, 1), (1, None, 3), (1, 12, 10), (9, 12, 0), (0.5, None, 4)],
    )
    def test_a_promise_is_kept_while_the_lag_is_within_it(self, promise, since, late):
        told = self.measured(Seconds(promise)).outcome_at(at(20), since)
        assert told.kept_share == pytest.approx(1 - late / 20)

    def test_no_promise_no_share(self):
        assert self.measured().outcome_at(at(12), since=None).kept_share is None


def test_an_outcome_weighs_by_priority():
    one, ten = (
        TableMeasures(TableProfile("one"), at(0)),
        TableMeasures(TableProfile("ten", priority=10.0), at(-10)),
    )
    outcome = ScheduleOutcome(
        10.0, 0, Seconds(0.0), (one.outcome_at(at(10), None), ten.outcome_at(at(10), None))
    )
    assert outcome.weighted_staleness == pytest.approx((1 * 5 + 10 * 15) / 11)
    assert outcome.kept_share is None
