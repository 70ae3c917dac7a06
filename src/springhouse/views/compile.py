"""How is a view brought up to date after a change of some of its inputs?

The compiler cuts the tree of the query at its aggregates and stores each aggregate as a table. The
topmost aggregate is the view itself, with its states in hidden columns of the same files. The other
aggregates are hidden tables of the view. The rules in `delta/` write the change of the rows between
two cuts as one statement, from the changes of the inputs and of the hidden tables below.

    Keyed   the view is a GROUP BY or DISTINCT, perhaps with a projection on top
    Top     the view is an ORDER BY … LIMIT
    Bag     anything else: rows are added and removed

`delta/script.py` combines the rules, one file each, into statements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from springhouse.views.algebra.exact import ExactTypes
from springhouse.views.algebra.magic_sets import apply_magic_sets
from springhouse.views.algebra.query_tree import Aggregate, Node, Projection, TopK, inputs, walk
from springhouse.views.delta import top_k
from springhouse.views.delta.aggregate import (
    COUNT,
    HIDDEN,
    INCREMENTS,
    decompose,
)
from springhouse.views.delta.group_queries import GroupQueries
from springhouse.views.delta.row_select import (
    WEIGHT,
    Near,
    RowSelect,
    Side,
    Touched,
    near_to,
    united,
    without_ghosts,
)
from springhouse.views.delta.script import Script, table_name, unused
from springhouse.views.delta.statement import (
    STALE,
    Bag,
    Keyed,
    Leading,
    Refresh,
    RelationKind,
    Statement,
    Step,
    TableLayout,
    Top,
)
from springhouse.views.read.parse_query import Schemas, parse
from springhouse.views.sql.expressions import Expression, column, replaced
from springhouse.views.sql.sql_tree import (
    FromClause,
    copies_of,
    less,
    more,
    named,
    number,
    over,
    select,
    subquery,
    table,
    when,
)


def compile_view(
    text: str, schemas: Schemas, columns: Sequence[str] | None = None, *, decimals: bool = True
) -> "Compiled":
    """The view in a form that can be refreshed; `NotCompilable` gives the reason if there is none.

    `columns` are the names of the view's columns, if the text does not give them. Without
    `decimals`, the compiler carries no sum of decimals forward: for a Spark that gives such sums
    other types.
    """
    parsed = parse(text, schemas)
    names = tuple(columns) if columns is not None else parsed.names
    root = apply_magic_sets(parsed.root, schemas)
    return Compiled(root, names, ExactTypes(root, schemas, decimals=decimals))


class Compiled:
    """A view that can be refreshed incrementally."""

    def __init__(self, root: Node, names: tuple[str, ...], kinds: ExactTypes) -> None:
        self.root = root
        self.names = names
        self._kinds = kinds
        self._head = _head_of(root)
        self._made: dict[frozenset[str], Refresh] = {}

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The inputs that the view reads."""
        return inputs(self.root)

    @cached_property
    def hidden(self) -> Mapping[Aggregate, str]:
        """The aggregates that are hidden tables, with their names; each follows those it reads."""
        found: dict[Aggregate, str] = {}
        taken = {name.lower() for name in self.inputs}
        for node in walk(self.root):
            if isinstance(node, Aggregate) and node is not self._head.aggregate:
                found[node] = unused(table_name(node), taken)
        return found

    def refresh(self, changed: frozenset[str]) -> Refresh:
        """The steps for a change of these inputs."""
        if changed not in self._made:
            steps: list[Step] = []
            for node, name in self.hidden.items():
                if inputs(node) & changed:
                    steps.append(self._keyed(node, name, _stored_names(node), changed))
            steps.append(self._last(changed))
            self._made[changed] = Refresh(changed, tuple(steps))
        return self._made[changed]

    @cached_property
    def build(self) -> tuple[Step, ...]:
        """The steps that build the view from scratch: each has a `build` statement."""
        hidden = [
            self._keyed(node, name, _stored_names(node), self.inputs)
            for node, name in self.hidden.items()
        ]
        return (*hidden, self._last(self.inputs))

    # The last step: the view itself

    def _last(self, changed: frozenset[str]) -> Step:
        head = self._head
        if head.aggregate is not None:
            shown = [(name, head.value(old)) for name, old in self._shown]
            return self._keyed(head.aggregate, "", shown, changed)
        if head.top is not None:
            return self._top(head.top, changed)
        layout = TableLayout(self.names)
        script = self._script(changed)
        parts = script.change(self.root, frozenset(self.root.columns))
        outputs = [(name, column(old)) for name, old in self._shown]
        parts = [part.as_columns(outputs) for part in parts]
        body = united(parts, self.names) if parts else self._nothing(layout)
        change = script.statement(body)
        return Bag("", layout, self._build_bag(outputs), change)

    @property
    def _shown(self) -> list[tuple[str, str]]:
        return list(zip(self.names, self.root.columns, strict=True))

    def _build_bag(self, outputs: Sequence[tuple[str, Expression]]) -> Statement:
        script = self._script(frozenset())
        rows = script.snapshot(self.root, Side.AFTER, frozenset(self.root.columns))
        return script.statement(rows.as_columns(outputs).select(self.names))

    def _nothing(self, layout: TableLayout) -> exp.Select:
        items = [named(exp.Null(), name) for name in layout.visible]
        none = exp.Boolean(this=False)
        return select([*items, named(number(1), WEIGHT)], where=[none])

    def _top(self, node: TopK, changed: frozenset[str]) -> Top:
        """The first rows, stored with the values that order them, unless those are visible."""
        shown = [(name, self._head.value(old)) for name, old in self._shown]
        stored = {v.name: name for name, v in shown if isinstance(v, exp.Column)}
        extra = [name for name in node.columns if name not in stored]
        stored |= {name: f"{HIDDEN}{name}" for name in extra}
        layout = TableLayout(self.names, tuple(stored[name] for name in extra))
        outputs = [*shown, *((stored[name], column(name)) for name in extra)]
        script = self._script(frozenset())
        rows = script.snapshot(node, Side.AFTER, frozenset(node.columns))
        build = script.statement(rows.as_columns(outputs).select(layout.columns))
        script = self._script(changed)
        names = list(node.columns)
        changes = script.change(node.child, frozenset(names))
        leading = _leading(node, changes, stored)
        parts = [
            RowSelect(
                part.source,
                {**part.columns, "stored": number(0)},
                part.where,
                part.weight,
                part.base,
            )
            for part in changes
        ]
        reading = script.read(RelationKind.STORED, "", "stored_rows", stored.values())
        own = {name: column(stored[name]) for name in names}
        counted = {**own, "stored": number(1)}
        parts.append(RowSelect(FromClause(table(reading)), counted, (), number(1), None))
        everything = script.define("everything", united(parts, [*names, "stored"]))
        keys = [column(name) for name in names]
        copies, in_store = column("copies"), column("stored")
        sums = [
            named(exp.Sum(this=column(WEIGHT)), "copies"),
            named(exp.Sum(this=in_store), "stored"),
        ]
        netted = script.define(
            "netted", select([*keys, *sums], FromClause(table(everything)), (), keys)
        )
        is_lost = when(less(copies, in_store), number(1), number(0))
        lost = named(over(exp.Max(this=is_lost)), "lost")
        flagged = script.define("flagged", select([exp.Star(), lost], FromClause(table(netted))))
        here = select([exp.Star()], FromClause(table(flagged)), [more(copies, number(0))])
        source = FromClause(subquery(here, "kept"))
        source = source.lateral_view(copies_of(copies), "copies", ["copy"])
        columns = {**{name: column(name) for name in names}, "lost": column("lost")}
        first = top_k.limited(replace(node, offset=0), RowSelect(source, columns), script)
        final = first.as_columns([*outputs, (STALE, column("lost"))])
        candidates = script.statement(final.select([*layout.columns, STALE]))
        # Rows that OFFSET skips are not stored, so only all rows can tell which row comes next.
        if node.offset:
            return Top("", layout, build, None, node.limit)
        return Top("", layout, build, candidates, node.limit, leading)

    # Aggregates

    def _keyed(
        self,
        node: Aggregate,
        name: str,
        shown: Sequence[tuple[str, Expression]],
        changed: frozenset[str],
    ) -> Keyed:
        form = GroupQueries.of(node, shown, decompose(node, self._kinds.kind))
        script = self._script(changed)
        parts = script.change(node.child, form.used)
        build = self._recomputed(form)
        if not parts:
            # Nothing below this table changes, so it is built once and never merged.
            return Keyed(name, form.layout, build, build, build, form.touched_names)
        rows = script.define("changed_rows", _changed_rows(form, parts, script))
        increments = form.increments(rows)
        step = Keyed(
            name,
            form.layout,
            build,
            script.statement(increments),
            self._recomputed(form, "touched"),
            form.touched_names,
        )
        if form.carried is None:
            return step
        near = [replace(n, column=form.stored[n.column]) for n in near_to(parts, node.keys)]
        stored = script.read(
            RelationKind.STORED, name, "stored_groups", form.merged_columns, tuple(near)
        )
        script.define(INCREMENTS, increments)
        merge = script.statement(form.merged(INCREMENTS, stored))
        merge_given = self._merge_given(form, name, increments)
        return replace(step, merge=merge, merge_given=merge_given, count=COUNT)

    def _merge_given(self, form: GroupQueries, name: str, increments: exp.Select) -> Statement:
        """The second half of a merge, for increments that were computed before."""
        script = self._script(frozenset())
        given = script.read(RelationKind.GIVEN, INCREMENTS, INCREMENTS, increments.named_selects)
        near = tuple(Near(form.stored[key], ((given, key),)) for key in form.node.keys)
        stored = script.read(RelationKind.STORED, name, "stored_groups", form.merged_columns, near)
        return script.statement(form.merged(given, stored))

    def _recomputed(self, form: GroupQueries, touched: str | None = None) -> Statement:
        """The groups, computed from their rows: all groups, or those with keys in `touched`."""
        script = self._script(frozenset())
        node = form.node
        restriction: Touched | None = None
        near: tuple[Near, ...] = ()
        if touched is not None and node.keys:
            relation = script.read(RelationKind.GIVEN, touched, touched, form.touched_names)
            pairs = tuple(zip(node.keys, form.touched_names, strict=True))
            near = tuple(Near(key, ((relation, name),)) for key, name in pairs)
            restriction = Touched(relation, pairs, near)
        rows = script.snapshot(node.child, Side.AFTER, form.used, near, restriction)
        return script.statement(form.built(rows.table(script.alias(node.child))))

    def _script(self, changed: frozenset[str]) -> Script:
        return Script(self.hidden, changed)


def _changed_rows(form: GroupQueries, parts: Sequence[RowSelect], script: Script) -> Expression:
    """The changed rows of groups, without ghosts where a measure divides."""
    names = [each for each in form.node.child.columns if each in form.used]
    measures = [value for _, value in form.node.measures] if form.carried is not None else []
    real = without_ghosts(parts, names, measures, script.alias(form.node.child))
    return united([real] if real else parts, names)


def _leading(node: TopK, changes: Sequence[RowSelect], stored: Mapping[str, str]) -> Leading | None:
    """The first column of the order, if the change holds its values unchanged."""
    first = node.order[0]
    if not isinstance(first.this, exp.Column):
        return None
    found = near_to(changes, [first.this.name])
    if not found:
        return None
    descending, nulls_first = bool(first.args.get("desc")), bool(first.args.get("nulls_first"))
    return Leading(stored[first.this.name], found[0].among, descending, nulls_first)


# The top of a view


@dataclass(frozen=True)
class _Head:
    """The topmost operator that is stored as the view itself, and the projections above it."""

    aggregate: Aggregate | None = None
    top: TopK | None = None
    outputs: Mapping[str, Expression] | None = None

    def value(self, name: str) -> Expression:
        """A column of the view, as an expression over the columns of that operator."""
        return self.outputs[name] if self.outputs is not None else column(name)


def _head_of(root: Node) -> _Head:
    outputs: dict[str, Expression] | None = None
    node = root
    while isinstance(node, Projection):
        own = dict(node.outputs)
        outputs = own if outputs is None else {n: replaced(v, own) for n, v in outputs.items()}
        node = node.child
    if isinstance(node, Aggregate):
        return _Head(aggregate=node, outputs=outputs)
    if isinstance(node, TopK):
        return _Head(top=node, outputs=outputs)
    return _Head()


def _stored_names(node: Aggregate) -> list[tuple[str, Expression]]:
    return [(name, column(name)) for name in node.columns]
