"""Which rows do the tables of a case hold, and how do they change?

Tables have tiny domains, so that rows match: many NULLs, many duplicates, sometimes no rows at all.
Each change depends on the current rows: it deletes some of them, and inserts new rows, old rows, or
rows that are nearly the same. Tables are emptied and filled again.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

Row = tuple[Any, ...]


def kind_of(type_: str) -> str:
    """A type without its parameters: `decimal(12,2)` is a decimal."""
    return re.split(r"[(<]", type_)[0]


VALUES: Mapping[str, tuple[Any, ...]] = {
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
    # The same names in all tables, so that a compiler error in qualifying a name shows.
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
FULL_TYPES = {kind_of(type_): type_ for type_ in _COLUMNS.values()}
"""The parameters again: a decimal is a `decimal(12,2)`."""
_MOST_ROWS = 30
_CHANGES = (2, 2, 2, 3, 3)


def make_tables(dice: Random, with_array: bool) -> dict[str, dict[str, str]]:
    tables: dict[str, dict[str, str]] = {}
    for table in ("r", "t", "u")[: dice.choice((2, 3))]:
        # At least two columns can be grouped by, and all tables have the first.
        names = ["k", *dice.sample("abdswefx", dice.choice((1, 1, 2, 2, 3, 4)))]
        if names[1:] == ["x"]:
            names[1] = "a"
        if (with_array and not tables) or dice.random() < 0.25:
            names = [*names[:4], "xs"]
        tables[table] = {name: type_ for name, type_ in _COLUMNS.items() if name in names}
    return tables


def make_value(dice: Random, type_: str, null_share: float = 0.2) -> Any:
    return None if dice.random() < null_share else dice.choice(VALUES[kind_of(type_)])


def _row(dice: Random, types: Sequence[str], like: Sequence[Row] = ()) -> Row:
    """A new row, a copy of one of `like`, or nearly a copy."""
    luck = dice.random()
    if like and luck < 0.2:
        return dice.choice(like)
    if like and luck < 0.4:
        return _updated(dice, types, dice.choice(like))
    return tuple(make_value(dice, type_) for type_ in types)


def _updated(dice: Random, types: Sequence[str], row: Row) -> Row:
    column = dice.randrange(len(row))
    return (*row[:column], make_value(dice, types[column], null_share=0.3), *row[column + 1 :])


def make_rows(dice: Random, types: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    for _ in range(dice.choice((0, 4, 8, 10, 12, 14, 16, 18, 22, _MOST_ROWS))):
        rows.append(_row(dice, types, like=rows))
    return rows


def literal(value: Any, type_: str) -> str:
    """A value as Spark SQL.

    >>> literal(-2, "bigint"), literal(date(2024, 1, 5), "date"), literal(None, "int")
    ('-2L', "DATE '2024-01-05'", 'CAST(NULL AS INT)')
    """
    if value is None:
        return f"CAST(NULL AS {type_.upper()})"
    kind = kind_of(type_)
    if kind == "array":
        return f"array({', '.join(literal(each, 'int') for each in value)})"
    if kind in ("string", "date"):
        return ("DATE " if kind == "date" else "") + f"'{value}'"
    return str(value).lower() + {"bigint": "L", "double": "D"}.get(kind, "")


# --- changes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Delta:
    """The change of one table: first one copy of each `deleted` row goes, then others come."""

    deleted: list[Row]
    inserted: list[Row]

    def apply_to(self, rows: list[Row]) -> None:
        for row in self.deleted:
            rows.remove(row)
        rows += self.inserted


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
    # Sometimes an update changes nothing.
    inserted = [row if dice.random() < 0.1 else _updated(dice, types, row) for row in deleted]
    return Delta(deleted, inserted)


_KINDS = (*[_mix] * 4, *[_update] * 4, *[_insert] * 2, *[_delete] * 2, *[_clear_group] * 3, _copy)


def _touched(dice: Random, tables: Sequence[str], read: Sequence[str]) -> list[str]:
    """The tables of a change: usually the query reads at least one of them."""
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
    """Give empty tables rows again: some old rows, some new ones."""
    made = {}
    for table in (table for table in tables if not state[table]):
        old = dice.sample(before[table], dice.randint(0, len(before[table])))
        new = [_row(dice, tables[table]) for _ in range(dice.randint(1, 4))]
        made[table] = Delta([], old + new)
    return made


def make_changes(
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
            delta.apply_to(state[table])
        yield change
