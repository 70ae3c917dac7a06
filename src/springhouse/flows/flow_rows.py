"""Which verbs does a flow have for rows?

Each verb adds an activity behind some rows and returns the rows that leave the activity. It checks
columns and types at once, before any row moves.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from springhouse.flows.activities.changing_dimension import ChangingDimension, ChangingDimensionSpec
from springhouse.flows.activities.grouping import (
    GroupedAggregate,
    PartialAggregate,
    parts_schema,
)
from springhouse.flows.activities.join import Join, JoinSpec
from springhouse.flows.activities.per_pack import (
    QUARANTINE,
    PackActivity,
    PackFunction,
    PythonActivity,
    filter_rows,
    project_columns,
)
from springhouse.flows.activities.router import ExpectationRouter, Router
from springhouse.flows.activities.sort import Key, Sort
from springhouse.flows.activities.surrogate_key import SurrogateKey
from springhouse.flows.activities.union import Union
from springhouse.flows.column_checks import (
    Names,
    compile_condition,
    join_spec,
    key_pairs,
    names_of,
    prove_columns,
    prove_keyed,
)
from springhouse.flows.flow_graph import FlowError, FlowNode, FlowOperator, NodeKind, SplitActivity
from springhouse.flows.measure_expressions import parse_measure
from springhouse.flows.row_expressions import (
    Expression,
    order_of,
    parse_named,
    place_or_compile,
    schema_of,
    term_of,
    type_of,
)
from springhouse.flows.sql.syntax_tree import Name
from springhouse.flows.sql.types import is_plain, type_name

if TYPE_CHECKING:
    from springhouse.flows.declare import Draft


class Rows:
    """The rows that leave one port of an activity or a recordset."""

    def __init__(self, draft: "Draft", node: str, port: int) -> None:
        self._draft = draft
        self.node = node
        self.port = port

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._draft.schema(self.node, self.port)

    def where(self, condition: Expression, *, name: str | None = None) -> "Rows":
        """Only the rows for which the condition is true."""
        name = self._draft.fresh(name or "where")
        test = filter_rows(compile_condition(condition, self.schema, name))
        return self._then(name, "where", self.schema, lambda size: PackActivity(test))

    def select(self, *columns: str, name: str | None = None) -> "Rows":
        """Only these columns. Each is a name or `expression AS name`."""
        name = self._draft.fresh(name or "select")
        wanted = [parse_named(text, name) for text in columns]
        return self._project(name, "select", wanted)

    def compute(self, *, name: str | None = None, **columns: Expression) -> "Rows":
        """All columns, and these computed columns. A computed column may replace another one."""
        name = self._draft.fresh(name or "compute")
        kept_columns = [(c, Name((c,))) for c in self.schema.names if c not in columns]
        return self._project(name, "compute", [*kept_columns, *columns.items()])

    def apply(
        self,
        function: PackFunction,
        *,
        schema: str | pa.Schema | None = None,
        on_error: str = "fail",
        name: str | None = None,
    ) -> "Rows":
        """Apply a Python function to each row pack. Without `schema` the columns stay the same.

        With `on_error="quarantine"`, if the function raises an error, the rows of the pack go to
        the target "quarantine" with the reason, and the flow continues.
        """
        if on_error not in ("fail", "quarantine"):
            raise FlowError(f'on_error is "fail" or "quarantine", not {on_error!r}')
        name = self._draft.fresh(name or str(getattr(function, "__name__", "apply")))
        if isinstance(schema, str):
            schema = schema_of(schema, name)
        promised = schema or self.schema
        aside = on_error == "quarantine"
        outputs = (promised, QUARANTINE) if aside else (promised,)

        def make(size: int) -> PythonActivity:
            return PythonActivity(name, function, promised, quarantine=aside)

        node = FlowNode(name, NodeKind.ACTIVITY, (self.schema,), outputs, make, verb="apply")
        self._draft.add(node, [self])
        if aside:
            self._draft.write("quarantine", Rows(self._draft, name, 1))
        return Rows(self._draft, name, 0)

    def route(self, *conditions: Expression, name: str | None = None) -> tuple["Rows", ...]:
        """The rows, divided by the first condition that holds. The last part has all other rows."""
        name = self._draft.fresh(name or "route")
        tests = [compile_condition(condition, self.schema, name) for condition in conditions]
        outputs = (self.schema,) * (len(tests) + 1)
        node = FlowNode(
            name,
            NodeKind.ACTIVITY,
            (self.schema,),
            outputs,
            lambda size: Router(tests),
            router=True,
            verb="route",
        )
        self._draft.add(node, [self])
        return tuple(Rows(self._draft, name, port) for port in range(len(outputs)))

    def split(self, condition: Expression, *, name: str | None = None) -> tuple["Rows", "Rows"]:
        """The rows for which the condition is true, and all others."""
        good, others = self.route(condition, name=name or "split")
        return good, others

    def expect(
        self, *, on_violation: str = "fail", name: str | None = None, **conditions: str
    ) -> "Rows":
        """The rows that meet conditions: `expect(paid="amount > 0", on_violation="quarantine")`.

        If a condition is not true for a row, the flow fails, or drops the row, or writes the row to
        the target "quarantine" with the reason.
        """
        fates = {"fail": "failure", "drop": "dropped", "quarantine": "set aside"}
        if on_violation not in fates:
            raise FlowError(f"on_violation is one of {', '.join(fates)}, not {on_violation!r}")
        name = self._draft.fresh(name or "expect")
        fate = fates[on_violation]
        expected = {
            word: (compile_condition(condition, self.schema, name), fate, condition)
            for word, condition in conditions.items()
        }
        aside = on_violation == "quarantine"
        outputs = (self.schema, QUARANTINE) if aside else (self.schema,)
        node = FlowNode(
            name,
            NodeKind.ACTIVITY,
            (self.schema,),
            outputs,
            lambda size: ExpectationRouter(name, expected),
            router=aside,
            verb="expect",
        )
        self._draft.add(node, [self])
        if aside:
            self._draft.write("quarantine", Rows(self._draft, name, 1))
        return Rows(self._draft, name, 0)

    def union(self, *others: "Rows", name: str | None = None) -> "Rows":
        """These rows and the others, in no order."""
        name = self._draft.fresh(name or "union")
        inputs = [self, *others]
        schemas = tuple(self.schema for _ in inputs)
        node = FlowNode(
            name,
            NodeKind.ACTIVITY,
            schemas,
            (self.schema,),
            lambda size: Union(self.schema),
            verb="union",
        )
        self._draft.add(node, inputs)
        return Rows(self._draft, name, 0)

    def lookup(
        self,
        table: "Rows",
        *,
        on: str | Mapping[str, str],
        take: Names = (),
        required: bool = False,
        name: str | None = None,
    ) -> "Rows":
        """Add columns of another table, found by its key. Only that table is held in memory.

        `on` is a column of both, or {my column: their column}. Rows without a match get NULLs. With
        `required` they are left out.
        """
        name = self._draft.fresh(name or "lookup")
        spec = join_spec(self, table, on, take, outer=not required, name=name)
        return self._join(name, "lookup", table, spec, blocking=False)

    def join(
        self,
        other: "Rows",
        *,
        on: str | Sequence[str] | Mapping[str, str],
        take: Names | None = None,
        outer: bool = False,
        name: str | None = None,
    ) -> "Rows":
        """Join rows of two streams with the same key. Both are held in memory (a merge join).

        The result has all columns of the other side except its keys, or the columns in `take`.
        """
        name = self._draft.fresh(name or "join")
        pairs = key_pairs(on)
        if take is None:
            take = [c for c in other.schema.names if c not in pairs.values()]
        spec = join_spec(self, other, pairs, take, outer=outer, name=name)
        return self._join(name, "join", other, spec, blocking=True)

    def surrogate_key(
        self, known: "Rows", *, on: str, key: str, name: str | None = None
    ) -> tuple["Rows", "Rows"]:
        """The rows with the number that stands for `on`, and the new pairs of value and number."""
        name = self._draft.fresh(name or "surrogate_key")
        prove_columns(known, [on, key], name)
        prove_columns(self, [on], name)
        prove_keyed(known.schema, self.schema.field(on).type, on, key, name)
        schema = pa.schema([*self.schema, (key, pa.int64())])
        inputs = (known.schema, self.schema)
        node = FlowNode(
            name,
            NodeKind.ACTIVITY,
            inputs,
            (schema, known.schema),
            lambda size: SurrogateKey(inputs[0], schema, on, key),
            blocking=frozenset({0}),
            memory_intensive=True,
            together={0: (), 1: ()},
            waits={1: 0},
            verb="surrogate key",
        )
        self._draft.add(node, [known, self])
        return Rows(self._draft, name, 0), Rows(self._draft, name, 1)

    def aggregate(self, by: Names = (), *, name: str | None = None, **measures: str) -> "Rows":
        """One row for each group: `aggregate("country", revenue="sum(total)", orders="count(*)")`.

        The functions are sum, count, min, max and avg.
        """
        name = self._draft.fresh(name or "aggregate")
        keys = names_of(by)
        prove_columns(self, keys, name)
        for key in keys:
            if not is_plain(self.schema.field(key).type):
                raise FlowError(
                    f'activity "{name}" can\'t group by "{key}", a '
                    f"{type_name(self.schema.field(key).type)}"
                )
        parsed_measures = {
            c: parse_measure(text, self.schema, name) for c, text in measures.items()
        }
        fields = [self.schema.field(key) for key in keys]
        fields += [pa.field(column, kind) for column, (_, kind) in parsed_measures.items()]
        schema = pa.schema(fields)
        measures_of = {column: measure for column, (measure, _) in parsed_measures.items()}
        parts = parts_schema(fields[: len(keys)], measures_of)
        return self._then(
            name,
            "aggregate",
            schema,
            lambda size: GroupedAggregate(schema, keys, measures_of, size),
            blocking=True,
            together=keys,
            halves=SplitActivity(
                parts,
                lambda size: PartialAggregate(parts, keys, measures_of, size),
                lambda size: GroupedAggregate(schema, keys, measures_of, size, given_parts=True),
            ),
        )

    def sort(self, *columns: str, name: str | None = None) -> "Rows":
        """The rows in the order of these keys, as in ORDER BY: `sort("a DESC NULLS LAST, b")`."""
        name = self._draft.fresh(name or "sort")
        keys = []
        for tree, descending, nulls_first in order_of(", ".join(columns), name):
            term = term_of(tree, self.schema, name)
            if not is_plain(term.type):
                raise FlowError(f'activity "{name}" can\'t sort by {type_name(term.type)}')
            if term.constant:
                keys_text = ", ".join(columns)
                raise FlowError(
                    f'activity "{name}" sorts by what is the same for all rows: {keys_text}',
                    hint="Name columns; a flow knows none by its number.",
                )
            keys.append(Key(term.compute, descending, nulls_first))
        schema = self.schema
        make = partial(Sort, schema, keys)
        return self._then(name, "sort", schema, make, blocking=True, together=[])

    def keep_history(
        self,
        dimension: "Rows",
        *,
        keys: Names,
        sequence: str,
        scd_type: int = 2,
        name: str | None = None,
    ) -> "Rows":
        """Apply these rows as changes to a slowly changing dimension of type 1 or 2."""
        name = self._draft.fresh(name or "keep_history")
        if scd_type not in (1, 2):
            raise FlowError(f'"{name}": a dimension is of type 1 or 2, not {scd_type}')
        prove_columns(self, [*names_of(keys), sequence], name)
        spec = ChangingDimensionSpec(self.schema, tuple(names_of(keys)), sequence, scd_type)
        compared = self.schema.names if scd_type == 2 else [*spec.keys, sequence]
        for column in compared:
            kind = self.schema.field(column).type
            if pa.types.is_nested(kind) or pa.types.is_null(kind):
                raise FlowError(
                    f'"{name}" compares rows by "{column}", and a flow can\'t compare '
                    f"{type_name(kind)}",
                    hint="Take its fields apart, or leave it out, with select.",
                )
        node = FlowNode(
            name,
            NodeKind.ACTIVITY,
            (spec.dimension, self.schema),
            (spec.dimension,),
            partial(ChangingDimension, spec),
            blocking=frozenset({0, 1}),
            memory_intensive=True,
            together={0: spec.keys, 1: spec.keys},
            verb="keep history",
        )
        self._draft.add(node, [dimension, self])
        return Rows(self._draft, name, 0)

    def write(self, target: str) -> "Rows":
        """Write the rows to a target. Other verbs can use them as well."""
        self._draft.write(target, self)
        return self

    def _then(
        self,
        name: str,
        verb: str,
        schema: pa.Schema,
        make: Callable[[int], FlowOperator],
        *,
        blocking: bool = False,
        together: Sequence[str] | None = None,
        halves: SplitActivity | None = None,
    ) -> "Rows":
        node = FlowNode(
            name,
            NodeKind.ACTIVITY,
            (self.schema,),
            (schema,),
            make,
            blocking=frozenset({0}) if blocking else frozenset(),
            memory_intensive=blocking,
            together={} if together is None else {0: tuple(together)},
            halves=halves,
            verb=verb,
        )
        self._draft.add(node, [self])
        return Rows(self._draft, name, 0)

    def _project(self, name: str, verb: str, columns: Sequence[tuple[str, Expression]]) -> "Rows":
        fields = [(column, type_of(e, self.schema, name)) for column, e in columns]
        schema = pa.schema(fields)
        parts = [place_or_compile(e, self.schema, name) for _, e in columns]
        make = project_columns(self.schema, schema, parts)
        return self._then(name, verb, schema, lambda size: PackActivity(make))

    def _join(
        self, name: str, verb: str, other: "Rows", spec: JoinSpec, *, blocking: bool
    ) -> "Rows":
        node = FlowNode(
            name,
            NodeKind.ACTIVITY,
            (other.schema, self.schema),
            (spec.schema,),
            lambda size: Join(spec, size, blocking=blocking),
            blocking=frozenset({0, 1}) if blocking else frozenset({0}),
            memory_intensive=True,
            together={0: spec.held_keys, 1: spec.probed_keys} if blocking else {0: ()},
            waits={} if blocking else {1: 0},
            verb=verb,
        )
        self._draft.add(node, [other, self])
        return Rows(self._draft, name, 0)
