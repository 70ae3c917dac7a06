"""State is bought when renting has cost as much, and kept while it earns its keep."""

from springhouse.lake.note import Note
from springhouse.lake.worth import building_seconds, worth_building, worth_keeping
from springhouse.units import Instant
from springhouse.views.compile import compile_view

BATCH = 4.0


def built(seconds: float) -> Note:
    return Note("replace", Instant(0.0), variant="full", seconds=seconds, stateful=True)


def recomputed(missed: float) -> Note:
    return Note("replace", Instant(0.0), variant="full", seconds=BATCH, missed=missed)


def refreshed(seconds: float) -> Note:
    return Note("merge", Instant(0.0), variant="incremental", seconds=seconds, stateful=True)


def building(query: str, inputs: dict[str, int], hidden_rows: int = 0) -> float:
    schemas = {"sales": {"shop": "int", "amount": "int"}, "shops": {"id": "int"}}
    return building_seconds(compile_view(query, schemas), inputs, hidden_rows, BATCH)


def test_hidden_columns_cost_little() -> None:
    query = "SELECT shop, sum(amount) AS amount FROM sales GROUP BY shop"
    assert building(query, {"sales": 1_000_000}) == 0.25 * BATCH


def test_a_hidden_table_costs_what_has_to_be_read_again_for_it() -> None:
    average = "(SELECT avg(amount) FROM sales WHERE shop = s.shop)"
    query = f"SELECT * FROM sales s WHERE amount > {average}"
    # Averages, then sales and averages: all sales twice, as the plain query does.
    assert building(query, {"sales": 1_000_000}) == 0.25 * BATCH
    # Shops again, for the averages of those only that are asked for.
    query = f"SELECT * FROM sales s, shops WHERE id = 7 AND shop = id AND amount > {average}"
    assert building(query, {"sales": 0, "shops": 1_000_000}) == BATCH


def test_rows_of_hidden_tables_have_to_be_written() -> None:
    query = "SELECT * FROM (SELECT shop, sum(amount) AS s FROM sales GROUP BY 1) ORDER BY s LIMIT 3"
    assert building(query, {"sales": 1_000_000}, 500_000) == 0.25 * BATCH + 1.0


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
