"""The conclusions that a node may draw from waiting."""

import pytest

from springhouse.cluster.timing import Timing
from springhouse.errors import SpringhouseError


def test_a_silent_node_has_stopped_even_if_its_clock_is_slow_and_ours_fast():
    timing = Timing(drift=0.05)
    real = timing.patience_seconds / 1.05
    assert real * 0.95 == pytest.approx(timing.keep_alive_seconds)


def test_a_new_leader_waits_only_for_the_difference():
    assert Timing(drift=0.0).settling_seconds == 0.0
    assert Timing().settling_seconds == pytest.approx(3 * (1.05 / 0.95) - 3)
    assert Timing(keep_alive_seconds=9.0, drift=0.0).settling_seconds == 6.0


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"heartbeat_seconds": 2.0}, "a heartbeat every 2 s is too slow"),
        ({"heartbeat_seconds": 0.0}, "a heartbeat every 0 s is too slow"),
        ({"keep_alive_seconds": 0.4}, "a keep-alive time of 0.4 s is too short"),
        ({"drift": 0.7}, "clocks whose speeds differ by 70%"),
    ],
)
def test_time_outs_that_can_not_work_are_refused(given, problem):
    with pytest.raises(SpringhouseError, match=problem):
        Timing(**given)
