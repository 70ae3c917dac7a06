"""Slowly changing dimensions: which values were valid, from when until when?"""

import pyarrow as pa
import pytest

from springhouse.flows.declare import Draft, flow

CITIES = pa.schema({"id": pa.int64(), "city": pa.string(), "at": pa.int64()})


def run(
    scd_type: int, dimension: list[dict[str, object]], changes: list[dict[str, object]]
) -> object:
    @flow
    def keeping(flow: Draft) -> None:
        seen = flow.read("changes", CITIES)
        known = "id BIGINT, city STRING, at BIGINT"
        if scd_type == 2:
            known = "id BIGINT, city STRING, valid_from BIGINT, valid_to BIGINT"
        now = seen.keep_history(
            flow.read("dimension", known), keys="id", sequence="at", scd_type=scd_type
        )
        now.write("new")

    graph = keeping.graph()
    given = {
        "dimension": pa.Table.from_pylist(dimension, graph.nodes["dimension"].outputs[0]),
        "changes": pa.Table.from_pylist(changes, CITIES),
    }
    rows = keeping.run(given)["new"].to_pylist()
    return [tuple(row.values()) for row in rows]


def change(id: int, city: str | None, at: int) -> dict[str, object]:
    return {"id": id, "city": city, "at": at}


def version(id: int, city: str, start: int, end: int | None) -> dict[str, object]:
    return {"id": id, "city": city, "valid_from": start, "valid_to": end}


def test_type_1_keeps_the_newest() -> None:
    before = [change(1, "Oslo", 10), change(2, "Rome", 10)]
    changes = [change(1, "Bergen", 30), change(1, "Bodø", 20), change(3, "Lima", 5)]
    assert run(1, before, changes) == [(1, "Bergen", 30), (2, "Rome", 10), (3, "Lima", 5)]


SCENARIOS = [
    ("the first", [], [change(1, "Oslo", 10)], [(1, "Oslo", 10, None)]),
    (
        "a change ends what was valid",
        [version(1, "Oslo", 10, None)],
        [change(1, "Bergen", 20)],
        [(1, "Oslo", 10, 20), (1, "Bergen", 20, None)],
    ),
    (
        "the same again is no change",
        [version(1, "Oslo", 10, None)],
        [change(1, "Oslo", 20), change(1, "Oslo", 30)],
        [(1, "Oslo", 10, None)],
    ),
    (
        "a late one comes between",
        [version(1, "Oslo", 10, 30), version(1, "Rome", 30, None)],
        [change(1, "Bergen", 20)],
        [(1, "Oslo", 10, 20), (1, "Bergen", 20, 30), (1, "Rome", 30, None)],
    ),
    (
        "keys are apart",
        [version(1, "Oslo", 10, None)],
        [change(2, "Oslo", 20)],
        [(1, "Oslo", 10, None), (2, "Oslo", 20, None)],
    ),
    (
        "nothing is a value too",
        [version(1, "Oslo", 10, None)],
        [change(1, None, 20), change(1, None, 30)],
        [(1, "Oslo", 10, 20), (1, None, 20, None)],
    ),
    ("nothing at all", [], [], []),
]


@pytest.mark.parametrize(("name", "before", "changes", "after"), SCENARIOS)
def test_type_2(
    name: str,
    before: list[dict[str, object]],
    changes: list[dict[str, object]],
    after: list[tuple[object, ...]],
) -> None:
    assert run(2, before, changes) == after, name
