"""The minimum cost of a plan that uses an old base, or a delta that starts from it."""

from _linear_costs import Linear, Price

from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import BASE, STRONG, Block
from springhouse.planner.search.laziness import Laziness
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.part import Part
from springhouse.planner.search.widgets import view, workflow
from springhouse.simulate.paper_widgets import split, stateless, union

AT = [Provenance.of(a=version) for version in range(4)]
FLOW = workflow(["a"], [stateless("u", "a")])
PRICES = Linear(
    {
        "u: batch": Price(5.0, 0.1),
        "a: base from strong delta": Price(1.0, 0.5),
        "a: strong delta from base": Price(2.0, 0.5),
        "u: base from strong delta": Price(1.0, 0.2),
        "u: strong delta from base": Price(2.0, 0.2),
    }
)
BLOCKS = {
    "a": [
        Block("a", BASE, AT[0], rows=100.0),
        Block("a", STRONG, AT[2], AT[0], 5.0),
        Block("a", STRONG, AT[3], AT[2], 5.0),
    ],
    "u": [Block("u", BASE, AT[0], rows=40.0)],
}


def laziness(flow=FLOW, reached=2):
    seen = {"a": {"a": reached}, "u": {"a": reached}}
    return Laziness(flow, part_of(flow), BLOCKS, seen, PRICES)


def part_of(flow):
    return Part(flow, [each for each in flow.order if each not in flow.inputs], {})


def test_a_base_is_of_use_to_whoever_reads_it_at_the_lowest_cost():
    assert laziness().least(BLOCKS["a"][0]) == 5.0 + 0.1 * 100
    assert laziness().least(BLOCKS["u"][0]) == 1.0 + 0.2 * 40


def test_a_delta_that_starts_before_all_consumers_needs_a_base_here_or_below():
    assert laziness().least(BLOCKS["a"][1]) == 1.0 + 0.2 * 40


def test_a_delta_that_starts_where_consumers_are_is_looked_at_at_once():
    assert laziness().least(BLOCKS["a"][2]) == 0.0
    assert laziness(reached=0).least(BLOCKS["a"][1]) == 0.0


def test_nothing_is_known_without_consumers():
    unseen = Laziness(FLOW, part_of(FLOW), BLOCKS, {}, PRICES)
    assert unseen.least(BLOCKS["a"][1]) == 0.0


def test_tables_of_a_warehouse_are_never_late():
    flow = workflow(["a"], [view("u", ["a"], [WidgetVariant.BATCH])])
    assert {laziness(flow).least(block) for block in BLOCKS["a"]} == {0.0}


NEWS_FIRST = workflow(
    ["log"], [split("split", "log", ["news", "rest"]), union("all", "news", "rest")]
)
LOG = [Provenance.of(log=version) for version in range(4)]


def news_first(rest_is_ready):
    """The output has the news up to 2 and the rest up to 0; the rest may be ready up to 2."""
    blocks = {
        "log": [Block("log", BASE, LOG[0]), Block("log", STRONG, LOG[2], LOG[0])],
        "news": [Block("news", BASE, LOG[0])],
        "rest": [Block("rest", BASE, LOG[0])],
        "all": [],
    }
    if rest_is_ready:
        blocks["rest"].append(Block("rest", STRONG, LOG[2], LOG[0]))
    reached = {
        "log": {"log": 0},
        "news": {"log": 2},
        "rest": {"log": 0},
        "all": {"log>news": 2, "log>rest": 0},
    }
    lazy = Laziness(NEWS_FIRST, part_of(NEWS_FIRST), blocks, reached, Linear())
    return lazy.least(blocks["log"][1])


def test_what_lies_ready_downstream_is_not_made_again():
    assert news_first(rest_is_ready=True) > 0.0


def test_what_was_not_made_yet_is_looked_at_at_once():
    assert news_first(rest_is_ready=False) == 0.0
