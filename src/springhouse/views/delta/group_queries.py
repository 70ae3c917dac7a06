"""Which SQL builds groups, and which SQL merges a change into them?

    built        the groups, from their rows
    increments   the amounts that the changed rows add to each touched group
    merged       the touched groups after the change: stored groups LEFT JOINed to increments

`aggregate` decides the states of a group, and how to carry each of them forward.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from springhouse.views.algebra.query_tree import Aggregate
from springhouse.views.delta.aggregate import COUNT, HIDDEN, INCREMENTS, STORED, AggregateState
from springhouse.views.delta.row_select import touched_name
from springhouse.views.delta.statement import STALE, TableLayout
from springhouse.views.sql.expressions import Expression, Named, column, free_columns
from springhouse.views.sql.sql_tree import (
    FromClause,
    any_of_them,
    coalesce,
    every,
    named,
    number,
    plus,
    same,
    select,
    subquery,
    table,
)


@dataclass(frozen=True)
class GroupQueries:
    """The queries of one aggregate: `outputs` are over its keys and measures, by stored name."""

    node: Aggregate
    carried: AggregateState | None
    stored: Mapping[str, str]
    outputs: Sequence[Named]
    layout: TableLayout

    @staticmethod
    def of(
        node: Aggregate, shown: Sequence[Named], carried: AggregateState | None
    ) -> "GroupQueries":
        """The queries of an aggregate that is stored with the columns `shown`, and its state."""
        stored = {v.name: name for name, v in shown if isinstance(v, exp.Column)}
        extra = [key for key in node.keys if key not in stored]
        stored |= {key: f"{HIDDEN}key_{key}" for key in extra}
        hidden = [stored[key] for key in extra]
        types: Mapping[str, str] = {}
        if carried is not None:
            hidden += [COUNT, *(state.name for state in carried.states)]
            types = carried.types
        visible, keys = (name for name, _ in shown), (stored[key] for key in node.keys)
        layout = TableLayout(tuple(visible), tuple(hidden), tuple(keys), types)
        outputs = [*shown, *((stored[key], column(key)) for key in extra)]
        return GroupQueries(node, carried, stored, outputs, layout)

    @property
    def used(self) -> frozenset[str]:
        """The columns that the aggregate needs of its rows."""
        values = (free_columns(value) for _, value in self.node.measures)
        return frozenset(self.node.keys).union(*values)

    @property
    def touched_names(self) -> tuple[str, ...]:
        """The names of the keys in the relation `touched`."""
        return tuple(map(touched_name, self.node.keys))

    @property
    def merged_columns(self) -> list[str]:
        """The stored columns that a merge needs."""
        return [*(self.stored[key] for key in self.node.keys), *self.states]

    @property
    def states(self) -> list[str]:
        """The columns of the state; none if touched groups have to be recomputed."""
        if self.carried is None:
            return []
        return [COUNT, *(state.name for state in self.carried.states)]

    @property
    def _keys(self) -> list[Expression]:
        return [column(key) for key in self.node.keys]

    def increments(self, rows: str) -> exp.Select:
        """The amounts that the changed rows add to each touched group."""
        if self.carried is None:
            return select(self._keys, FromClause(table(rows))).distinct(copy=False)
        added, source = self.carried.increments(self.node.keys, rows)
        return select([*self._keys, *added], source, (), self._keys)

    def merged(self, increments: str, stored: str) -> exp.Select:
        """The touched groups after the change, from the stored groups and the increments."""
        assert self.carried is not None
        items: list[Expression] = [column(key, INCREMENTS) for key in self.node.keys]
        rows = [coalesce(column(COUNT, each), number(0)) for each in (STORED, INCREMENTS)]
        items.append(named(plus(*rows), COUNT))
        items += [state.merged for state in self.carried.states]
        doubts = [state.stale for state in self.carried.states if state.stale is not None]
        no = exp.Boolean(this=False)
        items.append(named(coalesce(any_of_them(doubts), no), STALE))
        on = every(
            same(column(self.stored[key], STORED), column(key, INCREMENTS))
            for key in self.node.keys
        )
        source = FromClause(table(increments, INCREMENTS)).join(
            table(stored, STORED), on, side="LEFT"
        )
        states = select(items, source)
        stale: Expression = column(STALE)
        if self.carried.doubts:
            stale = named(coalesce(any_of_them([stale, *self.carried.doubts]), no), STALE)
        items = [*self._keys, *map(column, self.states), stale]
        items += [named(value, name) for name, value in self.carried.values]
        return self._shown(select(items, FromClause(subquery(states, "groups"))), [STALE])

    def built(self, rows: Expression) -> exp.Select:
        """The groups, from a table of their rows."""
        items = self._keys
        if self.carried is not None:
            items.append(named(exp.Count(this=exp.Star(), big_int=True), COUNT))
            items += [state.build for state in self.carried.states]
        # The values too come from the rows, not from the states: these are Spark's own values.
        items += [named(value, name) for name, value in self.node.measures]
        return self._shown(select(items, FromClause(rows), (), self._keys), [])

    def _shown(self, groups: exp.Select, passed: Sequence[str]) -> exp.Select:
        """Groups with states and values, in the columns that the step stores."""
        outputs = [named(value, name) for name, value in self.outputs]
        outputs += [column(name) for name in (*self.states, *passed)]
        return select(outputs, FromClause(subquery(groups, "measured")))
