"""State is bought when renting has cost as much, and kept while it earns its keep."""

from springhouse.lake.delta.note import Note
from springhouse.planner.way.state_worth import overpaid_so_far, worth_building, worth_keeping
from springhouse.units import Instant

BATCH = 4.0


def built(seconds: float) -> Note:
    return Note("replace", Instant(0.0), variant="full", seconds=seconds, stateful=True)


def recomputed(missed: float) -> Note:
    return Note("replace", Instant(0.0), variant="full", seconds=BATCH, missed=missed)


def refreshed(seconds: float) -> Note:
    return Note("merge", Instant(0.0), variant="incremental", seconds=seconds, stateful=True)


def test_state_is_built_when_its_absence_has_cost_as_much() -> None:
    assert not worth_building(3.0, [], building_seconds=4.0)
    assert worth_building(3.0, [recomputed(3.0)], building_seconds=4.0)


def test_what_was_missed_before_there_was_state_is_forgotten() -> None:
    notes = [recomputed(3.0), built(8.0), refreshed(1.0), recomputed(0.0)]
    assert not worth_building(3.0, notes, building_seconds=4.0)


def test_one_large_change_among_small_ones_does_not_cost_the_state() -> None:
    assert worth_keeping([built(8.0), *[refreshed(0.5)] * 4], BATCH, building_seconds=4.0)


def test_state_is_given_up_when_changes_stay_large() -> None:
    small = [refreshed(0.5)] * 4
    assert not worth_keeping([*small, built(8.0)], BATCH, building_seconds=1.0)
    assert not worth_keeping([recomputed(0.0)] * 5, BATCH, building_seconds=0.2)
    assert not worth_keeping([], BATCH, building_seconds=0.2)


def test_state_that_saves_little_is_not_kept() -> None:
    assert not worth_keeping([refreshed(3.5)] * 5, BATCH, building_seconds=1.5)


def test_state_is_given_up_when_its_use_has_cost_as_much() -> None:
    assert overpaid_so_far([refreshed(4.5)] * 3, BATCH) == 1.5
    # Savings from before do not count, and one saving ends the series of losses.
    assert overpaid_so_far([refreshed(0.5), refreshed(4.5)], BATCH) == 0.5
    assert overpaid_so_far([refreshed(4.5), refreshed(0.5)], BATCH) == 0.0
