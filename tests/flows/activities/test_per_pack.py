"""The results of activities on one pack: filters, kept columns and computed columns."""

import pyarrow as pa

from springhouse.flows.activities.per_pack import filter_rows, project_columns
from springhouse.flows.declare import Draft, flow
from springhouse.flows.endpoints import Collected
from springhouse.flows.row_expressions import compile_expression, place_or_compile
from springhouse.flows.run import run_flow

PACK = pa.record_batch({"a": [1, 2, None], "b": [0.5, 1.5, 2.5]})


def test_a_filter_that_all_rows_pass_gives_the_very_pack() -> None:
    def where(condition: str) -> pa.RecordBatch:
        return filter_rows(compile_expression(condition, PACK.schema, "where"))(PACK)

    assert where("b > 0") is PACK
    assert where("a > 0").column("a").to_pylist() == [1, 2], "NULL is not true"
    assert where("a > 1").column("b").to_pylist() == [1.5]
    assert where("a > 9").num_rows == 0


def test_columns_stay_move_are_renamed_and_computed() -> None:
    def chosen(**columns: str) -> pa.RecordBatch:
        kinds = {
            name: compile_expression(text, PACK.schema, "x")(PACK).type
            for name, text in columns.items()
        }
        schema = pa.schema(kinds)
        parts = [place_or_compile(text, PACK.schema, "x") for text in columns.values()]
        made = project_columns(PACK.schema, schema, parts)(PACK)
        assert made.schema.equals(schema)
        return made

    assert chosen(b="b").to_pydict() == {"b": [0.5, 1.5, 2.5]}
    assert chosen(b="b", a="a").column("a").to_pylist() == [1, 2, None]
    assert chosen(c="b", d="b").to_pydict() == {"c": [0.5, 1.5, 2.5], "d": [0.5, 1.5, 2.5]}
    assert chosen(c="b * 2", a="A").to_pydict() == {"c": [1.0, 3.0, 5.0], "a": [1, 2, None]}
    assert chosen(one="a + 1").to_pydict() == {"one": [2, 3, None]}


def test_every_pack_has_the_schema_that_its_edge_declares() -> None:
    """A source may declare more or less than its rows have: NULLs, and metadata of their origin."""

    @flow
    def passed(flow: Draft) -> None:
        rows = flow.read("t", pa.schema([pa.field("a", pa.int64()), ("b", pa.int64())]))
        rows.write("as it is")
        rows.compute(c="a + b").select("c", "a").write("computed")
        rows.apply(strict).write("applied")
        rows.union(flow.read("more", STRICT)).write("united")

    graph = passed.graph()
    sinks = {name: Collected(graph.nodes[name].inputs[0]) for name in graph.targets}
    rows = pa.table({"a": [1, 2], "b": [3, 4]}, schema=STRICT)
    run_flow(graph, {"t": rows, "more": rows}, sinks)
    for name, sink in sinks.items():
        assert sink.packs, name
        for pack in sink.packs:
            assert pack.schema.equals(graph.nodes[name].inputs[0], check_metadata=True), name


STRICT = pa.schema(
    [pa.field("a", pa.int64(), nullable=False, metadata={"id": "7"}), ("b", pa.int64())],
    metadata={"from": "a file"},
)


def strict(pack: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(pack.columns, schema=STRICT)
