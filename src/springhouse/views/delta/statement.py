"""What comes out of the compiler: statements, and how a view is stored.

Everything here is data. The lake runs it, `explain` prints it, a planner may choose from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from springhouse.views.delta.row_select import Near, Origins
from springhouse.views.sql.expressions import Expression
from springhouse.views.sql.write_sql import in_one_place, spark_sql, template


class RelationKind(Enum):
    """What a relation in a statement stands for."""

    CHANGE = "change"  # the rows of an input (or hidden table) that changed, with a weight
    BEFORE = "before"  # an input as of the version that the view reflects
    AFTER = "after"  # an input as of the version that it will reflect
    STORED = "stored"  # the table that the step writes, with its hidden columns, as it is
    GIVEN = "given"  # rows that an earlier statement of the same step gave


@dataclass(frozen=True)
class RelationRead:
    """A relation that a statement names: `orders_after` is the input `orders`, after the change.

    Rows that are not `near`, or do not meet `where`, can be left out; it is never wrong to leave
    them in.
    """

    name: str
    kind: RelationKind
    of: str
    near: tuple[Near, ...] = ()
    where: tuple[Expression, ...] = ()


@dataclass(frozen=True, eq=False)
class Statement:
    """A query, the relations that have to be there for it, and the columns that it needs of each.

    Trees share their branches, so a branch does not know its parent: copy a tree before you change
    it. The text is written when somebody asks for it, and then kept.
    """

    query: Expression
    reads: tuple[RelationRead, ...]
    columns: Mapping[str, frozenset[str]]

    @cached_property
    def sql(self) -> str:
        """The query in Spark's SQL, as a person reads it."""
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
    """The columns of what a step writes: those that readers see, hidden ones, and its key.

    `types` are those of sums, as the statements take them to be.
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

    `merge` gives the touched groups as they are now, with `__springhouse_stale` where that could
    not be told without their rows; `increments` is its first half, and `merge_given` its second.
    `recompute` gives the groups whose keys are in the relation `touched`.
    """

    table: str
    layout: TableLayout
    build: Statement
    increments: Statement
    recompute: Statement
    # What its keys are called in the relation `touched`.
    touched_names: tuple[str, ...] = ()
    merge: Statement | None = None
    merge_given: Statement | None = None
    count: str | None = None

    @property
    def is_one_group(self) -> bool:
        """Whether all rows are one group, which is there even when they are none."""
        return not self.layout.keys


@dataclass(frozen=True)
class Bag:
    """A step that adds and removes rows: `change` gives them with a weight."""

    table: str
    layout: TableLayout
    build: Statement
    change: Statement


@dataclass(frozen=True)
class Leading:
    """What rows are ordered by first: the column `stored`, whose changed values are in `among`."""

    stored: str
    among: Origins
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Top:
    """A step that keeps the first rows of an order.

    `candidates` gives the first rows among those stored and those that came. When a stored row went
    (`__springhouse_stale`) and there may be more rows than are stored, only `build` knows who
    follows. With an OFFSET there are no candidates: it is always built. A change that is behind the
    last stored row by what is `leading` alone changes nothing.
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
    """All relations that some statements read, each once."""
    return tuple(dict.fromkeys(each for statement in statements for each in statement.reads))
