"""Which queries, over which data and through which changes, should a view survive?

A seed makes a case: tables of tiny domains with many NULLs and duplicates, a query in Spark SQL
(most are flat, some are nested four levels deep), and a few changes of the tables. A case has no
expected rows: the oracle is the query itself, run again after each change. The only condition is
that

    the rows of a query, as a bag, are a function of its tables, the same one in Spark and DuckDB

(after sqlglot has translated the query). So the cases leave out some of SQL on purpose. The two
engines or sqlglot's translation disagree on division, casts of decimals to integers or strings,
`percentile`, LATERAL VIEW OUTER, lists of nothing, and grouping sets over no rows. The rows would
depend on luck for ties in ordered functions, and for sums of fractions as keys.

`python tests/views/random_cases.py 17 [top_k]` prints a case.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from random_queries import OPERATORS, make_query
from random_relations import relations_of
from random_tables import Delta, Row, literal, make_changes, make_rows, make_tables

# Many small cases find more errors than a few large ones in the same time. Some cases must be
# large, because rules also go wrong in combination.
_DEPTHS = (*[1] * 11, *[2] * 6, 3, 3, 4, 4)


@dataclass(frozen=True)
class Case:
    """A query, the tables that it reads, and the changes of these tables."""

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
    """The case of that seed; with `only`, this one of `OPERATORS` on top of little else."""
    if only is not None and only not in OPERATORS:
        raise ValueError(f'"{only}" is not an operator; choose one of {", ".join(OPERATORS)}')
    dice = Random(seed)
    tables = make_tables(dice, with_array=only == "explode_column")
    rows = {table: make_rows(dice, list(columns.values())) for table, columns in tables.items()}
    depth = 1 if only else dice.choice(_DEPTHS)
    query = make_query(dice, relations_of(tables, rows), depth, only)
    read = [table for table in tables if re.search(rf"\b{table}\b", query)]
    changes = tuple(make_changes(dice, tables, rows, read))
    recomputed = bool(re.search(r"\b(median|collect_list)\(", query))
    return Case(seed, tables, rows, query, changes, only, recomputed)


def states(case: Case) -> Iterator[dict[str, list[Row]]]:
    """The rows of all tables: at first, and after each change."""
    state = {table: list(rows) for table, rows in case.rows.items()}
    yield {table: list(rows) for table, rows in state.items()}
    for change in case.changes:
        for table, delta in change.items():
            delta.apply_to(state[table])
        yield {table: list(rows) for table, rows in state.items()}


def describe(case: Case) -> str:
    """The whole case as text, with the command that shows it again."""
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
    """The same text with a clause per line, indented by its depth in parentheses."""
    lines, depth = [], 0
    for line in _CLAUSE.sub("\n", query).split("\n"):
        lines.append("  " * depth + line)
        depth += line.count("(") - line.count(")")
    return lines


if __name__ == "__main__":
    sys.stdout.write(describe(case(int(sys.argv[1]), *sys.argv[2:3])))
