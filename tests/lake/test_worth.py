"""State is bought when renting has cost as much, and kept while it earns its keep."""

from springhouse.lake.note import Note
from springhouse.lake.worth import building_seconds, worth_building, worth_keeping
from springhouse.units import Instant

BATCH = 4.0


def built(seconds: float) -> Note:
    return Note("replace", Instant(0.0), variant="full", seconds=seconds, stateful=True)


def recomputed(missed: float) -> Note:
    return Note("replace", Instant(0.0), variant="full", seconds=BATCH, missed=missed)


def refreshed(seconds: float) -> Note:
    return Note("merge", Instant(0.0), variant="incremental", seconds=seconds, stateful=True)


def test_building_takes_what_it_took_beyond_a_plain_recomputation() -> None:
    assert building_seconds([built(7.0), built(6.0)], BATCH) == 2.0
    assert building_seconds([], BATCH) == BATCH


def test_a_cold_start_is_not_what_building_takes() -> None:
    assert building_seconds([built(60.0)], BATCH) == 2 * BATCH
    assert building_seconds([built(4.0)], BATCH) == 0.1 * BATCH


def test_state_is_built_when_its_absence_has_cost_as_much() -> None:
    assert not worth_building(3.0, [], BATCH)
    assert worth_building(3.0, [recomputed(3.0)], BATCH)


def test_what_was_missed_before_there_was_state_is_forgotten() -> None:
    notes = [recomputed(3.0), built(8.0), refreshed(1.0), recomputed(0.0)]
    assert not worth_building(3.0, notes, BATCH)


def test_one_large_change_among_small_ones_does_not_cost_the_state() -> None:
    assert worth_keeping([built(8.0), *[refreshed(0.5)] * 4], BATCH)


def test_state_is_given_up_when_changes_stay_large() -> None:
    small = [refreshed(0.5)] * 3
    assert worth_keeping([*small, built(8.0)], BATCH)
    assert not worth_keeping([*small, *[built(8.0)] * 3], BATCH)
    assert not worth_keeping([recomputed(0.0)] * 5, BATCH)
    assert not worth_keeping([], BATCH)
