"""How does a user declare a flow in Python?

    @springhouse.flow
    def orders(flow):
        fresh = flow.read("raw_orders").where("amount > 0").compute(total="amount * quantity")
        known = fresh.lookup(flow.read("customers"), on="customer", take="country")
        home, abroad = known.split("country = 'NO'")
        home.write("orders_home")
        abroad.write("orders_abroad")
        known.aggregate("country", revenue="sum(total)").write("revenue")

Every verb returns `Rows`, and checks the columns that it names when the flow is built. That needs
the schemas of the sources. Either `read` or the caller who runs the flow gives these schemas.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import overload

import pyarrow as pa

from springhouse.flows.endpoints import Collected, PackSink, Source
from springhouse.flows.flow_graph import Edge, FlowError, FlowGraph, FlowNode, NodeKind, recordset
from springhouse.flows.flow_rows import Rows
from springhouse.flows.flow_settings import Settings, settings_of
from springhouse.flows.row_expressions import schema_of


class Draft:
    """A flow while it is being declared: the argument of the declaring function."""

    def __init__(self, name: str, schemas: Mapping[str, pa.Schema]) -> None:
        self.name = name
        self._schemas = schemas
        self._nodes: dict[str, FlowNode] = {}
        self._edges: list[Edge] = []

    def read(self, name: str, schema: str | pa.Schema | None = None) -> Rows:
        """The rows of a source, or of a target that this flow wrote before."""
        if name not in self._nodes:
            if isinstance(schema, str):
                schema = schema_of(schema, f"read {name}")
            schema = schema or self._schemas.get(name)
            if schema is None:
                raise FlowError(
                    f'the columns of "{name}" are not known',
                    where=self.name,
                    hint=f'Give them: flow.read("{name}", "id BIGINT, …").',
                )
            self._nodes[name] = recordset(name, schema)
        return Rows(self, name, 0)

    def graph(self) -> FlowGraph:
        """The declared graph."""
        return FlowGraph(self._nodes, tuple(self._edges))

    def add(self, node: FlowNode, feeding: Sequence[Rows]) -> None:
        """Add an activity that takes these rows."""
        for schema in node.outputs:
            twice = [name for name, count in Counter(schema.names).items() if count > 1]
            if twice:
                raise FlowError(
                    f'activity "{node.name}" would have the column "{twice[0]}" twice',
                    hint="Give one of them another name with select.",
                )
        self._nodes[node.name] = node
        for port, rows in enumerate(feeding):
            self._edges.append(Edge(rows.node, rows.port, node.name, port))

    def write(self, name: str, rows: Rows) -> None:
        """Write rows to a target."""
        target = self._nodes.setdefault(name, recordset(name, rows.schema))
        if target.kind is not NodeKind.RECORDSET:
            raise FlowError(
                f'"{name}" is an activity of this flow', hint="Give the target another name."
            )
        self._edges.append(Edge(rows.node, rows.port, name, 0))

    def fresh(self, verb: str) -> str:
        """A name that no node has yet."""
        number, name = 2, verb
        while name in self._nodes:
            name, number = f"{verb} {number}", number + 1
        return name

    def schema(self, node: str, port: int) -> pa.Schema:
        """The columns of the rows that leave a node."""
        return self._nodes[node].outputs[port]


class Flow:
    """A declared flow: a function describes how rows move from sources to targets."""

    def __init__(
        self, declare: Callable[[Draft], object], name: str, options: Mapping[str, object]
    ) -> None:
        self._declare = declare
        self.name = name
        self._options = dict(options)
        self.__doc__ = declare.__doc__

    def settings(self, options: Mapping[str, object] | None = None) -> Settings:
        """Its settings: these options first, then those of the declaration, then the defaults."""
        return settings_of(self._options | dict(options or {}))

    def graph(self, schemas: Mapping[str, pa.Schema] | None = None) -> FlowGraph:
        """The activities and recordsets, for sources with these schemas."""
        draft = Draft(self.name, schemas or {})
        self._declare(draft)
        return draft.graph()

    def run(self, sources: Mapping[str, Source], **settings: object) -> dict[str, pa.Table]:
        """Run it in this process, on Arrow tables. Gives the tables of its targets by name."""
        from springhouse.flows.run import run_flow

        schemas = {name: rows.schema for name, rows in sources.items() if hasattr(rows, "schema")}
        graph = self.graph(schemas)
        collected = {name: Collected(graph.nodes[name].inputs[0]) for name in graph.targets}
        sinks: dict[str, PackSink] = dict(collected)
        run_flow(graph, sources, sinks, self.settings(settings))
        return {name: sink.table() for name, sink in collected.items()}


@overload
def flow(declare: Callable[[Draft], object], /) -> Flow: ...
@overload
def flow(
    *, name: str | None = None, **settings: object
) -> Callable[[Callable[[Draft], object]], Flow]: ...
def flow(
    declare: Callable[[Draft], object] | None = None,
    /,
    *,
    name: str | None = None,
    **settings: object,
) -> Flow | Callable[[Callable[[Draft], object]], Flow]:
    """Declare a flow: decorates the function that describes how its rows move.

    Settings control how it runs: `@springhouse.flow(policy="minimum-memory", pack_bytes=100_000)`.
    """
    if declare is None:
        return lambda function: Flow(function, name or function.__name__, settings)
    return Flow(declare, name or declare.__name__, settings)
