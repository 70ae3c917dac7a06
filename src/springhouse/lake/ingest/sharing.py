"""Which tables can get their rows in one pass over their source?

The declarations say which tables share a source: each has one flow, which reads the source row by
row (`flows.one_pass`), perhaps through temporary views, and reads nothing else. Whenever records
arrive, the offsets say which of these tables share a pass:

    they share a pass   if the records that wait for one of them, or the first of these records,
                        are exactly the records that wait for the other

A table that is behind the others, or ahead of them, is refreshed alone until they meet.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from springhouse.flows.one_pass import NeedsOwnPass, Selection, condition, row_selection
from springhouse.lake.ingest.feeds import Feed
from springhouse.lake.sources.source import Range
from springhouse.project.declarations.declaration import (
    AppendFlow,
    Project,
    ReadMode,
    Reference,
    Table,
)
from springhouse.project.lineage.channels import stream_references
from springhouse.project.lineage.keys import reference_key

SourceKey = tuple[object, ...]
"""A source with its arguments, or a table; equal keys stand for the same source."""


@dataclass(frozen=True)
class RowPipeline:
    """The path of the rows from a source to a table.

    `steps` are the temporary views on the path, by name; the last step is the flow itself.
    """

    source: SourceKey
    reference: Reference
    steps: tuple[tuple[str, Selection], ...]


@dataclass(frozen=True)
class Sharing:
    """The tables with which a table can share a pass, or the reason why there are none."""

    source: str
    tables: tuple[str, ...] = ()
    why_not: str = ""


def sharing(project: Project) -> Mapping[str, Sharing]:
    """For each table, the tables with which it can share a pass."""
    pipelines: dict[str, RowPipeline] = {}
    reasons: dict[str, str] = {}
    for name, table in project.tables.items():
        try:
            pipelines[name] = row_pipeline(project, table)
        except NeedsOwnPass as reason:
            reasons[name] = str(reason)
    result: dict[str, Sharing] = {}
    for name in project.tables:
        pipeline = pipelines.get(name)
        if pipeline is None:
            result[name] = Sharing("", why_not=reasons[name])
            continue
        others = tuple(
            other
            for other, its in pipelines.items()
            if other != name and its.source == pipeline.source
        )
        why_not = "" if others else "no other table reads its source row by row"
        result[name] = Sharing(_source_text(pipeline.reference), others, why_not)
    return result


def row_pipeline(project: Project, table: Table) -> RowPipeline:
    """The path of the rows to a table; raises `NeedsOwnPass` if one pass can't compute it."""
    flows = project.flows_into(table.name)
    if len(flows) != 1:
        raise NeedsOwnPass(f"it has {len(flows)} flows")
    (flow,) = flows
    if not isinstance(flow, AppendFlow):
        raise NeedsOwnPass("changes are applied to it, by key")
    if flow.once:
        raise NeedsOwnPass("its flow runs once")
    if not flow.by_name:
        raise NeedsOwnPass("its flow names columns by their position")
    for expectation in table.expectations:
        condition(expectation.condition)
    steps = [(f"flow {flow.name}", row_selection(flow.query))]
    reference = steps[0][1].reads
    while reference.reading is not ReadMode.SOURCE and reference.name in project.temporary_views:
        view = project.temporary_views[reference.name]
        steps.insert(0, (view.name, row_selection(view.query)))
        reference = steps[0][1].reads
    if stream_references(project, flow) != [reference] or reference.reading is ReadMode.OTHER:
        raise NeedsOwnPass("it reads no stream that others could read with it")
    return RowPipeline(_source_key(reference), reference, tuple(steps))


def _source_key(reference: Reference) -> SourceKey:
    call = reference.source
    if call is None:
        return (reference_key(reference),)
    options = frozenset((name.lower(), value) for name, value in call.options.items())
    return (call.plugin.lower(), call.arguments, options)


def _source_text(reference: Reference) -> str:
    call = reference.source
    if call is None:
        return reference_key(reference)
    return f"{call.plugin}({', '.join(repr(each) for each in call.arguments[:1])})"


def same_records(
    lead: Feed, wanted: Mapping[str, Range], other: Feed, waiting: Mapping[str, Range]
) -> dict[str, Range] | None:
    """The ranges of `other` with exactly the records of the ranges `wanted` of `lead`, or None.

    They may be only the first part of the ranges that wait for `other`; the rest continues to wait.
    """
    ranges: dict[str, Range] = {}
    for transaction, offsets in wanted.items():
        other_transaction = other.transaction_of(lead.partition_of(transaction))
        available = waiting.get(other_transaction)
        length = offsets.end - offsets.start
        if available is None or available.end - available.start < length:
            return None
        ranges[other_transaction] = Range(available.start, available.start + length)
    identity = lead.identity(wanted)
    if not ranges or identity is None or identity != other.identity(ranges):
        return None
    return ranges
