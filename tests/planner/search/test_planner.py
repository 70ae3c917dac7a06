"""A planner of a warehouse: views at their stored state, over tables that keep their versions."""

from dataclasses import replace
from math import inf

import pytest

from springhouse.planner.bounds import BoundInconsistency, BoundStaleness
from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.relaxed.stored_blocks import Stored, blocks_in_logs, held_in_logs
from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG
from springhouse.planner.search.invocation_costs import Estimate
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.planner import Planner
from springhouse.planner.search.pruning import Switches
from springhouse.planner.search.widgets import view, workflow
from springhouse.planner.search.workflow_plan import ANY_DELTA, Situation
from springhouse.units import Instant

ALL = (
    WidgetVariant.BATCH,
    WidgetVariant.INCREMENTAL,
    WidgetVariant.GROUP_RECOMPUTE,
    WidgetVariant.ASYNCHRONOUS,
)


class Costs:
    """Batches cost by the row, changes by the changed row, and one second to start."""

    def __init__(self, **dear):
        self.dear = dear

    def estimate(self, operator, readings):
        *inputs, own = readings if len(readings) > len(operator.ports) else (*readings, None)
        bases = sum(each.base_rows for each in inputs)
        deltas = sum(each.delta_rows for each in inputs)
        cost = {
            WidgetVariant.BATCH: 1.0 + 0.01 * bases,
            WidgetVariant.INCREMENTAL: 1.0 + 0.1 * deltas,
            WidgetVariant.GROUP_RECOMPUTE: 5.0 + 0.01 * deltas,
            WidgetVariant.ASYNCHRONOUS: 1.0 + 0.02 * deltas,
        }[operator.variant]
        rows = own.base_rows if own else bases
        return Estimate(cost * self.dear.get(operator.outputs[0].channel, 1.0), (rows, deltas))


class Warehouse:
    """Tables with versions at given times, and views that were refreshed at some of them."""

    def __init__(self, tables, views, bounds, loose=()):
        self.tables = {
            name: Channel(tuple(range(len(at))), tuple(map(Instant, at)))
            for name, at in tables.items()
        }
        strict = [name for name in views if name not in loose]
        self.flow = workflow(
            list(tables),
            [
                view(name, inputs, ALL, drivers=inputs, strict=name in strict)
                for name, inputs in views.items()
            ],
            strict=strict,
        )
        bounds = [*bounds, *(BoundInconsistency(name, 0.0) for name in strict)]
        self.planner = Planner(self.flow, bounds, dict.fromkeys(views, ANY_DELTA))
        self.logs = {
            name: [
                Stored(v, Provenance({name: frozenset({v})}), 1000.0 + v, 1.0, MONOTONE)
                for v in channel.versions
            ]
            for name, channel in self.tables.items()
        }
        self.read = {}

    def refreshed(self, name, **versions):
        """Record that `name` was computed from these versions of its inputs."""
        log = self.logs.setdefault(name, [])
        found = []
        for each in self.flow.reads[name]:
            stored = next(s for s in self.logs[each] if s.version == versions[each])
            found.append((each, stored.provenance))
        made = self.flow.composed(name, found)
        log.append(Stored(len(log), made, 500.0, 1.0))
        self.read[name] = versions
        return self

    def reflects(self, name, **sets):
        provenance = Provenance({k.replace("__", ">"): frozenset(v) for k, v in sets.items()})
        self.logs.setdefault(name, []).append(Stored(0, provenance, 500.0))
        self.read[name] = {k.split("__")[-1]: max(v) for k, v in sets.items()}
        return self

    def situation(self, now):
        blocks = blocks_in_logs(self.flow, self.logs, self.read, self.tables, Instant(now))
        return Situation(Instant(now), self.tables, blocks, held_in_logs(self.flow, self.logs))

    def plan(self, now, costs=None, **switches):
        planner = self.planner
        planner.switches = replace(planner.switches, **switches)
        return planner.plan(self.situation(now), costs or Costs())


def steps(plan):
    return [
        (step.operator.name, step.outputs[0].end.as_json()) for step in plan.steps if step.is_work
    ]


FRESH = [BoundStaleness("v", None, 0.0)]


def test_a_view_that_is_up_to_date_wants_nothing():
    warehouse = Warehouse({"a": [0, 10]}, {"v": ["a"]}, FRESH).refreshed("v", a=1)
    assert warehouse.plan(11).steps == ()
    assert warehouse.plan(11).wishes == ()
    assert warehouse.planner.due(warehouse.situation(11), "v") == inf


def test_one_arrival_one_incremental_refresh():
    warehouse = Warehouse({"a": [0, 10]}, {"v": ["a"]}, FRESH).refreshed("v", a=0)
    plan = warehouse.plan(11)
    assert steps(plan) == [("v: incremental", {"a": [1]})]
    (step,) = plan.steps
    read = [(block.channel, block.versions) for block in step.inputs]
    assert read == [("a", (0, 0)), ("a", (0, 1)), ("v", (0, 0))]
    assert [block.kind for block in step.outputs] == [BASE, STRONG]
    (wish,) = plan.wishes
    assert (wish.asked, wish.reaches) == (("a",), Provenance.of(a=1))


def test_the_alternatives_are_told_with_their_costs():
    warehouse = Warehouse({"a": [0, 10]}, {"v": ["a"]}, FRESH).refreshed("v", a=0)
    (wish,) = warehouse.plan(11, stop_early=False).wishes
    assert {each.operator: each.cost for each in wish.alternatives} == pytest.approx(
        {
            "v: incremental": 1.1,
            "v: group recompute": 5.01,
            "v: batch": 1.0 + 10.01,
        }
    )


@pytest.mark.parametrize(
    ("changed", "variant"),
    [(10.0, "v: incremental"), (200.0, "v: group recompute"), (900.0, "v: batch")],
)
def test_the_variant_depends_on_how_much_changed(changed, variant):
    warehouse = Warehouse({"a": [0, 10]}, {"v": ["a"]}, FRESH).refreshed("v", a=0)
    warehouse.logs["a"][1] = replace(warehouse.logs["a"][1], changed_rows=changed)
    assert steps(warehouse.plan(11)) == [(variant, {"a": [1]})]


def test_a_view_that_was_never_made_is_made_from_all():
    warehouse = Warehouse({"a": [0, 10], "b": [0]}, {"v": ["a", "b"]}, FRESH)
    assert steps(warehouse.plan(11)) == [("v: batch", {"a": [1], "b": [0]})]


def test_a_plan_refreshes_what_lies_above_first():
    warehouse = Warehouse({"a": [0, 10]}, {"u": ["a"], "v": ["u"]}, FRESH).refreshed("u", a=0)
    warehouse.refreshed("v", u=0)
    assert [name for name, _ in steps(warehouse.plan(11))] == [
        "u: incremental",
        "v: incremental",
    ]


def test_a_diamond_never_mixes_two_states_of_one_table():
    views = {"l": ["a"], "r": ["a"], "v": ["l", "r"]}
    warehouse = Warehouse({"a": [0, 10, 20]}, views, FRESH)
    warehouse.refreshed("l", a=0).refreshed("r", a=0).refreshed("v", l=0, r=0).refreshed("l", a=1)
    plan = warehouse.plan(21)
    assert sorted(steps(plan)) == [
        ("l: incremental", {"a": [2]}),
        ("r: incremental", {"a": [2]}),
        ("v: incremental", {"a": [2]}),
    ]
    (wish,) = plan.wishes
    assert wish.reaches.consistent(warehouse.tables)


def test_each_table_is_written_once_in_a_plan():
    views = {"u": ["a"], "v": ["u"], "w": ["u", "b"]}
    bounds = [BoundStaleness(name, None, 0.0) for name in views]
    warehouse = Warehouse({"a": [0, 10], "b": [0, 5]}, views, bounds)
    warehouse.refreshed("u", a=0).refreshed("v", u=0).refreshed("w", u=0, b=0)
    plan = warehouse.plan(11)
    assert not plan.missed
    written = [step.operator.outputs[0].channel for step in plan.steps if step.is_work]
    assert sorted(written) == ["u", "v", "w"]
    assert plan.cost == pytest.approx(sum(step.cost for step in plan.steps))


URGENT = [
    BoundStaleness("v", "orders", 0.0),
    BoundStaleness("v", "people", 86_400.0),
    BoundInconsistency("v", 7_200.0),
]


def urgent_warehouse(people):
    tables = {"orders": [0.0, 3600.0, 7300.0, 9000.0], "people": people}
    return Warehouse(tables, {"v": ["orders", "people"]}, URGENT, loose=["v"])


def test_an_urgent_input_drives_and_the_other_is_read_as_it_is():
    warehouse = urgent_warehouse([0.0, 3700.0]).refreshed("v", orders=1, people=0)
    warehouse.tables["orders"] = Channel((0, 1, 2), warehouse.tables["orders"].timestamps[:3])
    warehouse.logs["orders"] = warehouse.logs["orders"][:3]
    plan = warehouse.plan(7301.0)
    assert steps(plan) == [("v: asynchronous, driven by orders", {"orders": [2], "people": [0, 1]})]


def test_a_full_refresh_comes_back_before_the_bound_breaks():
    """People of version 0 were the newest until 1,000: too long ago at 9,000."""
    warehouse = urgent_warehouse([0.0, 1000.0]).reflects("v", orders={2}, people={0, 1})
    plan = warehouse.plan(9001.0)
    ((name, reached),) = steps(plan)
    assert name == "v: batch"
    assert reached == {"orders": [3], "people": [1]}


def test_a_promise_of_a_minute_is_due_a_minute_after_the_arrival():
    warehouse = Warehouse({"a": [0, 10]}, {"v": ["a"]}, [BoundStaleness("v", None, 60.0)])
    warehouse.refreshed("v", a=0)
    assert warehouse.plan(11).wishes == ()
    assert warehouse.planner.due(warehouse.situation(11), "v") == 70.0
    assert len(warehouse.plan(70).steps) == 1


def test_what_is_fresh_enough_rests():
    """The report may be a day old, so the expensive view above it is not refreshed for it."""
    views = {"dear": ["people"], "v": ["orders", "dear"]}
    bounds = [
        BoundStaleness("v", "orders", 0.0),
        BoundStaleness("dear", None, 86_400.0),
        BoundInconsistency("v", 86_400.0),
    ]
    tables = {"orders": [0.0, 100.0], "people": [0.0, 50.0]}
    warehouse = Warehouse(tables, views, bounds, loose=["v"])
    warehouse.refreshed("dear", people=0).refreshed("v", orders=0, dear=0)
    plan = warehouse.planner.plan(warehouse.situation(101.0), Costs(), among=["v"])
    assert steps(plan) == [
        ("v: asynchronous, driven by orders", {"orders": [1], "people>dear": [0]})
    ]


def test_only_what_is_asked_for_is_planned():
    views = {"v": ["a"], "w": ["a"]}
    warehouse = Warehouse({"a": [0, 10]}, views, [BoundStaleness(n, None, 0.0) for n in views])
    warehouse.refreshed("v", a=0).refreshed("w", a=0)
    plan = warehouse.planner.plan(warehouse.situation(11), Costs(), among=["w"])
    assert [wish.channel for wish in plan.wishes] == ["w"]
    assert len(plan.steps) == 1


def test_a_wish_that_nothing_can_grant_is_told():
    warehouse = Warehouse({"a": [0, 10]}, {"v": ["a"]}, FRESH).refreshed("v", a=0)
    flow = workflow(["a"], [view("v", ["a"], [])], strict=["v"])
    assert flow.operators == ()
    warehouse.planner.workflow = replace(warehouse.flow, operators=())
    situation = replace(warehouse.situation(11), blocks={"a": [], "v": []})
    planner = Planner(warehouse.flow, FRESH, {"v": ANY_DELTA}, Switches())
    plan = planner.plan(situation, Costs())
    assert plan.missed == ("v",)
    assert plan.steps == ()
