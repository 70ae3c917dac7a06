"""Channels, and the pathways that the workflow distinguishes."""

import pytest

from springhouse.errors import SpringhouseError
from springhouse.planner.provenance import Provenance
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.widgets import view, workflow
from springhouse.simulate.paper_widgets import split, stateless, union

BATCH = (WidgetVariant.BATCH,)


def views(declared, **options):
    loose = options.pop("loose", ())
    widgets = [
        view(name, inputs, BATCH, strict=name not in loose) for name, inputs in declared.items()
    ]
    strict = [name for name in declared if name not in loose]
    return workflow(["orders", "people"], widgets, strict=strict, **options)


DIAMOND = {"left": ["orders"], "right": ["orders", "people"], "both": ["left", "right"]}


def test_a_consistent_view_has_one_pathway_per_source():
    flow = views(DIAMOND)
    assert flow.pathways("both") == ("orders", "people")
    assert flow.pathways("orders") == ("orders",)


def test_a_view_that_may_be_inconsistent_tells_its_inputs_apart():
    flow = views(DIAMOND, loose=["both"])
    assert flow.pathways("both") == ("orders>left", "orders>right", "people>right")
    assert flow.through_input("both", "right") == ("orders>right", "people>right")


def test_what_moves_as_one_through_a_view_is_one():
    flow = views(DIAMOND | {"top": ["both", "orders"]}, loose=["both", "top"])
    assert flow.pathways("top") == ("orders>both", "people>both", "orders")


def test_pathways_by_a_table_that_a_bound_names_stay_apart():
    declared = DIAMOND | {"top": ["both", "orders"]}
    flow = views(declared, loose=["both", "top"], named=["left"])
    assert set(flow.pathways("top")) == {"orders>left>both", "orders>both", "people>both", "orders"}
    assert flow.courses["top"] == {
        "orders>left>both": {("orders", "left", "both")},
        "orders>both": {("orders", "both")},
        "people>both": {("people", "both")},
        "orders": {("orders",)},
    }


def test_a_pathway_that_is_one_with_others_stands_for_the_courses_of_all():
    declared = DIAMOND | {"top": ["both", "orders"]}
    flow = views(declared, loose=["top"], named=["left", "right"])
    assert flow.pathways("top") == ("orders>both", "people>both", "orders")
    assert flow.courses["top"]["orders>both"] == {
        ("orders", "left", "both"),
        ("orders", "right", "both"),
    }


def test_named_tables_keep_stacked_diamonds_from_multiplying_pathways():
    declared, top = {}, "orders"
    for number in range(50):
        left, right, both = f"l{number}", f"r{number}", f"b{number}"
        declared |= {left: [top], right: [top], both: [left, right]}
        top = both
    flow = views(declared, loose=declared, named=["l1", "orders", "r30"])
    assert len(flow.pathways(top)) == 8
    assert set(flow.courses[top]["orders>l1>r30>l49"]) == {("orders", "l1", "r30", "l49")}


def test_pieces_of_an_asynchronous_union_stay_apart_all_the_way():
    flow = workflow(
        ["log"],
        [
            split("split", "log", ["news", "other"]),
            union("all", "other", "news"),
            stateless("shown", "all"),
        ],
        strict=["shown"],
    )
    assert flow.pathways("shown") == ("log>other>all", "log>news>all")


@pytest.mark.parametrize("loose", [False, True])
def test_stacked_diamonds_do_not_multiply_pathways(loose):
    declared, top = {}, "orders"
    for number in range(200):
        left, right, both = f"l{number}", f"r{number}", f"b{number}"
        declared |= {left: [top], right: [top], both: [left, right]}
        top = both
    flow = views(declared, loose=declared if loose else ())
    assert len(flow.pathways(top)) == (2 if loose else 1)


def test_composition_and_projection():
    flow = views(DIAMOND, loose=["both"])
    made = flow.composed(
        "both", [("left", Provenance.of(orders=3)), ("right", Provenance.of(orders=2, people=1))]
    )
    assert made.as_json() == {"orders>left": [3], "orders>right": [2], "people>right": [1]}
    assert flow.projected("both", "right", made) == Provenance.of(orders=2, people=1)
    strict = views(DIAMOND)
    mixed = strict.composed(
        "both", [("left", Provenance.of(orders=3)), ("right", Provenance.of(orders=2, people=1))]
    )
    assert mixed.as_json() == {"orders": [2, 3], "people": [1]}


def test_where_all_names_stay_provenance_stays():
    flow = views(DIAMOND, loose=["both"])
    then = Provenance.of(orders=3)
    assert flow.composed("left", [("orders", then)]) is then
    assert flow.projected("left", "orders", then) is then
    whole = Provenance.of(orders=3, people=1)
    assert flow.projected("right", "orders", whole) == then


def test_old_provenance_in_the_pathways_of_today():
    strict, loose = views(DIAMOND), views(DIAMOND, loose=["both"])
    then = Provenance({"orders": frozenset({4}), "people": frozenset({1})})
    now = loose.recast("both", then)
    assert now.as_json() == {"orders>left": [4], "orders>right": [4], "people>right": [1]}
    mixed = Provenance({"orders>left": frozenset({4}), "orders>right": frozenset({2})})
    assert strict.recast("both", mixed).as_json() == {"orders": [2, 4]}
    assert strict.recast("both", then) == then


def test_what_lies_above():
    flow = views(DIAMOND)
    assert flow.above(["left"]) == {"left", "orders"}
    assert flow.above(["both"]) == {"both", "left", "right", "orders", "people"}


def test_circles_and_holes():
    with pytest.raises(SpringhouseError, match="in a circle"):
        _ = workflow([], [view("a", ["b"], BATCH), view("b", ["a"], BATCH)]).order
    with pytest.raises(SpringhouseError, match='nothing makes the channel "b"'):
        _ = workflow([], [view("a", ["b"], BATCH)]).order
