"""Facts about the channels of a search that are computed only once."""

from springhouse.planner.bounds import NO_LIMITS, ChannelBounds
from springhouse.planner.search.blocks import BASE, INCREMENTS, MONOTONE, STRONG
from springhouse.planner.search.part import Part
from springhouse.planner.search.widgets import workflow
from springhouse.simulate.paper_widgets import distributive_aggregation, join, stateless, union

FLOW = workflow(
    ["a", "b"],
    [
        distributive_aggregation("sums", "a"),
        stateless("shown", "sums"),
        join("both", "shown", "b"),
        union("all", "shown", "b"),
    ],
)
PART = Part(FLOW, ["sums", "shown", "both"], {"both": ChannelBounds({}, 5.0)})


def reading(channel, kind):
    return {(outlet.operator.name, socket.number) for outlet, socket in PART.readers(channel, kind)}


def test_only_channels_that_are_made_or_read():
    assert set(PART.channels) == {"a", "b", "sums", "shown", "both"}
    assert PART.limits["both"] == ChannelBounds({}, 5.0)
    assert PART.limits["a"] == NO_LIMITS
    assert PART.with_one_pathway == {"a", "b", "sums", "shown"}


def test_who_reads_a_kind():
    assert reading("a", BASE) == {("sums: batch", 0)}
    assert reading("a", STRONG) == reading("a", MONOTONE) == {("sums: incremental", 0)}
    assert reading("b", BASE) == {
        ("both: batch", 1),
        ("both: incremental", 1),
        ("both: asynchronous, driven by shown", 1),
    }


def test_a_side_of_which_only_deltas_are_read_may_stand_where_a_block_ends_if_another_moves():
    part = Part(FLOW, ["all"], {})
    found = {outlet.operator.name for outlet, _ in part.readers("b", BASE)}
    assert found == {"all: batch", "all: incremental"}


def test_which_converters_take_a_kind():
    def taking(kind):
        return {(each.source, each.target) for each in PART.converters("sums", kind)}

    assert taking(MONOTONE) == taking(STRONG) == {(STRONG, BASE), (STRONG, INCREMENTS)}
    assert taking(INCREMENTS) == {(INCREMENTS, BASE), (INCREMENTS, STRONG)}
    # All converters read a base, except those that need none.
    assert taking(BASE) == {
        (STRONG, BASE),
        (BASE, STRONG),
        (INCREMENTS, BASE),
        (INCREMENTS, STRONG),
    }
