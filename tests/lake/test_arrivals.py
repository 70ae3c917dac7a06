"""How are arriving rows sorted? Without Spark, which has already computed the verdicts."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from springhouse.errors import ExpectationFailed, SchemaError
from springhouse.flows.flow_settings import Settings
from springhouse.flows.policy_choice import PolicyName
from springhouse.lake.flows.arrival_graph import TableShare
from springhouse.lake.flows.arrivals import ArrivalOutcome, arrive, arrive_shared
from springhouse.lake.flows.flow_configuration import flow_settings, settings_from
from springhouse.project.declarations.declaration import (
    Expectation,
    OnViolation,
    Place,
    Project,
    Table,
)
from springhouse.project.settings import FLOW_POLICY

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SETTINGS = Settings(pack_bytes=64, queue_packs=1)


def expect(name: str, fate: OnViolation) -> Expectation:
    return Expectation(name, f"{name} holds", fate, Place("orders.sql", 3))


def rows(amounts: list[int | None], **verdicts: list[bool]) -> pa.Table:
    """Orders, with a verdict for each expectation as `with_verdicts` adds them."""
    columns: dict[str, object] = {
        "amount": pa.array(amounts, pa.int64()),
        "at": pa.array([NOON] * len(amounts), pa.timestamp("us", tz="UTC")),
    }
    for number, kept in enumerate(verdicts.values()):
        columns[f"__springhouse_kept_{number}"] = pa.array(kept)
    columns["__springhouse_json"] = [f'{{"amount": {amount}}}' for amount in amounts]
    return pa.table(columns)


def test_rows_stay_go_aside_or_vanish_and_are_counted_in_one_pass() -> None:
    expectations = [
        expect("paid", OnViolation.QUARANTINE),
        expect("small", OnViolation.DROP_ROW),
        expect("even", OnViolation.KEEP),
    ]
    given = rows(
        [1, 0, 900, 4, 0],
        paid=[True, False, True, True, False],
        small=[True, True, False, True, True],
        even=[False, True, True, True, True],
    )
    kept, arrived = arrive(given, expectations, "orders", "at", SETTINGS)
    assert kept.to_pylist() == [{"amount": 1, "at": NOON}, {"amount": 4, "at": NOON}]
    assert arrived.set_aside == [("expectation paid: paid holds", '{"amount": 0}')] * 2
    assert arrived.violations == {"paid": 2, "small": 1, "even": 1}
    assert arrived.newest == NOON.timestamp()
    did = arrived.activities["expectations"]
    assert (did["rows_in"], did["rows_out"]) == (5, 4), "two stay, two are set aside"
    assert arrived.activities["write orders"]["rows_in"] == 2


def test_what_must_not_be_broken_is_counted_over_all_rows_before_it_fails() -> None:
    expectations = [expect("paid", OnViolation.FAIL_UPDATE)]
    given = rows([0] * 50, paid=[False] * 50)
    with pytest.raises(ExpectationFailed, match='50 rows for "orders" broke'):
        arrive(given, expectations, "orders", None, SETTINGS)


def test_no_rows_are_no_rows() -> None:
    kept, arrived = arrive(rows([]), [], "orders", "nowhere", SETTINGS)
    assert kept.schema.names == ["amount", "at"]
    assert (kept.num_rows, arrived.newest) == (0, None)


def test_the_column_that_dates_records_may_be_spelled_otherwise_but_must_be_there() -> None:
    assert arrive(rows([1]), [], "orders", "AT", SETTINGS)[1].newest == NOON.timestamp()
    with pytest.raises(SchemaError, match='there is no column "placed_at"'):
        arrive(rows([1]), [], "orders", "placed_at", SETTINGS)


def test_every_policy_of_the_settings_runs() -> None:
    for word in FLOW_POLICY.type.words:
        chosen = settings_from({"springhouse.flows.policy": word})
        assert arrive(rows([1, 2]), [], "orders", None, chosen)[0].num_rows == 2
    assert settings_from({}).policy is PolicyName.LOCALITY
    sized = {"springhouse.flows.pack-bytes": "1000", "springhouse.flows.queue-packs": "7"}
    assert (settings_from(sized).pack_bytes, settings_from(sized).queue_packs) == (1000, 7)


def test_several_tables_pick_their_rows_and_columns_out_of_one_pass() -> None:
    given = pa.table(
        {
            "id": pa.array(range(6), pa.int64()),
            "double": pa.array([0, 2, 4, None, None, None], pa.int64()),
            "low": pa.array([True] * 3 + [False] * 3),
            "fair": pa.array([True, False, True, None, None, None]),
            "text": [f'{{"n": {n}}}' for n in range(6)],
        }
    )
    fair = expect("fair", OnViolation.QUARANTINE)
    never = expect("never", OnViolation.FAIL_UPDATE)
    arrivals = [
        TableShare("all", (("number", "id"),), None, (), None),
        TableShare(
            "small",
            (("id", "id"), ("twice", "double"), ("__springhouse_kept_0", "fair"),
             ("__springhouse_json", "text")),
            "low", (fair,), None,
        ),
        TableShare("failing", (("id", "id"), ("__springhouse_kept_0", "fair")), "low", (never,),
        None),
    ]  # fmt: skip
    kept, arrived = arrive_shared(given, arrivals, SETTINGS)
    assert kept["all"].to_pydict() == {"number": [0, 1, 2, 3, 4, 5]}
    assert kept["small"].to_pylist() == [{"id": 0, "twice": 0}, {"id": 2, "twice": 4}]
    small, failing = arrived["small"], arrived["failing"]
    assert isinstance(small, ArrivalOutcome)
    assert small.set_aside == [("expectation fair: fair holds", '{"n": 1}')]
    assert small.violations == {"fair": 1}
    assert {name: did["rows_in"] for name, did in small.activities.items()} == {
        "read what arrived": 0,
        "select": 6,
        "expectations": 3,
        "write small": 2,
        "write the quarantine": 1,
    }
    # An expectation that must hold stops only its own table.
    assert isinstance(failing, ExpectationFailed)
    assert '1 row for "failing" broke' in str(failing)


def test_what_a_table_says_of_its_flow_goes_before_what_its_project_says() -> None:
    place = Place("orders.sql", 1)
    table = Table("orders", place, flow_settings={"springhouse.flows.policy": "mixed"})
    said = {"springhouse.flows.policy": "round-robin", "springhouse.flows.pack-bytes": "1000"}
    project = Project("shop", Path(), "storage", None, None, said, {}, {}, {}, (), {})
    found = flow_settings(project, table)
    assert (found.policy, found.pack_bytes) == (PolicyName.MIXED, 1000)
    assert flow_settings(project, Table("more", place)).policy is PolicyName.ROUND_ROBIN
