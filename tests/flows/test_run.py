"""Does every policy give the same rows, on one thread and on four, with tiny queues and large?"""

from functools import cache

import duckdb
import pyarrow as pa
import pytest
from archetypes import ARCHETYPES, random_tables

from patience import patience
from springhouse.flows.declare import Draft, flow
from springhouse.flows.endpoints import Collected
from springhouse.flows.flow_graph import FlowError
from springhouse.flows.flow_settings import Settings
from springhouse.flows.policy_choice import PolicyName
from springhouse.flows.run import Pool, request_of, run_flow
from springhouse.flows.topology import Topology

Row = tuple[object, ...]
PACK_BYTES = 1000


def rows_of(table: pa.Table) -> list[Row]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@cache
def tables() -> dict[str, pa.Table]:
    return random_tables(seed=7, rows=250)


@cache
def expected(name: str) -> dict[str, list[Row]]:
    with duckdb.connect() as database:
        for table, rows in tables().items():
            database.register(table, rows)
        queries = ARCHETYPES[name].queries
        return {
            target: rows_of(database.sql(sql).arrow().read_all()) for target, sql in queries.items()
        }


@pytest.mark.parametrize("queue_packs", [1, 100])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("policy", list(PolicyName), ids=lambda policy: policy.value)
@pytest.mark.parametrize("name", ARCHETYPES)
def test_every_archetype(name: str, policy: PolicyName, threads: int, queue_packs: int) -> None:
    made = ARCHETYPES[name].flow.run(
        tables(), policy=policy, threads=threads, queue_packs=queue_packs, pack_bytes=PACK_BYTES
    )
    assert {target: rows_of(rows) for target, rows in made.items()} == expected(name)


def test_sorted_rows_come_in_order() -> None:
    made = ARCHETYPES["fork"].flow.run(tables(), pack_bytes=PACK_BYTES, queue_packs=1)
    found = [(r["l_orderkey"], -r["price"]) for r in made["large_lines"].to_pylist()]
    assert found == sorted(found)


@flow
def failing(flow: Draft) -> None:
    def divide(pack: pa.RecordBatch) -> pa.RecordBatch:
        raise ZeroDivisionError("no")

    flow.read("numbers").apply(divide).write("out")


@pytest.mark.parametrize("threads", [1, 4])
def test_an_activity_that_raises_fails_its_flow_and_is_named(threads: int) -> None:
    numbers = pa.table({"a": list(range(1000))})
    with pytest.raises(FlowError, match='activity "divide" failed: ZeroDivisionError: no'):
        failing.run({"numbers": numbers}, threads=threads, pack_bytes=100)


class _Unheard(BaseException):
    """An exception that is no `Exception`."""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("policy", [PolicyName.LOCALITY, PolicyName.FIRST_COME])
@pytest.mark.parametrize("raised", [SystemExit(3), GeneratorExit(), _Unheard("no")], ids=repr)
def test_an_activity_that_raises_no_exception_fails_its_flow_too(
    raised: BaseException, policy: PolicyName, threads: int
) -> None:
    @flow
    def leaving(flow: Draft) -> None:
        def leave(pack: pa.RecordBatch) -> pa.RecordBatch:
            raise raised

        flow.read("numbers").apply(leave).write("out")

    numbers = pa.table({"a": list(range(1000))})
    with pytest.raises(FlowError, match=f'activity "leave" failed: {type(raised).__name__}'):
        leaving.run({"numbers": numbers}, policy=policy, threads=threads, pack_bytes=100)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_source_that_gives_no_pack_fails_its_flow(threads: int) -> None:
    @flow
    def copied(flow: Draft) -> None:
        flow.read("numbers").write("out")

    graph = copied.graph({"numbers": pa.schema({"a": pa.int64()})})
    sink = Collected(graph.nodes["out"].inputs[0])

    def neither() -> object:
        yield "no pack"

    settings = Settings(threads=threads)
    with pytest.raises(FlowError, match='"read numbers"'):
        run_flow(graph, {"numbers": neither}, {"out": sink}, settings)  # type: ignore[dict-item]


@pytest.mark.parametrize("word", ["threads", "queue_packs", "pack_bytes"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5])
def test_a_flow_without_threads_or_queues_is_refused(word: str, value: object) -> None:
    with pytest.raises(FlowError, match=f"can't run with {word}={value}"):
        failing.run({"numbers": pa.table({"a": [1]})}, **{word: value})


def test_many_flows_at_once_on_two_nodes_of_two_threads() -> None:
    settings = Settings(policy=PolicyName.LOCALITY, queue_packs=2, pack_bytes=PACK_BYTES)
    graph = ARCHETYPES["butterfly"].flow.graph({n: t.schema for n, t in tables().items()})
    with Pool(settings, Topology(((0, 1), (0, 1)))) as pool:
        begun = []
        for _ in range(8):
            sinks = {name: Collected(graph.nodes[name].inputs[0]) for name in graph.targets}
            request = request_of(graph, tables(), sinks, settings)
            begun.append((pool.submit(request), sinks))
        for running, sinks in begun:
            running.wait(patience(60))
            found = {name: rows_of(sink.table()) for name, sink in sinks.items()}
            assert found == expected("butterfly")


def test_a_failed_flow_leaves_the_others_alone() -> None:
    settings = Settings(policy=PolicyName.LOCALITY, threads=2, pack_bytes=100)
    numbers = pa.table({"a": list(range(1000))})
    bad = failing.graph({"numbers": numbers.schema})
    good = ARCHETYPES["line"].flow.graph({n: t.schema for n, t in tables().items()})
    sink = Collected(good.nodes["supplier_revenue"].inputs[0])
    with Pool(settings) as pool:
        fails = pool.submit(request_of(bad, {"numbers": numbers}, {}, settings))
        works = pool.submit(request_of(good, tables(), {"supplier_revenue": sink}, settings))
        with pytest.raises(FlowError):
            fails.wait(patience(60))
        works.wait(patience(60))
    assert rows_of(sink.table()) == expected("line")["supplier_revenue"]


def test_what_is_measured() -> None:
    graph = ARCHETYPES["line"].flow.graph({n: t.schema for n, t in tables().items()})
    sink = Collected(graph.nodes["supplier_revenue"].inputs[0])
    settings = Settings(policy=PolicyName.MINIMUM_COST, queue_packs=3, pack_bytes=PACK_BYTES)
    took = run_flow(graph, tables(), {"supplier_revenue": sink}, settings)
    lines = tables()["lineitem"].num_rows
    assert took.activities["read lineitem"].rows_out == lines
    assert took.activities["where"].rows_in == lines
    assert took.activities["write supplier_revenue"].rows_in == sink.table().num_rows
    assert took.activities["where"].most_waiting == 3, "the queue was full, and never fuller"
    assert 0 < took.average_packs <= took.most_packs
    assert 0 < took.average_bytes <= took.most_bytes


def test_what_a_flow_writes_it_can_read_again() -> None:
    @flow
    def staged(flow: Draft) -> None:
        flow.read("numbers").where("a > 2").write("between")
        flow.read("between").aggregate(total="sum(a)").write("total")

    for policy in PolicyName:
        made = staged.run({"numbers": pa.table({"a": [1, 2, 3, 4]})}, policy=policy)
        assert made["between"].to_pylist() == [{"a": 3}, {"a": 4}]
        assert made["total"].to_pylist() == [{"total": 7}]


def test_a_source_that_was_not_given() -> None:
    @flow
    def nothing(flow: Draft) -> None:
        flow.read("numbers", "a BIGINT").write("out")

    with pytest.raises(FlowError, match="nothing was given to read as 'numbers'"):
        nothing.run({})
