"""Which versions in the logs of tables become blocks?"""

from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.relaxed.stored_blocks import Stored, blocks_in_logs, held_in_logs
from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.widgets import view, workflow
from springhouse.units import Instant

FLOW = workflow(
    ["a", "b"],
    [view("u", ["a"], [WidgetVariant.BATCH]), view("v", ["u", "b"], [WidgetVariant.BATCH])],
    strict=["u", "v"],
)
CHANNELS = {
    "a": Channel(tuple(range(10)), tuple(Instant(10.0 * v) for v in range(10))),
    "b": Channel((0, 3), (Instant(0.0), Instant(25.0))),
}


def log(name, versions, change=MONOTONE):
    return [Stored(v, Provenance({name: frozenset({v})}), 100.0 + v, 1.0, change) for v in versions]


LOGS = {
    "a": log("a", range(10)),
    "b": log("b", (0, 3)),
    "u": [Stored(v, Provenance.of(a=a), 50.0, 2.0) for v, a in enumerate((1, 2, 6))],
    "v": [Stored(0, Provenance.of(a=2, b=0), 20.0, 2.0)],
}
READ = {"u": {"a": 6}, "v": {"u": 1, "b": 0}}


def told(channel, **changed):
    found = blocks_in_logs(FLOW, {**LOGS, **changed}, READ, CHANNELS, Instant(99.0))
    return [(block.kind, block.versions, block.rows) for block in found[channel]]


def test_a_table_is_there_where_readers_are_and_where_they_could_go():
    assert told("a") == [(BASE, (6, 6), 106.0), (BASE, (9, 9), 109.0), (MONOTONE, (6, 9), 3.0)]


def test_an_input_that_is_read_together_is_there_as_of_the_others_moment():
    # u has reflected version 6 of a since 60; b was at version 3 then, and v has read version 0.
    assert told("b") == [(BASE, (0, 0), 100.0), (BASE, (3, 3), 103.0), (MONOTONE, (0, 3), 1.0)]


def test_a_view_is_there_from_what_was_read_to_its_newest():
    assert told("u") == [(BASE, (1, 1), 50.0), (BASE, (2, 2), 50.0), (STRONG, (1, 2), 2.0)]


def test_a_change_that_nobody_knows_parts_the_log():
    broken = log("a", range(10))
    broken[8] = Stored(8, Provenance.of(a=8), 108.0, 1.0, None)
    assert told("a", a=broken) == [(BASE, (6, 6), 106.0), (BASE, (9, 9), 109.0)]


def test_of_many_versions_few_are_looked_at():
    assert len(told("a", a=log("a", range(10)))) == 3


def test_only_some_channels():
    found = blocks_in_logs(FLOW, LOGS, READ, CHANNELS, Instant(99.0), among=["b"])
    assert list(found) == ["b"]
    assert blocks_in_logs(FLOW, {}, {}, CHANNELS, Instant(99.0), among=["u"]) == {"u": []}


def test_what_readers_hold():
    assert held_in_logs(FLOW, LOGS) == {
        "u": Provenance.of(a=6),
        "v": Provenance.of(a=2, b=0),
    }
