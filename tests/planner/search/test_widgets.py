"""Section 3: the variants of a widget, by their signatures."""

import pytest

from springhouse.planner.search.blocks import BASE, INCREMENTS, STRONG, UPSERTS
from springhouse.planner.search.converters import upserts
from springhouse.planner.search.operators import Base, WidgetVariant
from springhouse.planner.search.widgets import Widget, view, workflow
from springhouse.simulate.paper_widgets import (
    cascade,
    distinct,
    distributive_aggregation,
    join,
    opaque,
    split,
    stateless,
    union,
)


def signature(operator) -> str:
    """An operator in the paper's notation: `B,Δ; B,Δ -> Δ`, with ! if synchronous."""

    def port(each):
        base = {Base.NONE: "", Base.OLD: "B", Base.NEW: "B'"}[each.base]
        if each.base is Base.NEW and not each.deltas:
            base = "B"
        return ",".join(filter(None, [base, "Δ" if each.deltas else ""])) or "-"

    kinds = {BASE: "B", STRONG: "Δ", INCREMENTS: "δ", UPSERTS: "δ"}
    made = "; ".join(kinds[each.kind] for each in operator.outputs)
    mark = " !" if operator.synchronous else ""
    return f"{'; '.join(map(port, operator.ports))} -> {made}{mark}"


def algebraic_aggregation(name: str, source: str, *, group_recompute: bool = False) -> Widget:
    """A function of distributive aggregates, as a mean is a function of a sum and a count."""
    parts = f"{name} parts"
    first = distributive_aggregation(parts, source, group_recompute=group_recompute)
    return first + stateless(name, parts)


SIGNATURES = [
    (stateless("v", "a"), ["B -> B", "Δ -> Δ"]),
    (stateless("v", "a", makes=upserts), ["B -> B", "Δ -> δ"]),
    (split("v", "a", ["x", "y"]), ["B -> B; B", "Δ -> Δ; Δ"]),
    (distributive_aggregation("v", "a"), ["B -> B", "Δ -> δ"]),
    (
        distributive_aggregation("v", "a", group_recompute=True),
        ["B -> B", "Δ -> δ", "B',Δ -> Δ"],
    ),
    (join("v", "a", "b"), ["B; B -> B !", "B,Δ; B,Δ -> Δ !", "Δ; B -> Δ", "B; Δ -> Δ"]),
    (union("v", "a", "b"), ["B; B -> B !", "Δ; Δ -> Δ !", "Δ; - -> Δ", "-; Δ -> Δ"]),
    (opaque("v", ["a", "b", "c"]), ["B; B; B -> B"]),
    (algebraic_aggregation("v", "a"), ["B -> B", "Δ -> δ", "B -> B", "Δ -> Δ"]),
    (distinct("v", "a"), ["B -> B", "Δ -> δ", "B -> B", "Δ -> Δ"]),
]


@pytest.mark.parametrize(("widget", "expected"), SIGNATURES)
def test_signatures(widget, expected):
    found = [signature(each).replace("B',Δ", "B',Δ") for each in widget.operators]
    assert found == expected


def test_names_are_unique():
    widgets = [widget for widget, _ in SIGNATURES]
    for widget in widgets:
        names = [each.name for each in widget.operators]
        assert len(names) == len(set(names))


def test_a_view_of_three_inputs_is_one_widget():
    variants = (
        WidgetVariant.BATCH,
        WidgetVariant.INCREMENTAL,
        WidgetVariant.GROUP_RECOMPUTE,
        WidgetVariant.ASYNCHRONOUS,
    )
    found = view("v", ["a", "b", "c"], variants, drivers=["a", "c"], strict=False).operators
    assert [signature(each) for each in found] == [
        "B; B; B -> B",
        "B,Δ; B,Δ; B,Δ -> Δ !",
        "B',Δ; B',Δ; B',Δ -> Δ !",
        "Δ; B; B -> Δ",
        "B; B; Δ -> Δ",
    ]
    assert all(each.in_place for each in found)
    assert [each.driver for each in found] == [None, None, None, "a", "c"]


def test_a_side_of_a_union_drives_with_any_change_and_nothing_else_is_looked_at():
    (driven,) = view(
        "v", ["a", "b"], [WidgetVariant.ASYNCHRONOUS], drivers=["a"], alone=["a"], strict=False
    ).operators
    assert signature(driven) == "Δ; - -> Δ"
    assert driven.driver == "a"
    # All data from one source is one pathway of a strict view: no part of it can advance alone.
    strict = view(
        "v", ["a", "b"], [WidgetVariant.ASYNCHRONOUS], drivers=["a"], alone=["a"]
    ).operators
    assert [port.untouched for port in strict[0].ports] == [False, False]


def test_a_view_that_grows_keeps_changes_monotone():
    variants = (WidgetVariant.BATCH, WidgetVariant.INCREMENTAL, WidgetVariant.ASYNCHRONOUS)
    found = view("v", ["a", "b"], variants, drivers=["a"], grows=True).operators
    assert [each.keeps_monotone for each in found] == [False, True, True]


def test_a_strict_view_wants_its_inputs_to_be_consistent():
    (batch,) = view("v", ["a", "b"], [WidgetVariant.BATCH]).operators
    assert batch.synchronous


def test_a_cascade_is_made_of_widgets_over_two():
    flow = workflow(["a", "b", "c"], [cascade(union, "all", ["a", "b", "c"])])
    assert flow.reads["all"] == ("all of 2", "c")
    assert flow.pathways("all") == ("a>all of 2", "b>all of 2", "c")


def test_internal_channels_carry_increments():
    flow = workflow(["a"], [distinct("v", "a")])
    assert flow.reads["v"] == ("v counts",)
    kinds = {each.source for each in flow.converters["v counts"]}
    assert kinds == {BASE, STRONG, INCREMENTS}


def test_tables_of_a_warehouse_need_no_converters():
    assert workflow(["a"], [view("v", ["a"], [WidgetVariant.BATCH])]).converters == {}
