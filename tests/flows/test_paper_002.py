"""002, Task scheduling in data stream processing: the choice of a task, nodes, and sleep."""

import pyarrow as pa
import pytest

from springhouse.flows.declare import Draft, flow
from springhouse.flows.endpoints import Collected
from springhouse.flows.engine import Engine
from springhouse.flows.flow_graph import Edge, FlowGraph, FlowNode, NodeKind
from springhouse.flows.flow_settings import Settings
from springhouse.flows.item import Item
from springhouse.flows.policies.first_come import FirstCome
from springhouse.flows.policies.locality import Locality
from springhouse.flows.policy_choice import PolicyName
from springhouse.flows.request import FlowTask, Request, TaskUrgency
from springhouse.flows.row_pack import LEAST_BYTES
from springhouse.flows.run import Pool, request_of
from springhouse.flows.states import OperatorState, StateEvent, makes_a_task, next_state
from springhouse.flows.topology import Topology
from springhouse.units import Instant

SCHEMA = pa.schema({"a": pa.int64()})
NOBODY: tuple[int, ...] = (0, 0)


class Nothing:
    def take(self, port: int, pack: pa.RecordBatch) -> tuple[()]:
        return ()

    def end(self, port: int) -> tuple[()]:
        return ()


def request() -> Request:
    return Request(FlowGraph({}, ()), {}, now=Instant(0), limit=1)


def task(of: Request, name: str, thread: int | None = None) -> FlowTask:
    """A task: immediate if a thread created it, else deferred."""
    item = Item(0, FlowNode(name, NodeKind.ACTIVITY, (SCHEMA,), (SCHEMA,)), Nothing())
    urgency = TaskUrgency.DEFERRED if thread is None else TaskUrgency.IMMEDIATE
    return FlowTask(of, item, urgency, thread)


def taken(policy: Locality | FirstCome, thread: int) -> str | None:
    turn = policy.next(thread)
    return turn.task.item.name if turn else None


def test_section_3_1_an_operator_that_is_scheduled_while_it_runs_runs_again_afterwards() -> None:
    running = next_state(next_state(OperatorState.NOTHING, StateEvent.SCHEDULED), StateEvent.BEGAN)
    marked = next_state(next_state(running, StateEvent.SCHEDULED), StateEvent.SCHEDULED)
    assert marked is OperatorState.RUNNING_AND_SCHEDULED
    after = next_state(marked, StateEvent.FINISHED)
    assert after is OperatorState.SCHEDULED
    assert makes_a_task(marked, after)
    assert next_state(running, StateEvent.FINISHED) is OperatorState.NOTHING


def test_section_3_1_an_operator_never_begins_twice() -> None:
    with pytest.raises(AssertionError):
        next_state(OperatorState.RUNNING, StateEvent.BEGAN)


def test_section_5_1_the_five_steps() -> None:
    policy = Locality([(0, 1), (2, 3)])
    old, new = request(), request()
    for given in (old, new):
        policy.admit(given, (2, 0))
    policy.add(task(new, "new deferred, first"))
    assert taken(policy, 0) == "new deferred, first", "there is nothing else"
    for made in (
        task(old, "immediate, older", thread=0),
        task(old, "immediate, newer", thread=0),
        task(old, "old deferred, first"),
        task(old, "old deferred, second"),
        task(new, "new deferred, second"),
        task(new, "new deferred, third"),
        task(new, "neighbour, older", thread=1),
        task(new, "neighbour, newer", thread=1),
        task(new, "other node", thread=2),
    ):
        policy.add(made)
    assert [taken(policy, 0) for _ in range(9)] == [
        "immediate, newer",  # 1: the newest of its own
        "immediate, older",
        "old deferred, first",  # 2: the oldest of the request that it worked on last
        "old deferred, second",
        "new deferred, second",  # 3: the oldest of the oldest request that has any
        "new deferred, third",
        "neighbour, older",  # 4: stolen, the oldest, from a thread of the same node
        "neighbour, newer",
        None,  # 5: asleep; what the other node has is not stolen
    ]
    assert taken(policy, 3) == "other node"


def test_section_5_1_step_3_old_requests_are_processed_first() -> None:
    policy = Locality([(0,)])
    first, second = request(), request()
    for given in (first, second):
        policy.admit(given, (1,))
    policy.add(task(second, "second"))
    policy.add(task(first, "first"))
    assert [taken(policy, 0), taken(policy, 0)] == ["first", "second"]


def test_section_5_1_a_request_goes_to_the_node_with_most_free_resources() -> None:
    memory = {0: 100, 1: 900}
    policy = Locality([(0, 1), (2, 3)], memory.__getitem__)
    idle_elsewhere, memory_elsewhere = request(), request()
    policy.admit(idle_elsewhere, (2, 1))
    assert policy.nodes_of(idle_elsewhere) == (0,), "two idle threads are better than one"
    policy.retire(idle_elsewhere)
    policy.admit(memory_elsewhere, (1, 1))
    assert policy.nodes_of(memory_elsewhere) == (1,), "equally idle: most memory"


def test_section_5_2_balance_moves_the_newest_request_of_the_busy_node() -> None:
    policy = Locality([(0,), (1,)])
    old, new = request(), request()
    for given in (old, new):
        policy.admit(given, (1, 0))
        policy.add(task(given, "one"))
        policy.add(task(given, "two"))
    policy.balance((0, 1))
    assert (policy.nodes_of(old), policy.nodes_of(new)) == ((0,), (1,))
    assert (policy.takeable_tasks(0), policy.takeable_tasks(1)) == (2, 2)


def test_section_5_2_balance_shares_the_only_request_and_its_responsibilities_in_turn() -> None:
    policy = Locality([(0,), (1,)])
    only = request()
    policy.admit(only, (1, 0))
    for name in "abcd":
        policy.add(task(only, name))
    assert (policy.takeable_tasks(0), policy.takeable_tasks(1)) == (4, 0)
    policy.balance((0, 1))
    assert policy.nodes_of(only) == (0, 1)
    assert (policy.takeable_tasks(0), policy.takeable_tasks(1)) == (2, 2)
    policy.add(task(only, "e"))
    policy.add(task(only, "f"))
    assert (policy.takeable_tasks(0), policy.takeable_tasks(1)) == (3, 3)
    assert {taken(policy, 1) for _ in range(6)} == set("abcdef"), "one list for both nodes"


def test_section_5_2_there_is_nothing_to_balance_while_no_node_is_idle_or_none_is_busy() -> None:
    policy = Locality([(0,), (1,)])
    only = request()
    policy.admit(only, (1, 0))
    policy.balance((0, 1))
    assert policy.nodes_of(only) == (0,), "no tasks wait"
    policy.add(task(only, "a"))
    policy.balance((0, 0))
    assert policy.nodes_of(only) == (0,), "nobody is idle"


def test_section_5_2_a_node_wakes_as_many_threads_as_it_has_tasks() -> None:
    engine = Engine(Locality([(0, 1, 2)]), [(0, 1, 2)])
    for thread in range(3):
        assert engine.advance(thread, None, 0.0, Instant(0)).step is None
    assert engine.idle == (3,)
    begun = engine.submit(two_lines())
    assert len(begun.wake) == 2, "two readers can begin"
    assert engine.idle == (1,)
    for thread in begun.wake:
        engine.note_awake(thread)
        advice = engine.advance(thread, None, 0.0, Instant(0))
        assert advice.step is not None
        assert advice.wake == (), "every task has a thread"


def two_lines() -> Request:
    @flow
    def lines(flow: Draft) -> None:
        flow.read("left", SCHEMA).write("left_out")
        flow.read("right", SCHEMA).write("right_out")

    rows = pa.table({"a": [1, 2, 3]})
    sinks = {name: Collected(SCHEMA) for name in ("left_out", "right_out")}
    return request_of(lines.graph(), {"left": rows, "right": rows}, sinks, Settings())


def test_section_5_2_no_semaphore_is_touched_while_all_threads_have_work() -> None:
    """One thread has work from the first task to the last: it is woken once, and then sleeps."""
    settings = Settings(PolicyName.LOCALITY, threads=1, pack_bytes=64)

    @flow
    def line(flow: Draft) -> None:
        flow.read("numbers").where("a >= 0").compute(b="a + 1").write("out")

    numbers = pa.table({"a": list(range(5000))})
    sink = Collected(pa.schema({"a": pa.int64(), "b": pa.int64()}))
    with Pool(settings) as pool:
        graph = line.graph({"numbers": numbers.schema})
        took = pool.submit(request_of(graph, {"numbers": numbers}, {"out": sink}, settings)).wait(
            60
        )
        assert took.activities["where"].turns > 500
        assert pool.times_woken <= 1
    assert sink.table().num_rows == 5000


def test_section_5_2_a_pack_is_half_of_the_l2_cache_but_never_too_small_for_python() -> None:
    assert Topology(((0,),), l2_bytes=16 * 2**20).pack_bytes == 8 * 2**20
    assert Topology(((0,),), l2_bytes=256 * 1024).pack_bytes == LEAST_BYTES


def test_section_6_the_simple_scheduler_is_first_come_first_served_and_steals_in_turn() -> None:
    policy = FirstCome(threads=3)
    given = request()
    for name, thread in [("a", 0), ("b", 0), ("c", 1), ("d", 2)]:
        policy.add(task(given, name, thread))
    assert [taken(policy, 0) for _ in range(5)] == ["a", "b", "c", "d", None]


def test_immediate_tasks_follow_packs_and_deferred_ones_do_not() -> None:
    """A reader's first task is deferred; the task that its pack creates is immediate."""
    made: list[tuple[str, TaskUrgency]] = []
    flowing = two_lines()
    flowing.start(lambda task: made.append((task.item.name, task.urgency)))
    assert made == [("read left", TaskUrgency.DEFERRED), ("read right", TaskUrgency.DEFERRED)]
    made.clear()
    item = flowing.items["read left"]
    flowing.begin(item, Instant(0))
    message = flowing.message(item, 0, Instant(0))
    assert message is not None
    flowing.record_step(item, item.perform(message), 0.0)
    flowing.finish_turn(item, 0, Instant(0))
    assert made == [("write left_out", TaskUrgency.IMMEDIATE), ("read left", TaskUrgency.DEFERRED)]


def test_edges_name_where_rows_leave_and_enter() -> None:
    graph = two_lines().graph
    assert Edge("read left", 0, "write left_out", 0) in graph.edges
