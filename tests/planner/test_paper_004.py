"""The worked examples of 004, with the paper's own numbers: Tables 1 to 4, sections 2.3, 2.4, 3.3.

The crawl and click-score data of Table 1 arrive, the planner decides after every crawl, and a tiny
executor joins bags of rows. The result must be Table 2, or Table 3 for asynchronous joins.
"""

from collections import Counter

import pytest
from _linear_costs import Linear, Price

from springhouse.planner.bounds import BoundInconsistency, BoundStaleness
from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.search.blocks import BASE, STRONG, Block, apply_block
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.planner import Planner
from springhouse.planner.search.widgets import workflow
from springhouse.planner.search.workflow_plan import ANY_DELTA, Situation
from springhouse.simulate.paper_widgets import join, union
from springhouse.units import Instant

HOUR = 3600.0
WEEK = 7 * 24 * HOUR


def moment(text: str) -> Instant:
    """A moment of the paper's week: `moment("Tue 11am")`."""
    day, hour = text.split()
    hours = int(hour[:-2]) + (12 if hour.endswith("pm") else 0)
    return Instant((("Sun", "Mon", "Tue", "Wed").index(day) * 24 + hours) * HOUR)


CRAWL_TIMES = ("Sun 3pm", "Mon 8am", "Tue 11am", "Tue 5pm", "Wed 2pm")
CLICK_TIMES = ("Mon 1am", "Tue 1am", "Wed 1am")
CHANNELS = {
    "crawl": Channel((0, 1, 2, 3, 4), tuple(map(moment, CRAWL_TIMES))),
    "clicks": Channel((0, 1, 2), tuple(map(moment, CLICK_TIMES))),
}

# Table 1. "Any prior data" before Mon 8am is empty.
CRAWLED = [
    {},
    {("a.com/x", "d1"): 1},
    {("a.com/y", "d2"): 1},
    {("b.com/r", "d3"): 1},
    {("a.com/z", "d4"): 1, ("b.com/s", "d5"): 1},
]
SCORES = [
    {("a.com", 18): 1},
    {("a.com", 18): -1, ("a.com", 21): 1, ("b.com", 7): 1},
    {("a.com", 21): -1, ("a.com", 22): 1, ("b.com", 7): -1, ("b.com", 14): 1},
]


def at(crawl, clicks) -> Provenance:
    """`at("Mon 8am", {"Mon 1am"})` for the paper's ⟨Mon 8am, {Mon 1am}⟩."""
    clicks = {clicks} if isinstance(clicks, str) else clicks
    return Provenance(
        {
            "crawl": frozenset({CRAWL_TIMES.index(crawl)}),
            "clicks": frozenset(CLICK_TIMES.index(each) for each in clicks),
        }
    )


def added(*bags) -> Counter:
    total = Counter()
    for bag in bags:
        for row, weight in bag.items():
            total[row] += weight
    return Counter({row: weight for row, weight in total.items() if weight})


def joined(pages, scores) -> Counter:
    found = Counter()
    for (url, digest), weight in pages.items():
        for (site, score), other in scores.items():
            if url.split("/")[0] == site:
                found[url, digest, score] += weight * other
    return found


class World:
    """The join of Figure 1, with real rows, planned after every crawl."""

    def __init__(self, bounds):
        self.flow = workflow(["crawl", "clicks"], [join("output", "crawl", "clicks")])
        prices = {each.name: Price(1.0, 1.0, 1.0) for each in self.flow.operators}
        # The tables represent large ones, so a full join costs too much without need.
        prices["output: batch"] = Price(1_000.0, 1.0)
        self.costs = Linear(prices, Price(1.0, 1.0, 1.0))
        outputs = {"output": ANY_DELTA}
        self.planner = Planner(self.flow, bounds, outputs)
        self.rows = {}
        self.held = at("Sun 3pm", "Mon 1am")
        self.content = Counter()
        self.emitted = []
        self.put(Block("output", BASE, self.held), Counter())
        self.arrive("crawl", 0)
        self.arrive("clicks", 0)

    def put(self, block, rows):
        rows = Counter({row: weight for row, weight in rows.items() if weight})
        self.rows[Block(block.channel, block.kind, block.end, block.start, len(rows))] = rows

    def arrive(self, name, version):
        history = {"crawl": CRAWLED, "clicks": SCORES}[name]
        end = Provenance({name: frozenset({version})})
        self.put(Block(name, BASE, end), added(*history[: version + 1]))
        if version:
            start = Provenance({name: frozenset({version - 1})})
            self.put(Block(name, STRONG, end, start), Counter(history[version]))

    def refresh(self, now):
        channels = {
            name: Channel(
                tuple(v for v in channel.versions if channel.since(v) < now),
                tuple(t for t in channel.timestamps if t < now),
            )
            for name, channel in CHANNELS.items()
        }
        blocks = {}
        for block in self.rows:
            blocks.setdefault(block.channel, []).append(block)
        situation = Situation(now, channels, blocks, {"output": self.held})
        plan = self.planner.plan(situation, self.costs)
        assert not plan.missed
        for step in plan.steps:
            if step.is_work:
                self.carry_out(step)
            else:
                rows = added(*(self.rows[block] for block in step.inputs))
                self.put(step.outputs[0], rows)
        (wish,) = plan.wishes
        (block,) = wish.blocks
        change = self.rows[block]
        self.content = added(self.content, change) if block.start else change
        self.held = apply_block(self.held, block)
        assert self.held == wish.reaches
        self.emitted.append((block, change, self.content))
        return plan

    def carry_out(self, step):
        read = [self.rows[block] for block in step.inputs]
        (made,) = step.outputs
        match step.operator.variant:
            case WidgetVariant.BATCH | WidgetVariant.ASYNCHRONOUS:
                self.put(made, joined(*read))
            case WidgetVariant.INCREMENTAL:
                bases = {
                    b.channel: r for b, r in zip(step.inputs, read, strict=True) if not b.start
                }
                deltas = {b.channel: r for b, r in zip(step.inputs, read, strict=True) if b.start}
                moved = deltas.get("clicks", Counter())
                pages = deltas.get("crawl", Counter())
                new = added(bases["clicks"], moved)
                self.put(made, added(joined(bases["crawl"], moved), joined(pages, new)))
            case _:
                raise AssertionError(step)


def run(bounds) -> World:
    world = World(bounds)
    arrivals = sorted(
        (channel.since(version), name, version)
        for name, channel in CHANNELS.items()
        for version in channel.versions[1:]
    )
    for when, name, version in arrivals:
        world.arrive(name, version)
        if name == "crawl":
            world.refresh(Instant(when + 1.0))
    return world


FRESH = BoundStaleness("output", "crawl", 0.0)

TABLE_2 = [
    {("a.com/x", "d1", 18): 1},
    {("a.com/x", "d1", 18): -1, ("a.com/x", "d1", 21): 1, ("a.com/y", "d2", 21): 1},
    {("b.com/r", "d3", 7): 1},
    {
        ("a.com/x", "d1", 21): -1,
        ("a.com/x", "d1", 22): 1,
        ("a.com/y", "d2", 21): -1,
        ("a.com/y", "d2", 22): 1,
        ("b.com/r", "d3", 7): -1,
        ("b.com/r", "d3", 14): 1,
        ("a.com/z", "d4", 22): 1,
        ("b.com/s", "d5", 14): 1,
    },
]
TABLE_3 = [
    {("a.com/x", "d1", 18): 1},
    {("a.com/y", "d2", 21): 1},
    {("b.com/r", "d3", 7): 1},
    {("a.com/z", "d4", 22): 1, ("b.com/s", "d5", 14): 1},
]


def test_table_2_synchronous_incremental_join():
    world = run([FRESH, BoundInconsistency("output", 0.0)])
    changes = [change for _, change, _ in world.emitted]
    assert changes == [Counter(each) for each in TABLE_2]
    assert world.content == Counter(
        {
            ("a.com/x", "d1", 22): 1,
            ("a.com/y", "d2", 22): 1,
            ("b.com/r", "d3", 14): 1,
            ("a.com/z", "d4", 22): 1,
            ("b.com/s", "d5", 14): 1,
        }
    )
    # Section 2.1: the snapshot in the bottom-right cell.
    assert world.held == at("Wed 2pm", "Wed 1am")


def test_table_3_and_section_2_3_asynchronous_incremental_join():
    world = run([FRESH, BoundInconsistency("output", WEEK)])
    assert [change for _, change, _ in world.emitted] == [Counter(each) for each in TABLE_3]
    assert [(block.start, block.end) for block, _, _ in world.emitted] == [
        (at("Sun 3pm", "Mon 1am"), at("Mon 8am", "Mon 1am")),
        (at("Mon 8am", "Tue 1am"), at("Tue 11am", "Tue 1am")),
        (at("Tue 11am", "Tue 1am"), at("Tue 5pm", "Tue 1am")),
        (at("Tue 5pm", "Wed 1am"), at("Wed 2pm", "Wed 1am")),
    ]
    assert world.content == added(*TABLE_3)
    # Section 2.1: three different click scores of a.com are present.
    assert world.held == at("Wed 2pm", {"Mon 1am", "Tue 1am", "Wed 1am"})


def test_section_2_4_bases_made_from_asynchronous_deltas():
    state = at("Sun 3pm", "Mon 1am")
    deltas = [
        (at("Sun 3pm", "Mon 1am"), at("Mon 8am", "Mon 1am")),
        (at("Mon 8am", "Tue 1am"), at("Tue 11am", "Tue 1am")),
        (at("Tue 11am", "Tue 1am"), at("Tue 5pm", "Tue 1am")),
        (at("Tue 5pm", "Wed 1am"), at("Wed 2pm", "Wed 1am")),
    ]
    reached = []
    for start, end in deltas:
        assert state.convertible(start, end)
        state = state.converted(start, end)
        reached.append(state)
    assert reached == [
        at("Mon 8am", "Mon 1am"),
        at("Tue 11am", {"Mon 1am", "Tue 1am"}),
        at("Tue 5pm", {"Mon 1am", "Tue 1am"}),
        at("Wed 2pm", {"Mon 1am", "Tue 1am", "Wed 1am"}),
    ]
    assert [each.consistent(CHANNELS) for each in reached] == [True, False, False, False]


def test_section_2_4_a_delta_must_begin_where_the_base_is_or_stand_still():
    mixed = at("Wed 2pm", {"Mon 1am", "Tue 1am"})
    assert not mixed.convertible(at("Wed 2pm", "Tue 1am"), at("Wed 2pm", "Wed 1am"))
    assert not mixed.convertible(at("Tue 5pm", "Wed 1am"), at("Wed 2pm", "Wed 1am"))


TABLE_4 = [
    (at("Mon 8am", "Mon 1am"), "Mon 8am", "Tue 1am", True),
    (at("Mon 8am", "Tue 1am"), "Tue 1am", "Tue 11am", True),
    (at("Tue 11am", "Mon 1am"), "Tue 11am", "Tue 1am", False),
    (at("Wed 2pm", {"Mon 1am", "Tue 1am", "Wed 1am"}), "Wed 2pm", "Tue 1am", False),
]


@pytest.mark.parametrize(("provenance", "left", "right", "consistent"), TABLE_4)
def test_table_4(provenance, left, right, consistent):
    assert provenance.interval(CHANNELS) == (moment(left), moment(right))
    assert provenance.consistent(CHANNELS) is consistent


def test_section_3_3_right_only_union():
    nine, ten = frozenset({9}), frozenset({10})
    flow = workflow(["first", "second"], [union("both", "first", "second")])
    right_only = next(each for each in flow.operators if each.driver == "second")
    assert [port.untouched for port in right_only.ports] == [True, False]
    delta = Block("both", STRONG, Provenance({"second": ten}), start=Provenance({"second": nine}))
    state = apply_block(Provenance({"first": nine, "second": nine}), delta)
    assert state == Provenance({"first": nine, "second": ten})
    hours = Channel((9, 10), (Instant(9 * HOUR), Instant(10 * HOUR)))
    assert not state.consistent({"first": hours, "second": hours})


def test_section_1_1_the_join_comes_back_before_the_bound_breaks():
    """One-sided joins leave old click scores behind; a full join repairs them in time."""
    world = run([FRESH, BoundInconsistency("output", 30 * HOUR)])
    variants = [block.kind for block, _, _ in world.emitted]
    # T+ of the last would be Wed 2pm and T- Tue 1am: 37 hours apart.
    assert variants == [STRONG, STRONG, STRONG, BASE]
    assert world.held == at("Wed 2pm", "Wed 1am")
    assert {score for (_, _, score) in world.content} == {22, 14}
