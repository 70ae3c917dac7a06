"""A wall clock that jumps does not disturb a wait."""

import time

import pytest

from springhouse.lake.storage.clock import CLOCK_TOLERANCE, SteadyClock, steady_seconds

HOUR = 3600.0
TEN_YEARS = 10 * 365.25 * 86_400


class Machine:
    """A machine with a wall clock that a test sets, and a clock that never jumps."""

    def __init__(self):
        self.wall, self.steady = 1_800_000_000.0, 50.0
        self.clock = SteadyClock(lambda: self.wall, lambda: self.steady)

    def pass_by(self, seconds):
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def machine():
    return Machine()


def test_it_begins_with_the_wall_clock_and_goes_on_with_it(machine):
    began = machine.clock()
    assert began == machine.wall
    machine.pass_by(12.5)
    assert machine.clock() == machine.wall


@pytest.mark.parametrize("jump", [-HOUR, HOUR, -TEN_YEARS, TEN_YEARS])
def test_spans_are_right_within_a_tenth_while_the_wall_clock_jumps(machine, jump):
    began = machine.clock()
    machine.wall += jump
    assert machine.clock() == began
    for passed in range(1, 101):
        machine.pass_by(1.0)
        assert 0.9 * passed - 0.01 <= machine.clock() - began <= 1.1 * passed + 0.01


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_it_agrees_with_the_wall_clock_in_the_end(machine, jump):
    machine.clock()
    machine.wall += jump
    seen = [machine.clock()]
    for _ in range(601):
        machine.pass_by(60.0)
        seen.append(machine.clock())
    assert seen == sorted(seen)
    assert machine.clock() == pytest.approx(machine.wall, abs=0.01)


@pytest.mark.parametrize("jump", [-HOUR, HOUR, TEN_YEARS])
def test_a_jump_is_told_once(machine, jump):
    assert machine.clock.jumped() is None
    machine.wall += jump
    assert machine.clock.jumped() == pytest.approx(jump, abs=1.0)
    for _ in range(200):
        machine.pass_by(300.0)
        assert machine.clock.jumped() is None


def test_a_little_is_no_jump(machine):
    machine.wall += CLOCK_TOLERANCE - 1
    assert machine.clock.jumped() is None


def test_the_clock_of_this_machine_does_not_go_back():
    before = steady_seconds()
    assert steady_seconds() >= before
    assert abs(SteadyClock()() - time.time()) < CLOCK_TOLERANCE
