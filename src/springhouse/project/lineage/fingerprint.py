"""Did the definition of a view change?

The fingerprint of a view covers everything that decides its rows: its query, the temporary views
that the query reads, its columns, its expectations, and the settings of Spark that change the
meaning of a query (the time zone, ANSI mode and others). It does not cover promises, comments and
places. A view is rebuilt if its fingerprint differs from the stored one.
"""

import hashlib
from collections.abc import Iterator

from springhouse.project.declarations.declaration import Project, Query, SqlQuery, View

_DECIDING = (
    "spark.sql.session.",
    "spark.sql.ansi.",
    "spark.sql.legacy.",
    "spark.sql.decimalOperations.",
    "spark.sql.caseSensitive",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.timestampType",
)
"""Prefixes of the settings that change the result of a query."""


def fingerprint(project: Project, view: View) -> str:
    """A short hash that two definitions share only if they give the same rows."""
    parts = [
        view.schema or "",
        *(f"{e.name}\0{e.condition}\0{e.on_violation.value}" for e in view.expectations),
        *_queries(project, view.query, seen=set()),
        *_settings(project),
    ]
    return hashlib.sha256("\1".join(parts).encode()).hexdigest()[:16]


def _settings(project: Project) -> Iterator[str]:
    for key, value in sorted(project.configuration.items()):
        if key.startswith(_DECIDING):
            yield f"{key}={value}"


def _queries(project: Project, query: Query, seen: set[str]) -> Iterator[str]:
    if isinstance(query, SqlQuery):
        # White space has no meaning: `SELECT  1` and `SELECT 1` are one definition.
        yield " ".join(query.text.split())
    if query.fingerprint:
        yield query.fingerprint
    for reference in query.references:
        temporary = project.temporary_views.get(reference.name)
        if temporary is not None and temporary.name not in seen:
            seen.add(temporary.name)
            yield from _queries(project, temporary.query, seen)
