"""Which queries, over which data and through which changes, should a view survive?

A seed makes a case: tables of tiny domains with many NULLs and duplicates, a query in Spark SQL
(most are flat, some are nested four levels deep), and a few changes of the tables. A case carries
no expected rows: the oracle is the query itself, run again after each change. So all that matters
is that

    the rows of a query, as a bag, are a function of its tables, the same one in Spark and DuckDB

(after sqlglot has carried the query over). That is why some of SQL is missing here, on purpose.
Left out because the two engines or sqlglot's translation disagree: division, casts of decimals to
integers or strings, `percentile`, LATERAL VIEW OUTER, lists of nothing, grouping sets over no rows.
Left out because rows would depend on luck: ties in ordered functions, and sums of fractions as
keys. So each term of a query says what it may be used for:

    exact   its value does not depend on the order of additions: rows may be sorted by it
    small   it may be multiplied or squared without overflow or cancellation

`python tests/views/random_cases.py 17 [top_k]` prints a case.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import count
from random import Random
from typing import Any

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Delta:
    """What a change does to one table: first `deleted` rows go, one copy each, then others come."""

    deleted: list[Row]
    inserted: list[Row]


@dataclass(frozen=True)
class Case:
    """A query, the tables that it reads, and what happens to them."""

    seed: int
    tables: Mapping[str, Mapping[str, str]]
    """Table, column, and the column's type in Spark."""
    rows: Mapping[str, list[Row]]
    """What the tables hold at first. An array is a tuple, so that rows can be counted."""
    query: str
    changes: tuple[Mapping[str, Delta], ...]
    only: str | None = None
    """The operator that was asked for, if one was."""
    recomputed: bool = False
    """Whether the query has an aggregate that no state smaller than its group can maintain."""


def case(seed: int, only: str | None = None) -> Case:
    """The case of that seed; with `only`, the one of `OPERATORS` on top of little else."""
    if only is not None and only not in OPERATORS:
        raise ValueError(f'"{only}" is not an operator; choose one of {", ".join(OPERATORS)}')
    dice = Random(seed)
    tables = _tables(dice, with_array=only == "explode_column")
    rows = {table: _rows(dice, list(columns.values())) for table, columns in tables.items()}
    depth = 1 if only else dice.choice(_DEPTHS)
    # Every block is read and run some ten times over: by far most of what a case costs.
    writer = _Writer(dice, _relations(tables, rows), blocks=depth)
    query = writer.block(depth, only).sql
    read = [table for table in tables if re.search(rf"\b{table}\b", query)]
    changes = tuple(_changes(dice, tables, rows, read))
    recomputed = bool(re.search(r"\b(median|collect_list)\(", query))
    return Case(seed, tables, rows, query, changes, only, recomputed)


def states(case: Case) -> Iterator[dict[str, list[Row]]]:
    """The rows of all tables: at first, and after each change."""
    state = {table: list(rows) for table, rows in case.rows.items()}
    yield {table: list(rows) for table, rows in state.items()}
    for change in case.changes:
        for table, delta in change.items():
            _apply(state[table], delta)
        yield {table: list(rows) for table, rows in state.items()}


def describe(case: Case) -> str:
    """The whole case as text, and how to see it again."""
    lines = [f"case {case.seed}" + (f", only {case.only}" if case.only else "")]
    for table, columns in case.tables.items():
        names = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
        lines += ["", f"table {table} ({names}), {len(case.rows[table])} rows"]
        lines += [f"    {_row_sql(row, columns)}" for row in case.rows[table]]
    lines += ["", "query", *(f"    {line}" for line in _broken_into_lines(case.query))]
    for number, change in enumerate(case.changes, start=1):
        lines += ["", f"change {number}"]
        for table, delta in change.items():
            columns = case.tables[table]
            lines += [f"    {table} - {_row_sql(row, columns)}" for row in delta.deleted]
            lines += [f"    {table} + {_row_sql(row, columns)}" for row in delta.inserted]
    arguments = f"{case.seed}, only={case.only!r}" if case.only else f"{case.seed}"
    shell = f"{case.seed} {case.only or ''}".rstrip()
    lines += ["", f"again: random_cases.case({arguments})"]
    lines += [f"       .venv/bin/python tests/views/random_cases.py {shell}", ""]
    return "\n".join(lines)


def literal(value: Any, type_: str) -> str:
    """A value as Spark SQL.

    >>> literal(-2, "bigint"), literal(date(2024, 1, 5), "date"), literal(None, "int")
    ('-2L', "DATE '2024-01-05'", 'CAST(NULL AS INT)')
    """
    if value is None:
        return f"CAST(NULL AS {type_.upper()})"
    kind = _kind(type_)
    if kind == "array":
        return f"array({', '.join(literal(each, 'int') for each in value)})"
    if kind in ("string", "date"):
        return ("DATE " if kind == "date" else "") + f"'{value}'"
    return str(value).lower() + {"bigint": "L", "double": "D"}.get(kind, "")


def _row_sql(row: Row, columns: Mapping[str, str]) -> str:
    texts = (
        "NULL" if value is None else literal(value, type_)
        for value, type_ in zip(row, columns.values(), strict=True)
    )
    return f"({', '.join(texts)})"


_CLAUSE = re.compile(
    r" (?=(?:FROM|LEFT|RIGHT|FULL|(?<!LEFT )(?<!OUTER )(?<!RIGHT )(?<!SEMI )(?<!ANTI )JOIN|WHERE"
    r"|GROUP BY|HAVING|ORDER BY|UNION|INTERSECT|EXCEPT|LATERAL VIEW) )"
)


def _broken_into_lines(query: str) -> list[str]:
    """The same text, a clause per line, each as far to the right as it is deep in parentheses."""
    lines, depth = [], 0
    for line in _CLAUSE.sub("\n", query).split("\n"):
        lines.append("  " * depth + line)
        depth += line.count("(") - line.count(")")
    return lines


# --- data -----------------------------------------------------------------------------------------

_VALUES: Mapping[str, tuple[Any, ...]] = {
    # Some values are more frequent than others, so that joins meet even deep in a query.
    "int": (-3, -2, -1, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3),
    "bigint": (-3, -2, -1, 0, 1, 1, 1, 2, 2, 2, 3),
    "decimal": tuple(map(Decimal, ("-2.50", "-0.75", "0.00", "0.10", "1.00", "1.25", "3.99"))),
    "string": ("a", "a", "b", "b", "ab", "ba", "B", ""),
    "double": (-1.75, -0.5, 0.0, 0.25, 1.0, 2.5),
    "date": tuple(date(2024, 1, day) for day in (1, 2, 3, 5, 8, 13, 21)),
    "boolean": (True, False),
    "array": ((), (1,), (1, 1), (2, None), (None,), (-1, 0, 3)),
}
_COLUMNS: Mapping[str, str] = {
    # The same names in all tables, so that a query that forgets which one it means goes wrong.
    "k": "int",
    "a": "int",
    "b": "bigint",
    "d": "decimal(12,2)",
    "s": "string",
    "w": "string",
    "e": "date",
    "f": "boolean",
    "x": "double",
    "xs": "array<int>",
}
_MOST_ROWS = 30
# Many small cases find more than a few large ones in the same time; some have to be large, because
# rules also go wrong on top of each other.
_DEPTHS = (*[1] * 11, *[2] * 6, 3, 3, 4, 4)
_CHANGES = (2, 2, 2, 3, 3)


def _kind(type_: str) -> str:
    """A type without its parameters: `decimal(12,2)` is a decimal."""
    return re.split(r"[(<]", type_)[0]


def _tables(dice: Random, with_array: bool) -> dict[str, dict[str, str]]:
    tables = {}
    for table in ("r", "t", "u")[: dice.choice((2, 3))]:
        # Two columns at least can be grouped by, and all tables have the first.
        names = ["k", *dice.sample("abdswefx", dice.choice((1, 1, 2, 2, 3, 4)))]
        if names[1:] == ["x"]:
            names[1] = "a"
        if (with_array and not tables) or dice.random() < 0.25:
            names = [*names[:4], "xs"]
        tables[table] = {name: type_ for name, type_ in _COLUMNS.items() if name in names}
    return tables


def _value(dice: Random, type_: str, null_share: float = 0.2) -> Any:
    return None if dice.random() < null_share else dice.choice(_VALUES[_kind(type_)])


def _row(dice: Random, types: Sequence[str], like: Sequence[Row] = ()) -> Row:
    """A row that is new, or a copy of one of `like`, or nearly one."""
    luck = dice.random()
    if like and luck < 0.2:
        return dice.choice(like)
    if like and luck < 0.4:
        return _updated(dice, types, dice.choice(like))
    return tuple(_value(dice, type_) for type_ in types)


def _updated(dice: Random, types: Sequence[str], row: Row) -> Row:
    column = dice.randrange(len(row))
    return (*row[:column], _value(dice, types[column], null_share=0.3), *row[column + 1 :])


def _rows(dice: Random, types: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    for _ in range(dice.choice((0, 4, 8, 10, 12, 14, 16, 18, 22, _MOST_ROWS))):
        rows.append(_row(dice, types, like=rows))
    return rows


# --- changes --------------------------------------------------------------------------------------


def _apply(rows: list[Row], delta: Delta) -> None:
    for row in delta.deleted:
        rows.remove(row)
    rows += delta.inserted


def _mix(dice: Random, types: Sequence[str], rows: Sequence[Row]) -> Delta:
    deleted = dice.sample(rows, dice.randint(0, min(len(rows), 4)))
    return Delta(deleted, [_row(dice, types, like=rows) for _ in range(dice.randint(0, 4))])


def _insert(dice: Random, types: Sequence[str], rows: Sequence[Row]) -> Delta:
    return Delta([], [_row(dice, types, like=rows) for _ in range(dice.randint(1, 5))])


def _copy(dice: Random, types: Sequence[str], rows: Sequence[Row]) -> Delta:
    return Delta([], dice.sample(rows, min(len(rows), 3)))


def _delete(dice: Random, types: Sequence[str], rows: Sequence[Row]) -> Delta:
    return Delta(dice.sample(rows, dice.randint(min(len(rows), 1), min(len(rows), 6))), [])


def _clear(dice: Random, types: Sequence[str], rows: Sequence[Row]) -> Delta:
    return Delta(list(rows), [])


def _clear_group(dice: Random, types: Sequence[str], rows: Sequence[Row]) -> Delta:
    column = dice.randrange(len(types))
    values = [row[column] for row in rows]
    value = dice.choice(values) if values else None
    return Delta([row for row in rows if row[column] == value], [])


def _update(dice: Random, types: Sequence[str], rows: Sequence[Row]) -> Delta:
    deleted = dice.sample(rows, dice.randint(0, min(len(rows), 5)))
    # Now and then an update that updates nothing.
    inserted = [row if dice.random() < 0.1 else _updated(dice, types, row) for row in deleted]
    return Delta(deleted, inserted)


_KINDS = (*[_mix] * 4, *[_update] * 4, *[_insert] * 2, *[_delete] * 2, *[_clear_group] * 3, _copy)


def _touched(dice: Random, tables: Sequence[str], read: Sequence[str]) -> list[str]:
    """The tables of a change: mostly one at least that the query reads."""
    touched = dice.sample(tables, dice.choice((1, 1, 2, len(tables))))
    if read and dice.random() < 0.9 and not set(touched) & set(read):
        touched[0] = dice.choice(read)
    return touched


def _change(
    dice: Random,
    tables: Mapping[str, Sequence[str]],
    state: Mapping[str, list[Row]],
    read: Sequence[str],
) -> dict[str, Delta]:
    luck = dice.random()
    kind = _clear if luck < 0.18 else dice.choice(_KINDS)
    touched = list(tables) if luck < 0.08 else _touched(dice, list(tables), read)
    made = {}
    for table in touched:
        full = len(state[table]) > _MOST_ROWS
        made[table] = (_delete if full else kind)(dice, tables[table], state[table])
    return {table: delta for table, delta in made.items() if delta.deleted or delta.inserted}


def _refill(
    dice: Random,
    tables: Mapping[str, Sequence[str]],
    state: Mapping[str, list[Row]],
    before: Mapping[str, list[Row]],
) -> dict[str, Delta]:
    """Empty tables get rows again: some that they had, some that are new."""
    made = {}
    for table in (table for table in tables if not state[table]):
        old = dice.sample(before[table], dice.randint(0, len(before[table])))
        new = [_row(dice, tables[table]) for _ in range(dice.randint(1, 4))]
        made[table] = Delta([], old + new)
    return made


def _changes(
    dice: Random,
    tables: Mapping[str, Mapping[str, str]],
    rows: Mapping[str, list[Row]],
    read: Sequence[str],
) -> Iterator[dict[str, Delta]]:
    types = {table: list(columns.values()) for table, columns in tables.items()}
    state = {table: list(each) for table, each in rows.items()}
    before = {table: list(each) for table, each in rows.items()}
    for _ in range(dice.choice(_CHANGES)):
        change: dict[str, Delta] = {}
        if dice.random() < 0.6:
            change = _refill(dice, types, state, before)
        change = change or _change(dice, types, state, read)
        if not change:
            table = dice.choice(list(read) or list(types))
            change = {table: _insert(dice, types[table], state[table])}
        for table, delta in change.items():
            before[table] = list(state[table]) or before[table]
            _apply(state[table], delta)
        yield change


# --- what a query is made of ----------------------------------------------------------------------

_NUMBERS = frozenset({"int", "bigint", "decimal", "double"})
_KEYS = frozenset({"int", "bigint", "decimal", "string", "date", "boolean"})
_FULL_TYPES = {_kind(type_): type_ for type_ in _COLUMNS.values()}


@dataclass(frozen=True)
class Term:
    """A column or expression, and what it may be used for."""

    sql: str
    type: str
    exact: bool = True
    small: bool = True

    @property
    def is_key(self) -> bool:
        """Whether rows may be grouped, joined and compared by it."""
        return self.exact and self.type in _KEYS

    @property
    def is_sortable(self) -> bool:
        return self.exact and self.type in _KEYS | {"double"}


@dataclass(frozen=True)
class Relation:
    """SQL that makes rows, the terms that others may use about them, and roughly how many."""

    sql: str
    terms: tuple[Term, ...]
    size: int
    spelled: bool = False
    """Whether it is a VALUES, whose columns its alias must name."""


def _relations(
    tables: Mapping[str, Mapping[str, str]], rows: Mapping[str, list[Row]]
) -> list[Relation]:
    return [
        # Changes may add some rows to those.
        Relation(
            table,
            tuple(Term(name, _kind(type_)) for name, type_ in columns.items()),
            size=len(rows[table]) + 5,
        )
        for table, columns in tables.items()
    ]


def _comparable(left: Term, right: Term) -> bool:
    types = {left.type, right.type}
    # Not a bigint with a decimal: DuckDB sums integers to HUGEINT, which has no decimal to match.
    alike = len(types) == 1 or types in ({"int", "bigint"}, {"int", "decimal"})
    return left.is_key and right.is_key and alike


def _bare(term: Term) -> Term:
    return replace(term, sql=term.sql.rpartition(".")[2])


# In a template, {0} is the term, {1} another of its type, {n} a literal of its type, {i} a small
# integer, and {p} a condition. A result's type is the term's where none is given.
_ANY = (("({p})", "boolean"), ("({0} IS NULL)", "boolean"), ("CASE WHEN {p} THEN {0} END", ""))
_CHOICES = (
    ("coalesce({0}, {n})", ""),
    ("coalesce({0}, {1})", ""),
    ("nullif({0}, {n})", ""),
    ("CASE WHEN {p} THEN {0} ELSE {n} END", ""),
    ("if({p}, {0}, {1})", ""),
)
_ARITHMETIC = (
    ("({0} + {n})", ""),
    ("({0} - {1})", ""),
    ("({0} * 2)", ""),
    ("(0 - {0})", ""),
    ("abs({0})", ""),
    ("greatest({0}, {1})", ""),
    ("least({0}, {n})", ""),
)
_TEMPLATES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "int": (
        *(*_CHOICES, *_ARITHMETIC),
        ("({0} % 2)", ""),
        ("({0} * {1})", ""),
        ("CAST({0} AS BIGINT)", "bigint"),
        ("CAST({0} AS DECIMAL(12,2))", "decimal"),
        ("CAST({0} AS DOUBLE)", "double"),
        ("CAST({0} AS STRING)", "string"),
        ("CASE {0} WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END", "string"),
    ),
    "bigint": (*_CHOICES, *_ARITHMETIC, ("({0} % 3)", ""), ("({0} * {i})", "")),
    "decimal": (*_CHOICES, *_ARITHMETIC, ("({0} + {i})", ""), ("({0} * {i})", "")),
    "double": (*_CHOICES[:2], *_CHOICES[3:], *_ARITHMETIC, ("({0} * {i})", "")),
    "string": (
        *_CHOICES,
        ("({0} || 'x')", ""),
        ("concat({0}, {1})", ""),
        ("upper({0})", ""),
        ("substring({0}, 1, 1)", ""),
        ("length({0})", "int"),
    ),
    "date": (
        *_CHOICES,
        # The cast, because DuckDB makes a timestamp of it.
        ("CAST(date_add({0}, 2) AS DATE)", ""),
        ("datediff({0}, DATE '2024-01-04')", "int"),
        ("day({0})", "int"),
        ("CAST({0} AS STRING)", "string"),
    ),
    "boolean": (
        *_CHOICES,
        ("(NOT {0})", ""),
        ("({0} AND {1})", ""),
        ("({0} OR {p})", ""),
        ("CAST({0} AS INT)", "int"),
        ("CASE WHEN {0} THEN 'yes' ELSE 'no' END", "string"),
    ),
}
_CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "number": (
        *("{0} = {n}", "{0} <> {n}", "{0} <> {m}", "{0} <= {high}", "{0} >= {low}"),
        *("{0} <= {1}", "{0} <> {1}", "{0} BETWEEN {low} AND {high}", "{0} IN ({n}, {m}, {low})"),
        *("{0} NOT IN ({n}, {m})", "{0} IN ({n}, {m}, NULL)", "{0} <=> {1}", "{0} = {1}"),
    ),
    "large": ("{0} >= {n}", "{0} > {low}", "{0} <> {n}", "{0} <= {1}", "NOT ({0} <=> {1})"),
    "double": ("{0} <= {high}", "{0} > {low}", "{0} <= {1}", "{0} BETWEEN {low} AND {high}"),
    "string": (
        *("{0} LIKE 'a%'", "{0} LIKE '%b%'", "{0} LIKE '_'", "{0} NOT LIKE '%a'", "{0} = {n}"),
        *("{0} <> {n}", "{0} <= {high}", "{0} >= {low}", "{0} IN ({n}, {m}, 'a', 'b')"),
        *("{0} = {1}", "NOT ({0} <=> {n})"),
    ),
    "boolean": ("{0}", "NOT {0}", "{0} = {1}", "{0} <=> {n}", "{0} IS NOT TRUE"),
}
_RANK_FUNCTIONS = ("row_number", "rank", "dense_rank")
_FRAMES = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)
_MOST_JOINED = 4_000


class _Writer:
    """Writes one query: a block for each operator, of blocks and tables."""

    def __init__(self, dice: Random, tables: Sequence[Relation], blocks: int) -> None:
        self.dice = dice
        self.tables = tables
        self.blocks = blocks
        self.numbers = count(1)
        self.unaliased = {table.sql for table in tables}
        self.visible: list[Relation] = []
        """Common table expressions that may be read here."""
        self.wanted: list[Relation] = []
        """Relations that must be read next."""

    # --- luck

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def some(self, terms: Sequence[Term], low: int, high: int) -> list[Term]:
        """Between `low` and `high` different terms, if there are so many."""
        terms = list(terms)
        most = min(high, len(terms))
        return self.dice.sample(terms, self.dice.randint(min(low, most), most))

    def name(self, letter: str) -> str:
        return f"{letter}{next(self.numbers)}"

    def value(self, type_: str) -> str:
        return literal(self.dice.choice(_VALUES[type_]), type_)

    # --- expressions

    def condition(self, terms: Sequence[Term], simple: bool = False) -> str:
        """Something that is true, false or unknown about a row."""
        if not simple and self.chance(0.3):
            one, other = self.condition(terms, simple=True), self.condition(terms, simple=True)
            # Most conditions let most rows pass, or else deep queries would return none.
            forms = ("({} OR {})", "({} OR {})", "({} AND {})", "NOT ({} AND {})")
            return self.dice.choice(forms).format(one, other)
        usable = [term for term in terms if term.is_sortable]
        if not usable or self.chance(0.12):
            return f"{self.dice.choice(terms).sql} IS {self.dice.choice(('', 'NOT ', 'NOT '))}NULL"
        term = self.dice.choice(usable)
        if not simple and self.chance(0.25):
            term = self.expression([term])
        group = term.type if term.type in _CONDITIONS else "number" if term.small else "large"
        return self.filled(self.dice.choice(_CONDITIONS[group]), term, usable)

    def filled(self, template: str, term: Term, terms: Sequence[Term]) -> str:
        values = sorted(_VALUES[term.type])
        half = len(values) // 2
        peers = [each for each in terms if each.type == term.type and each != term]
        small = [each.sql for each in terms if each.type == "int" and each.small]
        return template.format(
            term.sql,
            self.dice.choice(peers).sql if peers else self.value(term.type),
            n=self.value(term.type),
            m=self.value(term.type),
            i=self.dice.choice([*small, "2", "3"]),
            low=literal(self.dice.choice(values[:half]), term.type),
            high=literal(self.dice.choice(values[half:]), term.type),
            p=self.condition(terms, simple=True) if "{p}" in template else "",
        )

    def expression(self, terms: Sequence[Term], plain: float = 0.0) -> Term:
        """A term computed from those; a plain one of them with that chance."""
        term = self.dice.choice(terms)
        if not term.is_sortable or self.chance(plain):
            return term
        usable = [each for each in terms if each.is_sortable]
        template, type_ = self.dice.choice((*_TEMPLATES[term.type], *_ANY))
        multiplies = "* {" in template
        if multiplies and not all(each.small for each in usable):
            return term
        small = all(each.small for each in usable) and not multiplies
        return Term(self.filled(template, term, usable), type_ or term.type, small=small)

    def outputs(self, terms: Sequence[Term], low: int = 1, high: int = 5) -> list[Term]:
        return [
            self.expression([term, *terms]) if self.chance(0.12) else term
            for term in self.some(terms, low, high)
        ]

    # --- aggregates

    def aggregate(self, terms: Sequence[Term], exact: bool = False, plain: bool = False) -> Term:
        """An aggregate that small state can maintain; `exact` ones may be compared."""
        kinds = [self.counted, self.summed, self.extreme, self.extreme, self.summed]
        if not exact:
            kinds += [self.averaged, self.averaged, self.spread]
        if not plain:
            kinds += [self.all_or_any, self.of_distinct]
        made = self.dice.choice(kinds)(terms)
        if exact and not made.is_sortable:
            return Term("count(*)", "bigint", small=False)
        return self.filtered(made, terms) if not plain and self.chance(0.15) else made

    def filtered(self, made: Term, terms: Sequence[Term]) -> Term:
        return replace(made, sql=f"{made.sql} FILTER (WHERE {self.condition(terms, simple=True)})")

    def number(self, terms: Sequence[Term], types: frozenset[str] = _NUMBERS) -> Term:
        """A number to add up."""
        numbers = [term for term in terms if term.type in types]
        if not numbers:
            return Term(f"if({self.condition(terms, simple=True)}, 1, 2)", "int")
        made = self.expression(numbers, plain=0.7)
        return made if made.type in types else numbers[0]

    def counted(self, terms: Sequence[Term]) -> Term:
        what = self.dice.choice(("*", "*", self.expression(terms, plain=0.8).sql))
        return Term(f"count({what})", "bigint", small=False)

    def summed(self, terms: Sequence[Term]) -> Term:
        number = self.number(terms)
        type_ = "bigint" if number.type == "int" else number.type
        return Term(f"sum({number.sql})", type_, number.exact, small=False)

    def averaged(self, terms: Sequence[Term]) -> Term:
        return Term(f"avg({self.number(terms).sql})", "double", exact=False, small=False)

    def spread(self, terms: Sequence[Term]) -> Term:
        numbers = [term for term in terms if term.type in _NUMBERS and term.exact and term.small]
        if not numbers:
            return self.averaged(terms)
        function = self.dice.choice(("stddev_samp", "var_pop"))
        sql = f"{function}({self.dice.choice(numbers).sql})"
        return Term(sql, "double", exact=False, small=False)

    def extreme(self, terms: Sequence[Term]) -> Term:
        usable = [term for term in terms if term.type != "array"]
        if not usable:
            return self.counted(terms)
        term = self.expression(usable, plain=0.85)
        return replace(term, sql=f"{self.dice.choice(('min', 'max'))}({term.sql})")

    def all_or_any(self, terms: Sequence[Term]) -> Term:
        function = self.dice.choice(("bool_and", "bool_or"))
        return Term(f"{function}({self.condition(terms, simple=True)})", "boolean")

    def of_distinct(self, terms: Sequence[Term]) -> Term:
        keys = [term for term in terms if term.is_key]
        if keys and self.chance(0.6):
            columns = ", ".join(
                term.sql for term in self.some(keys, 1, self.dice.choice((1, 1, 2)))
            )
            return Term(f"count(DISTINCT {columns})", "bigint", small=False)
        number = self.number(terms, _NUMBERS - {"double"})
        type_ = "decimal" if number.type == "decimal" else "bigint"
        return Term(f"sum(DISTINCT {number.sql})", type_, small=False)

    def recompute(self, terms: Sequence[Term], grouped: bool) -> Term:
        """An aggregate of which nobody knows how to maintain it but to look at the whole group."""
        numbers = [
            term for term in terms if term.exact and term.type in ("int", "bigint", "double")
        ]
        strings = [term for term in terms if term.exact and term.type == "string"]
        # A group has a row, and coalesce a value: a list of nothing is NULL in DuckDB.
        if grouped and strings and self.chance(0.3):
            values = f"collect_list(coalesce({self.dice.choice(strings).sql}, '?'))"
            return Term(f"array_join(sort_array({values}), ',')", "string")
        whole = [term for term in numbers if term.type == "int"]
        if grouped and whole and self.chance(0.5):
            values = f"collect_list(coalesce({self.dice.choice(whole).sql}, 0))"
            return Term(f"sort_array({values})", "array")
        number = self.dice.choice(numbers).sql if numbers else self.number(terms, frozenset()).sql
        return Term(f"median({number})", "double", exact=False, small=False)

    # --- where rows come from

    def source(self, depth: int) -> Relation:
        """A table, or something nested, under a new alias."""
        return self.named(self.below(depth))

    def below(self, depth: int) -> Relation:
        """A table, or something nested, without an alias."""
        if self.wanted:
            return self.wanted.pop()
        if depth > 0 and self.blocks > 0 and self.chance(0.8):
            self.blocks -= 1
            query = self.block(depth)
            return replace(query, sql=f"({query.sql})")
        return self.leaf()

    def source_with(self, depth: int, fits: Callable[[Term], bool], least: int = 1) -> Relation:
        """A source with so many terms that fit; every table has two keys."""
        source = self.source(depth)
        if sum(map(fits, source.terms)) >= least:
            return source
        return self.named(self.dice.choice(self.tables))

    def leaf(self) -> Relation:
        if self.visible and self.chance(0.5):
            return self.dice.choice(self.visible)
        return self.dice.choice(self.tables)

    def spelled_out(self) -> Relation:
        types = [self.dice.choice(("int", "int", "string", "decimal", "date")) for _ in range(2)]
        types[0] = "int"
        rows = [
            f"({', '.join(literal(_value(self.dice, t, 0.1), _FULL_TYPES[t]) for t in types)})"
            for _ in range(self.dice.randint(1, 4))
        ]
        terms = tuple(Term(self.name("v"), type_) for type_ in types)
        return Relation(f"(VALUES {', '.join(rows)})", terms, len(rows), spelled=True)

    def named(self, relation: Relation) -> Relation:
        # A table without an alias is used once at most, so that an inner one never hides an outer.
        if relation.sql in self.unaliased and self.chance(0.25):
            self.unaliased.remove(relation.sql)
            alias, sql = relation.sql, relation.sql
        else:
            alias = self.name("q")
            columns = ", ".join(term.sql for term in relation.terms)
            sql = f"{relation.sql} AS {alias}" + (f"({columns})" if relation.spelled else "")
        terms = tuple(replace(term, sql=f"{alias}.{term.sql}") for term in relation.terms)
        return Relation(sql, terms, relation.size)

    def partner(self, left: Relation, depth: int) -> Relation:
        """Something to join with, not so large that the result would be huge."""
        if not self.wanted and self.chance(0.05):
            return self.named(self.spelled_out())
        right = self.source(depth if self.chance(0.3) else min(depth, 1))
        if left.size * right.size <= _MOST_JOINED:
            return right
        smallest = min(self.tables, key=lambda table: table.size)
        fits = left.size * smallest.size <= _MOST_JOINED
        return self.named(smallest if fits else self.spelled_out())

    def equality(self, left: Sequence[Term], right: Sequence[Term]) -> str:
        """A condition that makes a join an equi-join; any condition where there is none."""
        pairs = [(one, other) for one in left for other in right if _comparable(one, other)]
        if not pairs:
            return self.condition([*left, *right])
        one, other = self.pair(pairs)
        return f"{one.sql} {'<=>' if self.chance(0.08) else '='} {other.sql}"

    def pair(self, pairs: Sequence[tuple[Term, Term]]) -> tuple[Term, Term]:
        """One of those pairs, rather one whose values often meet."""
        # Booleans join everything with half of everything, and few decimals or sums are small
        # integers.
        likely = [
            pair
            for pair in pairs
            if pair[0].type != "boolean"
            and all(term.small for term in pair)
            and {term.type for term in pair} != {"int", "decimal"}
        ]
        return self.dice.choice(likely if likely and self.chance(0.8) else pairs)

    def on(self, left: Relation, right: Relation) -> str:
        if self.chance(0.12):
            pairs = [(o, p) for o in left.terms for p in right.terms if _comparable(o, p)]
            if pairs:
                one, other = self.dice.choice(pairs)
                return f"{one.sql} {self.dice.choice(('<', '<>', '>='))} {other.sql}"
        conditions = [self.equality(left.terms, right.terms)]
        if self.chance(0.1):
            conditions.append(self.equality(left.terms, right.terms))
        if self.chance(0.2):
            conditions.append(self.condition([*left.terms, *right.terms]))
        return " AND ".join(dict.fromkeys(conditions))

    def joined(self, left: Relation, kind: str, right: Relation) -> Relation:
        sql = f"{left.sql} {kind} {right.sql} ON {self.on(left, right)}"
        size = max(left.size * right.size // 3, left.size, right.size)
        return Relation(sql, (*left.terms, *right.terms), size)

    def origin(self, depth: int) -> Relation:
        """What follows FROM: one source, or some joined."""
        relation = self.source(depth)
        while self.chance(0.3):
            kind = self.dice.choice(("JOIN", "JOIN", "LEFT JOIN", "FULL OUTER JOIN"))
            relation = self.joined(relation, kind, self.partner(relation, 0))
        return relation

    def where(self, terms: Sequence[Term], share: float = 0.2) -> str:
        return f" WHERE {self.condition(terms)}" if self.chance(share) else ""

    def select(
        self, items: Sequence[Term], origin: str, size: int, rest: str = "", how: str = ""
    ) -> Relation:
        """SELECT, with a name for each item: often its own, as people do."""
        names: list[str] = []
        for item in items:
            own = re.fullmatch(r"(?:\w+\.)?([a-z]\w*)", item.sql)
            keeps = own and own[1] not in names and self.chance(0.6)
            names.append(own[1] if own and keeps else self.name("c"))
        columns = ", ".join(
            f"{item.sql} AS {name}" for item, name in zip(items, names, strict=True)
        )
        terms = tuple(replace(item, sql=name) for item, name in zip(items, names, strict=True))
        return Relation(f"SELECT {how}{columns} FROM {origin}{rest}", terms, size)

    # --- the operators

    def block(self, depth: int, operator: str | None = None) -> Relation:
        """A query with that operator on top, or with any."""
        if operator is None:
            arrays = any(term.type == "array" for table in self.tables for term in table.terms)
            operator = self.dice.choice(OPERATORS)
            if operator == "explode_column" and not arrays:
                operator = "explode_array"
        return _OPERATORS[operator](self, max(depth, 1))

    def filter(self, depth: int) -> Relation:
        origin = self.source(depth - 1)
        terms = tuple(map(_bare, origin.terms)) if self.chance(0.3) else origin.terms
        rest = f" WHERE {self.condition(terms)}"
        return self.select(terms, origin.sql, origin.size, rest)

    def project(self, depth: int) -> Relation:
        origin = self.source(depth - 1)
        terms = tuple(map(_bare, origin.terms)) if self.chance(0.3) else origin.terms
        items = [self.expression([term, *terms], plain=0.25) for term in self.some(terms, 1, 4)]
        return self.select(items, origin.sql, origin.size, self.where(terms, 0.15))

    def derived_table(self, depth: int) -> Relation:
        query = self.block(
            depth - 1, None if depth > 1 else self.dice.choice(("filter", "project"))
        )
        origin = self.named(replace(query, sql=f"({query.sql})"))
        items = self.outputs(origin.terms)
        return self.select(items, origin.sql, origin.size, self.where(origin.terms, 0.7))

    def cte(self, depth: int) -> Relation:
        body = self.block(depth - 1, None if depth > 1 else self.dice.choice(("filter", "project")))
        name = self.name("w")
        shared = Relation(name, body.terms, body.size)
        self.wanted = [shared] * self.dice.choice((1, 2, 2))
        self.visible.append(shared)
        operator = self.dice.choice(
            ("filter", "inner_join", "union_all", "left_join", "group_by", "exists", "except_all")
        )
        main = self.block(1, operator)
        self.visible.pop()
        self.wanted = []
        return replace(main, sql=f"WITH {name} AS ({body.sql}) {main.sql}")

    def values(self, depth: int) -> Relation:
        self.wanted = [self.spelled_out()]
        operator = self.dice.choice(
            ("inner_join", "union_all", "left_join", "full_join", "in_subquery", "comma_join")
        )
        main = self.block(depth, operator)
        self.wanted = []
        return main

    def inner_join(self, depth: int) -> Relation:
        joined = self.source(depth - 1)
        for _ in range(self.dice.choice((1, 1, 1, 2, 3))):
            joined = self.joined(joined, "JOIN", self.partner(joined, depth - 1))
        return self.select(
            self.outputs(joined.terms), joined.sql, joined.size, self.where(joined.terms, 0.15)
        )

    def self_join(self, depth: int) -> Relation:
        table = self.dice.choice([*self.tables, *self.visible])
        joined = self.joined(self.named(table), "JOIN", self.named(table))
        return self.select(
            self.outputs(joined.terms), joined.sql, joined.size, self.where(joined.terms, 0.15)
        )

    def comma_join(self, depth: int) -> Relation:
        left = self.source(depth - 1)
        conditions, sql, terms, size = [], left.sql, left.terms, left.size
        for _ in range(self.dice.choice((1, 1, 2))):
            right = self.partner(Relation(sql, terms, size), depth - 1)
            conditions.append(self.equality(terms, right.terms))
            sql, terms = f"{sql}, {right.sql}", (*terms, *right.terms)
            size = max(size * right.size // 3, 1)
        if self.chance(0.4):
            conditions.append(self.condition(terms))
        rest = f" WHERE {' AND '.join(conditions)}"
        return self.select(self.outputs(terms), sql, size, rest)

    def using_join(self, depth: int) -> Relation:
        one, other = self.dice.choices(self.tables, k=2)
        names = {term.sql for term in one.terms if term.is_key}
        shared = [term for term in other.terms if term.sql in names]
        shared = self.some(shared, 1, 2)
        left, right = self.named(one), self.named(other)
        kind = self.dice.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN"))
        sql = f"{left.sql} {kind} {right.sql} USING ({', '.join(term.sql for term in shared)})"
        # The shared columns without a table: each is then the one that is not NULL.
        hidden = {term.sql for term in shared}
        terms = [t for t in (*left.terms, *right.terms) if _bare(t).sql not in hidden]
        size = max(left.size * right.size // 3, left.size, right.size)
        items = [*shared, *self.some(terms, 0, 3)]
        return self.select(items, sql, size, self.where([*shared, *terms], 0.15))

    def outer_join(self, depth: int, kind: str) -> Relation:
        left = self.source(depth - 1)
        joined = self.joined(left, kind, self.partner(left, depth - 1))
        if self.chance(0.3):
            more = self.dice.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN"))
            joined = self.joined(joined, more, self.partner(joined, 0))
        return self.select(
            self.outputs(joined.terms, 2), joined.sql, joined.size, self.where(joined.terms, 0.15)
        )

    def half_join(self, depth: int, kind: str) -> Relation:
        left = self.source(depth - 1)
        right = self.partner(left, depth - 1)
        sql = f"{left.sql} {kind} {right.sql} ON {self.on(left, right)}"
        return self.select(self.outputs(left.terms), sql, left.size, self.where(left.terms, 0.15))

    # --- subqueries

    def exists_sql(self, outer: Sequence[Term], depth: int) -> str:
        inner = self.source(depth)
        conditions = []
        if self.chance(0.92):
            conditions.append(self.equality(inner.terms, outer))
        pairs = [(i, o) for i in inner.terms for o in outer if _comparable(i, o)]
        pairs = [(i, o) for i, o in pairs if f"{i.sql} = {o.sql}" not in conditions]
        if pairs and conditions and self.chance(0.3):
            one, other = self.dice.choice(pairs)
            conditions.append(f"{one.sql} {self.dice.choice(('<>', '<>', '<', '>='))} {other.sql}")
        if not conditions or self.chance(0.2):
            conditions.append(self.condition(inner.terms))
        what = self.dice.choice(("1", "*", inner.terms[0].sql))
        return f"EXISTS (SELECT {what} FROM {inner.sql} WHERE {' AND '.join(conditions)})"

    def in_sql(self, outer: Sequence[Term], depth: int, word: str = "IN") -> str:
        inner = self.source_with(depth, lambda term: term.is_key)
        pairs = [(o.sql, i) for o in outer for i in inner.terms if _comparable(o, i)]
        keys = [term for term in inner.terms if term.is_key]
        needle, found = self.dice.choice(pairs or [(self.value(term.type), term) for term in keys])
        if self.chance(0.15):
            function, by = self.dice.choice(("min", "max")), self.dice.choice(keys).sql
            return (
                f"{needle} {word} (SELECT {function}({found.sql}) FROM {inner.sql} GROUP BY {by})"
            )
        conditions = []
        others = [term for term in inner.terms if term != found]
        if others and self.chance(0.35):
            conditions.append(self.equality(others, outer))
        if self.chance(0.25):
            conditions.append(self.condition(inner.terms))
        if self.chance(0.6 if word == "NOT IN" else 0.1):
            conditions.append(f"{found.sql} IS NOT NULL")
        rest = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"{needle} {word} (SELECT {found.sql} FROM {inner.sql}{rest})"

    def subquery(self, depth: int, write: Callable[[Sequence[Term], int], str]) -> Relation:
        origin = self.origin(depth - 1)
        condition = write(origin.terms, depth - 1)
        if self.chance(0.25):
            condition += f" AND {self.condition(origin.terms)}"
        return self.select(
            self.outputs(origin.terms), origin.sql, origin.size, f" WHERE {condition}"
        )

    def exists(self, depth: int) -> Relation:
        return self.subquery(depth, self.exists_sql)

    def not_exists(self, depth: int) -> Relation:
        return self.subquery(depth, lambda outer, deep: f"NOT {self.exists_sql(outer, deep)}")

    def in_subquery(self, depth: int) -> Relation:
        return self.subquery(depth, self.in_sql)

    def not_in_subquery(self, depth: int) -> Relation:
        return self.subquery(depth, partial(self.in_sql, word="NOT IN"))

    def subquery_under_or(self, depth: int) -> Relation:
        def write(outer: Sequence[Term], deep: int) -> str:
            one = self.dice.choice((self.exists_sql, self.in_sql))(outer, deep)
            other = self.condition(outer, simple=True)
            if self.chance(0.4):
                other = self.dice.choice((self.exists_sql, self.in_sql))(outer, 0)
            if self.chance(0.2):
                other = self.in_sql(outer, 0, "NOT IN")
            return f"{'NOT ' if self.chance(0.2) else ''}({one} OR {other})"

        return self.subquery(depth, write)

    def scalar(self, outer: Sequence[Term], depth: int, correlated: bool) -> Term:
        inner = self.source(depth)
        conditions = []
        if correlated:
            keys = [(i, o) for i in inner.terms for o in outer if _comparable(i, o)]
            if not keys:
                inner = self.named(self.dice.choice(self.tables))
                keys = [(i, o) for i in inner.terms for o in outer if _comparable(i, o)]
            one, other = self.pair(keys)
            conditions.append(f"{one.sql} = {other.sql}")
        if self.chance(0.3):
            conditions.append(self.condition(inner.terms))
        made = self.aggregate(inner.terms, exact=True, plain=True)
        # Over no rows, a count alone is not NULL.
        made = self.counted(inner.terms) if correlated and self.chance(0.3) else made
        rest = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return replace(made, sql=f"(SELECT {made.sql} FROM {inner.sql}{rest})")

    def scalar_subquery(self, depth: int, correlated: bool = False) -> Relation:
        origin = self.source_with(depth - 1, lambda term: term.type == "int" and term.exact)
        scalar = self.scalar(origin.terms, depth - 1, correlated)
        if self.chance(0.5):
            items = self.outputs(origin.terms, 1, 3)
            if self.chance(0.3) and scalar.type == "bigint":
                scalar = replace(scalar, sql=f"(coalesce({scalar.sql}, 0) + 1)")
            rest = self.where(origin.terms, 0.15)
            return self.select([*items, scalar], origin.sql, origin.size, rest)
        peers = [term for term in origin.terms if _comparable(term, scalar)]
        if peers and self.chance(0.7):
            sign = self.dice.choice(("=", "<", ">", "<>", ">="))
            condition = f"{self.dice.choice(peers).sql} {sign} {scalar.sql}"
        else:
            condition = self.condition([scalar], simple=True)
        rest = f" WHERE {condition}"
        return self.select(self.outputs(origin.terms), origin.sql, origin.size, rest)

    # --- groups

    def group_by(
        self,
        depth: int,
        expressions: bool = False,
        having: bool = False,
        special: str = "",
    ) -> Relation:
        origin = self.origin(depth - 1)
        if not any(term.is_key for term in origin.terms):
            origin = self.named(self.dice.choice(self.tables))
        keys = self.some([term for term in origin.terms if term.is_key], 1, 2)
        if expressions:
            made = [self.expression([key, *origin.terms]) for key in keys]
            keys = [key for key in made if key.is_key] or [
                Term(f"{keys[0].sql} IS NULL", "boolean")
            ]
        keys = list({key.sql: key for key in keys}.values())
        made = self.measures(origin.terms, special, grouped=True)
        rest = self.where(origin.terms, 0.15) + f" GROUP BY {', '.join(key.sql for key in keys)}"
        if having or self.chance(0.1):
            rest += f" HAVING {self.having_sql(origin.terms)}"
        shown = keys if self.chance(0.85) else keys[1:]
        size = min(origin.size, 8 ** len(keys))
        return self.select([*shown, *made], origin.sql, size, rest)

    def having_sql(self, terms: Sequence[Term]) -> str:
        if self.chance(0.4):
            return f"count(*) {self.dice.choice(('> 1', '>= 2', '<= 3', '<> 2', '= 1'))}"
        made = self.aggregate(terms, exact=True, plain=True)
        return self.condition([made, replace(made, sql="count(*)", type="bigint")])

    def measures(self, terms: Sequence[Term], special: str, grouped: bool) -> list[Term]:
        """One to four aggregates, one of them special."""
        made = [self.aggregate(terms) for _ in range(self.dice.choice((0, 1, 1, 2, 3)))]
        if special == "distinct":
            made.append(self.of_distinct(terms))
        elif special == "filter":
            made.append(self.filtered(self.aggregate(terms, plain=True), terms))
        elif special == "recompute":
            made.append(self.recompute(terms, grouped))
        else:
            made.append(self.aggregate(terms))
        return [self.after(term, made) if self.chance(0.12) else term for term in made]

    def after(self, term: Term, made: Sequence[Term]) -> Term:
        """Something computed from finished aggregates."""
        if term.type != "bigint":
            return Term(f"CASE WHEN count(*) > 1 THEN {term.sql} END", *_traits(term))
        whole = [each.sql for each in made if each.type == "bigint"]
        sql = f"(coalesce({term.sql}, 0) + coalesce({self.dice.choice(whole)}, 1))"
        return replace(term, sql=sql)

    def global_aggregate(self, depth: int) -> Relation:
        origin = self.origin(depth - 1)
        special = self.dice.choice(("", "", "distinct", "filter", "recompute"))
        made = self.measures(origin.terms, special, grouped=False)
        rest = self.where(origin.terms, 0.15)
        if self.chance(0.12):
            rest += f" HAVING {self.having_sql(origin.terms)}"
        return self.select(made, origin.sql, 1, rest)

    def distinct(self, depth: int) -> Relation:
        origin = self.origin(depth - 1)
        items = [term for term in self.outputs(origin.terms, 1, 3) if term.is_key]
        items = items or [Term(self.condition(origin.terms), "boolean")]
        rest = self.where(origin.terms)
        return self.select(items, origin.sql, origin.size, rest, how="DISTINCT ")

    def grouping(self, depth: int, word: str) -> Relation:
        below = self.source_with(depth - 1, lambda term: term.is_key, least=2)
        keys = self.some(
            [term for term in below.terms if term.is_key], 2, 3 if word != "CUBE" else 2
        )
        others = [term for term in below.terms if term not in keys and term.type in _VALUES]
        inner = self.select(
            [*keys, *others[:2]], below.sql, below.size + 1, self.where(below.terms)
        )
        # Without a row that is always there, the grand total of no rows is a row in DuckDB alone.
        row = ", ".join(
            literal(_value(self.dice, t.type), _FULL_TYPES[t.type]) for t in inner.terms
        )
        origin = self.named(replace(inner, sql=f"({inner.sql} UNION ALL SELECT {row})"))
        names = [term.sql for term in origin.terms[: len(keys)]]
        listed = ", ".join(names)
        if word == "GROUPING SETS":
            sets = list(dict.fromkeys(map(tuple, (names, names[:1], names[-1:], names[:2], ()))))
            chosen = self.dice.sample(sets, self.dice.randint(2, len(sets)))
            listed = ", ".join(f"({', '.join(each)})" for each in chosen)
            # Spark wants the arguments of grouping_id in the order in which it first meets them.
            names = list(dict.fromkeys(name for each in chosen for name in each))
        level = f"grouping_id({', '.join(names)})"
        if self.chance(0.5):
            level = f"grouping({self.dice.choice(names)})"
        made = [self.aggregate(origin.terms) for _ in range(self.dice.randint(1, 2))]
        shown = [term for term in origin.terms[: len(keys)] if term.sql in names]
        items = [*shown, *([Term(level, "int", small=False)] if self.chance(0.8) else []), *made]
        return self.select(items, origin.sql, origin.size * 3, f" GROUP BY {word} ({listed})")

    # --- set operations

    def set_operation(self, depth: int, word: str) -> Relation:
        below = self.below(depth - 1)
        first = self.named(below)
        # Strangers seldom have rows in common: often the same rows again, and some of them.
        again = len(below.sql) < 300 and self.chance(0.4) and not self.wanted
        second = self.named(below) if again else self.source(depth - 1)
        every = word == "UNION ALL"
        usable = [term for term in first.terms if term.is_key or (every and term.type != "array")]
        types = {term.type for term in second.terms}
        # Of the few values of one column, often all are excepted.
        least = 2 if "EXCEPT" in word else 1
        items = self.some([term for term in usable if term.type in types] or usable, least, 3)
        items = items or [Term("1", "int")]
        query = self.select(items, first.sql, first.size, self.where(first.terms, 0.15))
        others = [second] if self.chance(0.75) else [second, self.source(0)]
        for other in others:
            picked = [self.like(term, other.terms, every) for term in items]
            share = 1.0 if again and "EXCEPT" in word else 0.3
            query = self.added(query, word, picked, other, self.where(other.terms, share))
        return query

    def added(
        self, query: Relation, word: str, items: Sequence[Term], origin: Relation, rest: str
    ) -> Relation:
        """One more branch of a set operation."""
        both = list(zip(query.terms, items, strict=True))
        columns = ", ".join(f"{item.sql} AS {term.sql}" for term, item in both)
        terms = tuple(
            Term(
                term.sql,
                "bigint" if {term.type, item.type} == {"int", "bigint"} else term.type,
                term.exact and item.exact,
                term.small and item.small,
            )
            for term, item in both
        )
        sql = f"{query.sql} {word} SELECT {columns} FROM {origin.sql}{rest}"
        return Relation(sql, terms, query.size + origin.size)

    def like(self, wanted: Term, terms: Sequence[Term], inexact: bool) -> Term:
        """Something of those terms that can stand under that column."""
        same = [t for t in terms if t.type == wanted.type and (inexact or t.exact)]
        near = [
            t for t in terms if _comparable(t, wanted) and "decimal" not in (t.type, wanted.type)
        ]
        namesakes = [t for t in same if _bare(t).sql == _bare(wanted).sql]
        if namesakes and self.chance(0.7):
            return namesakes[0]
        if same or near:
            return self.dice.choice(same or near)
        return Term(literal(_value(self.dice, wanted.type), _FULL_TYPES[wanted.type]), wanted.type)

    # --- order

    def sort_key(self, sql: str) -> str:
        # What Spark does by itself is NULLS FIRST for ASC, and NULLS LAST for DESC.
        how = (
            "",
            "",
            " ASC",
            " DESC",
            " DESC",
            " NULLS LAST",
            " DESC NULLS FIRST",
            " ASC NULLS FIRST",
        )
        return sql + self.dice.choice(how)

    def order(self, terms: Sequence[Term]) -> str:
        return f"ORDER BY {', '.join(self.sort_key(term.sql) for term in terms)}"

    def over(self, terms: Sequence[Term], order: Sequence[Term], frame: str = "") -> str:
        keys = [term for term in terms if term.is_key]
        partition = [term.sql for term in self.some(keys, 1, 2)] if self.chance(0.75) else []
        parts = [f"PARTITION BY {', '.join(partition)}"] if partition else []
        parts += [self.order(order)] if order else []
        return f"OVER ({' '.join([*parts, frame] if frame else parts)})"

    def rank_term(self, terms: Sequence[Term]) -> Term:
        function = self.dice.choice(_RANK_FUNCTIONS)
        # Rows that tie have the same rank; only row_number needs an order that leaves no ties.
        total = function == "row_number" or self.chance(0.3)
        order = self.shuffled(terms) if total else self.some(terms, 1, 2)
        return Term(f"{function}() {self.over(terms, order)}", "int", small=False)

    def shuffled(self, terms: Sequence[Term]) -> list[Term]:
        return self.dice.sample(list(terms), len(terms))

    def window_term(self, terms: Sequence[Term], kind: str) -> Term:
        if kind == "rank":
            return self.rank_term(terms)
        if kind == "lag":
            term = self.dice.choice(terms)
            sql = (
                f"{self.dice.choice(('lag', 'lag', 'lead'))}({term.sql}, {self.dice.choice('112')})"
            )
            return replace(term, sql=f"{sql} {self.over(terms, self.shuffled(terms))}")
        made = self.aggregate(terms, exact=self.chance(0.7), plain=True)
        if kind == "rows":
            over = self.over(terms, self.shuffled(terms), self.dice.choice(_FRAMES))
        else:
            over = self.over(terms, self.some(terms, 0, 2))
        return replace(made, sql=f"{made.sql} {over}")

    def window(self, depth: int, kind: str) -> Relation:
        origin = self.source_with(depth - 1, lambda term: term.is_sortable)
        # Rows that agree on all of these are the same row for this block.
        terms = [term for term in origin.terms if term.is_sortable]
        kinds = [
            kind,
            *self.dice.choices(("rank", "lag", "rows", "whole"), k=self.dice.choice((0, 0, 1))),
        ]
        made = [self.window_term(terms, each) for each in kinds]
        rest = self.where(origin.terms, 0.15)
        return self.select([*self.some(terms, 1, 3), *made], origin.sql, origin.size, rest)

    def top_k(self, depth: int) -> Relation:
        below = self.source_with(depth - 1, lambda term: term.is_sortable)
        terms = [term for term in below.terms if term.is_sortable]
        rank = self.rank_term(terms)
        inner = self.select([*terms, rank], below.sql, below.size, self.where(below.terms, 0.15))
        origin = self.named(replace(inner, sql=f"({inner.sql})"))
        *columns, position = origin.terms
        items = self.outputs(columns, 1, 4) + ([position] if self.chance(0.4) else [])
        most = self.dice.randint(1, 3)
        condition = self.dice.choice((f"<= {most}", f"<= {most}", "= 1", f"< {most + 1}"))
        rest = f" WHERE {position.sql} {condition}"
        return self.select(items, origin.sql, min(below.size, 30), rest)

    def limit(self, depth: int) -> Relation:
        origin = self.origin(depth - 1)
        items = [term for term in self.outputs(origin.terms, 1, 4) if term.is_sortable]
        items = items or [Term(self.condition(origin.terms), "boolean")]
        query = self.select(items, origin.sql, 6, self.where(origin.terms, 0.15))
        rest = f" {self.order(self.shuffled(query.terms))} LIMIT {self.dice.randint(1, 6)}"
        if self.chance(0.5):
            rest += f" OFFSET {self.dice.randint(1, 3)}"
        return replace(query, sql=query.sql + rest)

    # --- arrays

    def explode(self, depth: int, column: bool) -> Relation:
        if column:
            below = self.source(depth - 1)
            arrays = [term for term in below.terms if term.type == "array"]
            if not arrays:
                tables = [t for t in self.tables if any(term.type == "array" for term in t.terms)]
                below = self.named(self.dice.choice(tables))
                arrays = [term for term in below.terms if term.type == "array"]
            array = self.dice.choice(arrays).sql
        else:
            below = self.source(depth - 1)
            whole = [term.sql for term in below.terms if term.type == "int" and term.exact]
            listed = [*self.dice.sample(whole, min(len(whole), 2)), self.value("int")]
            array = f"array({', '.join(listed)})"
        view, name = self.name("l"), self.name("v")
        element = Term(f"{view}.{name}", "int", small=False)
        sql = f"{below.sql} LATERAL VIEW explode({array}) {view} AS {name}"
        terms = [*below.terms, element]
        size, rest = below.size * 3, self.where([*below.terms, element], 0.4)
        if self.chance(0.4):
            made = self.measures(terms, "", grouped=True)
            rest += f" GROUP BY {element.sql}"
            return self.select([element, *made], sql, 8, rest)
        return self.select([*self.outputs(below.terms, 1, 3), element], sql, size, rest)


def _traits(term: Term) -> tuple[str, bool, bool]:
    return term.type, term.exact, term.small


_OPERATORS: Mapping[str, Callable[[_Writer, int], Relation]] = {
    "filter": _Writer.filter,
    "project": _Writer.project,
    "derived_table": _Writer.derived_table,
    "cte": _Writer.cte,
    "values": _Writer.values,
    "inner_join": _Writer.inner_join,
    "self_join": _Writer.self_join,
    "comma_join": _Writer.comma_join,
    "using_join": _Writer.using_join,
    "left_join": partial(_Writer.outer_join, kind="LEFT JOIN"),
    "right_join": partial(_Writer.outer_join, kind="RIGHT JOIN"),
    "full_join": partial(_Writer.outer_join, kind="FULL OUTER JOIN"),
    "semi_join": partial(_Writer.half_join, kind="LEFT SEMI JOIN"),
    "anti_join": partial(_Writer.half_join, kind="LEFT ANTI JOIN"),
    "exists": _Writer.exists,
    "not_exists": _Writer.not_exists,
    "in_subquery": _Writer.in_subquery,
    "not_in_subquery": _Writer.not_in_subquery,
    "subquery_under_or": _Writer.subquery_under_or,
    "scalar_subquery": _Writer.scalar_subquery,
    "correlated_scalar_subquery": partial(_Writer.scalar_subquery, correlated=True),
    "group_by": _Writer.group_by,
    "group_by_expression": partial(_Writer.group_by, expressions=True),
    "having": partial(_Writer.group_by, having=True),
    "distinct_aggregate": partial(_Writer.group_by, special="distinct"),
    "filtered_aggregate": partial(_Writer.group_by, special="filter"),
    "recomputed_aggregate": partial(_Writer.group_by, special="recompute"),
    "global_aggregate": _Writer.global_aggregate,
    "distinct": _Writer.distinct,
    "grouping_sets": partial(_Writer.grouping, word="GROUPING SETS"),
    "rollup": partial(_Writer.grouping, word="ROLLUP"),
    "cube": partial(_Writer.grouping, word="CUBE"),
    "union_all": partial(_Writer.set_operation, word="UNION ALL"),
    "union": partial(_Writer.set_operation, word="UNION"),
    "intersect": partial(_Writer.set_operation, word="INTERSECT"),
    "intersect_all": partial(_Writer.set_operation, word="INTERSECT ALL"),
    "except": partial(_Writer.set_operation, word="EXCEPT"),
    "except_all": partial(_Writer.set_operation, word="EXCEPT ALL"),
    "window_rank": partial(_Writer.window, kind="rank"),
    "window_lag": partial(_Writer.window, kind="lag"),
    "window_rows": partial(_Writer.window, kind="rows"),
    "window_aggregate": partial(_Writer.window, kind="whole"),
    "top_k": _Writer.top_k,
    "limit": _Writer.limit,
    "explode_array": partial(_Writer.explode, column=False),
    "explode_column": partial(_Writer.explode, column=True),
}
OPERATORS: tuple[str, ...] = tuple(_OPERATORS)
"""The names that `case(seed, only=…)` takes."""


if __name__ == "__main__":
    sys.stdout.write(describe(case(int(sys.argv[1]), *sys.argv[2:3])))
