"""What does the compiler return? Statements, and the layout of the stored view.

Everything here is data. The lake runs it, `explain` prints it, and a planner chooses from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from springhouse.views.delta.row_select import Near, Origins
from springhouse.views.sql.expressions import Expression
from springhouse.views.sql.write_sql import in_one_place, spark_sql, template


class RelationKind(Enum):
    """The meaning of a relation in a statement."""

    CHANGE = "change"  # the rows of an input (or hidden table) that changed, with a weight
    BEFORE = "before"  # an input as of the version that the view reflects
    AFTER = "after"  # an input as of the version that it will reflect
    STORED = "stored"  # the current table that the step writes, with its hidden columns
    GIVEN = "given"  # the result of an earlier statement of the same step


@dataclass(frozen=True)
class RelationRead:
    """A relation that a statement names: `orders_after` is the input `orders`, after the change.

    Rows that are not `near`, or do not meet `where`, may be left out. The statement is also correct
    with them.
    """

    name: str
    kind: RelationKind
    of: str
    near: tuple[Near, ...] = ()
    where: tuple[Expression, ...] = ()


@dataclass(frozen=True, eq=False)
class Statement:
    """A query, the relations that it reads, and the columns that it needs of each relation.

    Trees share their branches, so a branch does not know its parent: copy a tree before you change
    it. The text is written at the first request, and then kept.
    """

    query: Expression
    reads: tuple[RelationRead, ...]
    columns: Mapping[str, frozenset[str]]

    @cached_property
    def sql(self) -> str:
        """The query in Spark's SQL, for people."""
        return spark_sql(self.query)

    def template(self, *, in_one_place: bool = False) -> str:
        """The query as a format string with a field per relation; see `views.sql.write_sql`."""
        return self._in_one_place if in_one_place else self._template

    @cached_property
    def _template(self) -> str:
        return template(self.query, [each.name for each in self.reads])

    @cached_property
    def _in_one_place(self) -> str:
        return template(in_one_place(self.query), [each.name for each in self.reads])


@dataclass(frozen=True)
class TableLayout:
    """The columns of a table that a step writes: visible columns, hidden columns, and the key.

    `types` are the types of sums that the statements assume.
    """

    visible: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.visible, *self.hidden)


@dataclass(frozen=True)
class Keyed:
    """A step that keeps one row per group. `table` is a hidden table, or "" for the view itself.

    `merge` gives the touched groups after the change. It marks a group as `__springhouse_stale` if
    the group has to be computed from its rows. `increments` is the first half of a merge, and
    `merge_given` the second. `recompute` gives the groups with keys in the relation `touched`.
    """

    table: str
    layout: TableLayout
    build: Statement
    increments: Statement
    recompute: Statement
    # The names of the keys in the relation `touched`.
    touched_names: tuple[str, ...] = ()
    merge: Statement | None = None
    merge_given: Statement | None = None
    count: str | None = None

    @property
    def is_one_group(self) -> bool:
        """Whether all rows are one group, which exists even without rows."""
        return not self.layout.keys


@dataclass(frozen=True)
class Bag:
    """A step that adds and removes rows: `change` gives these rows with a weight."""

    table: str
    layout: TableLayout
    build: Statement
    change: Statement


@dataclass(frozen=True)
class Leading:
    """The first column of an order: `stored` is its name, `among` has its changed values."""

    stored: str
    among: Origins
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Top:
    """A step that keeps the first rows of an order.

    `candidates` gives the first rows among the stored and the new ones. If a stored row was deleted
    (`__springhouse_stale`) and the view may have more rows than the stored ones, only `build` knows
    the next row. With an OFFSET there are no candidates, and every refresh runs `build`. If the
    column `leading` alone puts a change behind the last stored row, the step changes nothing.
    """

    table: str
    layout: TableLayout
    build: Statement
    candidates: Statement | None
    limit: int
    leading: Leading | None = None


Step = Keyed | Bag | Top


@dataclass(frozen=True)
class Refresh:
    """The steps that bring a view up to date after a change of `changed`, in order.

    Every step but the last writes a hidden table that later ones read.
    """

    changed: frozenset[str]
    steps: tuple[Step, ...]


STALE = "__springhouse_stale"


def readings(statements: Iterable[Statement]) -> tuple[RelationRead, ...]:
    """All relations that the statements read, without duplicates."""
    return tuple(dict.fromkeys(each for statement in statements for each in statement.reads))
