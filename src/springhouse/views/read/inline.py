"""What does a view read, when its query contains the text of its temporary views?

The compiler needs one text over plain names. An input is named after its table; an external Delta
table is named after the last part of its path.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from springhouse.project.declarations.declaration import (
    Project,
    PythonQuery,
    Query,
    ReadMode,
    Reference,
    View,
)
from springhouse.project.declarations.names import Names
from springhouse.views.read.not_compilable import NotCompilable


@dataclass(frozen=True)
class Inlined:
    """A query over plain names; `inputs` maps the names to their tables."""

    text: str
    inputs: Mapping[str, tuple[ReadMode, str]]


def inlined(project: Project, view: View) -> Inlined:
    """The query of a view as one text, with its temporary views included."""
    names = Names(project.catalog or Names.catalog, project.database or Names.database)
    inputs: dict[str, tuple[ReadMode, str]] = {}
    queries = [view.query, *(each.query for each in project.temporary_views.values())]
    ctes = frozenset(name for query in queries for name in _ctes(query))
    return Inlined(_text(project, view.query, names, inputs, ctes), inputs)


def _ctes(query: Query) -> list[str]:
    """The names of a query's own CTEs: a table of that name needs another name."""
    if isinstance(query, PythonQuery):
        return []
    try:
        tree = sqlglot.parse_one(query.text, read="spark")
    except SqlglotError:
        return []
    return [each.alias.lower() for each in tree.find_all(exp.CTE)]


def _text(
    project: Project,
    query: Query,
    names: Names,
    inputs: dict[str, tuple[ReadMode, str]],
    ctes: frozenset[str],
) -> str:
    if isinstance(query, PythonQuery):
        name = getattr(query.function, "__name__", type(query.function).__name__)
        raise NotCompilable(f'the Python function "{name}" does more than call spark.sql')

    def replacement(reference: Reference) -> str:
        name = names.parse(reference.name)
        alias = f" AS `{reference.name.rpartition('.')[2]}`" if reference.alias_needed else ""
        if reference.reading is ReadMode.TABLE and name in project.temporary_views:
            inner = _text(project, project.temporary_views[name].query, names, inputs, ctes)
            return f"({inner}){alias or ' AS `' + name + '`' if reference.alias_needed else ''}"
        if reference.reading not in (ReadMode.TABLE, ReadMode.DELTA):
            raise NotCompilable(
                f"`{reference.name}` is read by Spark, and nobody tracks its changes"
            )
        key = (reference.reading, name if reference.reading is ReadMode.TABLE else reference.name)
        return f"`{_name_of(key, inputs, ctes)}`{alias}"

    return query.spliced(replacement)


def _name_of(
    key: tuple[ReadMode, str], inputs: dict[str, tuple[ReadMode, str]], ctes: frozenset[str]
) -> str:
    for name, known in inputs.items():
        if known == key:
            return name
    word = key[1].rstrip("/").rpartition("/")[2] or "input"
    plain = "".join(c if c.isalnum() or c == "_" else "_" for c in word)
    name, number = plain, 2
    while name.lower() in {*ctes, *(each.lower() for each in inputs)}:
        name, number = f"{plain}_{number}", number + 1
    inputs[name] = key
    return name
