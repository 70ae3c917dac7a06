"""Which tables are input channels, and which streams flow into a table?

An input channel is a base table that gets data from outside the warehouse (004 section 2.1). A
table that gets its data only from other tables is derived from them, and reflects their versions.
"""

from collections.abc import Iterator

from springhouse.project.declarations.declaration import (
    CdcFlow,
    Flow,
    Project,
    Query,
    ReadMode,
    Reference,
)

_STREAMS = (ReadMode.STREAM, ReadMode.SOURCE, ReadMode.DELTA_STREAM, ReadMode.OTHER)
_INSIDE = frozenset({ReadMode.STREAM, ReadMode.DELTA_STREAM})


def stream_references(project: Project, flow: Flow) -> list[Reference]:
    """The streams that a flow reads, directly or through temporary views."""
    if isinstance(flow, CdcFlow):
        temporary = project.temporary_views.get(flow.source.name)
        return list(_streams_in(project, temporary.query)) if temporary else [flow.source]
    return list(_streams_in(project, flow.query))


def is_channel(project: Project, table: str) -> bool:
    """Whether a table gets data from outside the warehouse."""
    for flow in project.flows_into(table):
        references = stream_references(project, flow)
        # A flow without streams runs once, over data whose changes are unknown.
        if not references or not {reference.reading for reference in references} <= _INSIDE:
            return True
    return False


def _streams_in(project: Project, query: Query) -> Iterator[Reference]:
    for reference in query.references:
        temporary = project.temporary_views.get(reference.name)
        if temporary is not None and reference.reading is not ReadMode.SOURCE:
            yield from _streams_in(project, temporary.query)
        elif reference.reading in _STREAMS:
            yield reference
