"""Which tables are input channels, and which streams flow into a table?

An input channel is a base table into which something flows from outside the warehouse (004 section
2.1). A table that is fed by other tables alone is derived from them, and reflects their versions.
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
    """The streams that a flow reads, also through temporary views."""
    if isinstance(flow, CdcFlow):
        temporary = project.temporary_views.get(flow.source.name)
        return list(_streams_in(project, temporary.query)) if temporary else [flow.source]
    return list(_streams_in(project, flow.query))


def is_channel(project: Project, table: str) -> bool:
    """Whether something outside the warehouse flows into a table."""
    for flow in project.flows_into(table):
        references = stream_references(project, flow)
        # A flow without streams runs once, over something that nobody watches.
        if not references or not {each.reading for each in references} <= _INSIDE:
            return True
    return False


def _streams_in(project: Project, query: Query) -> Iterator[Reference]:
    for reference in query.references:
        temporary = project.temporary_views.get(reference.name)
        if temporary is not None and reference.reading is not ReadMode.SOURCE:
            yield from _streams_in(project, temporary.query)
        elif reference.reading in _STREAMS:
            yield reference
