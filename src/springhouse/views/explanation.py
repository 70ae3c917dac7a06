"""What does an incremental refresh of a view do, in words and SQL for a person?

The explanation is made from the very statements that the lake runs:

    state   the hidden columns of the view's own files, and its hidden tables
    steps   one per table that is written, the view itself last: the statements of the step, and
            the meaning of each relation that a statement reads

The SQL runs as it is shown, wherever relations of those names exist.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from springhouse.views.compile import Compiled
from springhouse.views.delta.aggregate import HIDDEN
from springhouse.views.delta.row_select import WEIGHT
from springhouse.views.delta.statement import (
    STALE,
    Bag,
    Keyed,
    RelationKind,
    RelationRead,
    Statement,
    Step,
    Top,
)

_ALL_OF_IT = "all rows, from the inputs: for a first refresh, and where what is stored does not fit"


@dataclass(frozen=True)
class HiddenColumn:
    """A column that readers of the table do not see, and the expression that it holds."""

    name: str
    holds: str


@dataclass(frozen=True)
class HiddenTable:
    """A table beside the view, for its incremental refreshes; its rows are stored by `keys`."""

    name: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    hidden_columns: tuple[HiddenColumn, ...]


@dataclass(frozen=True)
class ViewState:
    """The data stored for incremental refreshes, besides the rows of the view."""

    hidden_columns: tuple[HiddenColumn, ...]
    tables: tuple[HiddenTable, ...]


@dataclass(frozen=True)
class RelationMeaning:
    """The name of a relation in a statement, and its meaning."""

    name: str
    meaning: str


@dataclass(frozen=True)
class StatementExplanation:
    """A statement, its result in words, and whether it runs in a usual refresh."""

    name: str
    gives: str
    usual: bool
    sql: str
    reads: tuple[RelationMeaning, ...]


@dataclass(frozen=True)
class StepExplanation:
    """The statements that write one table; `holds` describes the rows of the table."""

    writes: str
    hidden: bool
    holds: str
    statements: tuple[StatementExplanation, ...]


@dataclass(frozen=True)
class RefreshExplanation:
    """The state of a view, and the steps of its refresh after a change of the `changed` inputs."""

    changed: tuple[str, ...]
    state: ViewState
    steps: tuple[StepExplanation, ...]


def explain_refresh(
    compiled: Compiled,
    view: str,
    inputs: Mapping[str, str] | None = None,
    changed: frozenset[str] | None = None,
) -> RefreshExplanation:
    """Explain the refresh of a view after a change of `changed` (default: all inputs).

    `inputs` maps the names of inputs in the statements to the names that the user knows.
    """
    refresh = compiled.refresh(compiled.inputs if changed is None else changed)
    words = _Words(view, inputs or {}, frozenset(compiled.hidden.values()))
    return RefreshExplanation(
        tuple(sorted(words.named(name) for name in refresh.changed)),
        _state(compiled),
        tuple(_step(step, words) for step in refresh.steps),
    )


# The stored state


def _state(compiled: Compiled) -> ViewState:
    *hidden, own = compiled.build
    tables = (
        HiddenTable(step.table, step.layout.keys, step.layout.visible, _hidden_columns(step))
        for step in hidden
    )
    return ViewState(_hidden_columns(own), tuple(tables))


def _hidden_columns(step: Step) -> tuple[HiddenColumn, ...]:
    """The columns that readers do not see, each with the expression that it holds."""
    given: dict[str, exp.Expr] = {}
    for alias in step.build.query.find_all(exp.Alias) if step.layout.hidden else ():
        given.setdefault(alias.alias, alias.this)
    return tuple(HiddenColumn(name, _traced(name, given)) for name in step.layout.hidden)


def _traced(name: str, given: Mapping[str, exp.Expr]) -> str:
    """The expression that computes a column, with all mere renamings followed back."""
    value: exp.Expr = exp.column(name)
    seen: set[str] = set()
    while isinstance(value, exp.Column) and value.name in given and value.name not in seen:
        seen.add(value.name)
        value = given[value.name]
    return value.sql(dialect="spark")


# The statements


def _step(step: Step, words: "_Words") -> StepExplanation:
    usual = usual_statements(step)
    statements = (
        StatementExplanation(
            name,
            gives,
            any(statement is each for each in usual),
            statement.sql,
            tuple(
                RelationMeaning(reading.name, words.meaning(reading, step))
                for reading in statement.reads
            ),
        )
        for name, statement, gives in _statements(step)
    )
    return StepExplanation(
        step.table or words.view, bool(step.table), _holds(step), tuple(statements)
    )


def usual_statements(step: Step) -> tuple[Statement, ...]:
    """The statements of a step that run in a usual refresh, when no group is stale."""
    match step:
        case Keyed():
            anew = (step.increments, step.recompute)
            return (step.merge,) if step.merge is not None else tuple(dict.fromkeys(anew))
        case Bag():
            return (step.change,)
        case Top():
            return (step.candidates or step.build,)


def _holds(step: Step) -> str:
    match step:
        case Keyed():
            keys = [key.removeprefix(f"{HIDDEN}key_") for key in step.layout.keys]
            return f"one row per {', '.join(keys)}" if keys else "one row"
        case Bag():
            return "rows that come and go"
        case Top():
            return f"the first {step.limit:,} rows" if step.limit != 1 else "the first row"


def _statements(step: Step) -> Iterator[tuple[str, Statement, str]]:
    """The statements of a step: name, statement, and its result in words."""
    match step:
        case Keyed():
            yield from _of_groups(step)
        case Bag():
            yield "change", step.change, f"the rows to add ({WEIGHT} +1) and to remove (-1)"
        case Top() if step.candidates is not None:
            gives = (
                f"{_holds(step)} among the stored and the changed ones; where {STALE} is 1, a "
                "stored row has gone and `build` runs instead"
            )
            yield "candidates", step.candidates, gives
        case Top():
            pass
    yield "build", step.build, _ALL_OF_IT


def _of_groups(step: Keyed) -> Iterator[tuple[str, Statement, str]]:
    if step.increments is step.build:
        return
    if step.merge is not None:
        gives = "the groups that the change touches, as they are after it"
        if step.count is not None and not step.is_one_group:
            gives += f"; where {step.count} is 0, the group is gone"
        gives += f"; where {STALE} is true, `recompute` follows"
        yield "merge", step.merge, gives
    touched = "what the change adds to each group that it touches"
    if step.merge is None:
        touched = "the keys of the groups that the change touches"
    yield "increments", step.increments, touched
    if step.merge_given is not None:
        gives = "as `merge`, in two halves, so that only files with touched groups are read"
        yield "merge_given", step.merge_given, gives
    yield "recompute", step.recompute, "the groups in `touched`, computed anew from their rows"


class _Words:
    """The names of one view, and the meanings of relations in terms of these names."""

    def __init__(self, view: str, inputs: Mapping[str, str], hidden: frozenset[str]) -> None:
        self.view = view
        self._inputs = inputs
        self._hidden = hidden

    def named(self, name: str) -> str:
        """An input or a hidden table, under the name that a person knows."""
        return f"the hidden table {name}" if name in self._hidden else self._inputs.get(name, name)

    def meaning(self, reading: RelationRead, step: Step) -> str:
        """The meaning of a relation, in words."""
        near = [
            f"{each.column} is among {' or '.join(map('.'.join, each.among))}"
            for each in reading.near
        ]
        enough = f"; only rows matter whose {' and whose '.join(near)}" if near else ""
        return self._relation(reading, step) + enough

    def _relation(self, reading: RelationRead, step: Step) -> str:
        name, hidden = self.named(reading.of), reading.of in self._hidden
        match reading.kind:
            case RelationKind.CHANGE:
                by = " by an earlier step" if hidden else ""
                return f"the rows of {name} that changed{by}, with {WEIGHT} +1 or -1"
            case RelationKind.BEFORE if hidden:
                return f"{name} before this refresh"
            case RelationKind.BEFORE:
                return f"{name} as of the version that {self.view} reflects"
            case RelationKind.AFTER if hidden:
                return f"{name} after the steps before this one"
            case RelationKind.AFTER:
                return f"{name} as of the version that {self.view} will reflect"
            case RelationKind.STORED:
                own = self.named(step.table) if step.table else self.view
                more = ", with its hidden columns" if step.layout.hidden else ""
                return f"{own} as it is stored{more}"
            case RelationKind.GIVEN if reading.of == "increments":
                return "the rows that `increments` gave"
            case RelationKind.GIVEN:
                names = ", ".join(step.touched_names) if isinstance(step, Keyed) else ""
                return f"the keys of the groups to compute anew, as {names}"
