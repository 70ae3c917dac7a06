"""Which tables can be given their rows in one pass over their source?

Two questions. The first is answered by what was declared: tables share a source if each has one
flow, that reads it row by row (`flows.one_pass`), perhaps through temporary views, and nothing else
beside it. The second is answered anew whenever something arrives: where do they stand?

    they share a pass   if the records that wait for one of them, or the first of these,
                        are the very records that wait for the other

A table that is behind the others, or ahead, is refreshed by itself, until they meet.
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
"""What is read: a source with its arguments, or a table. Equal if it is the same."""


@dataclass(frozen=True)
class RowPipeline:
    """What becomes of the rows of a source until they are a table's.

    `steps` are the temporary views on the way by name, and last the flow itself.
    """

    source: SourceKey
    reference: Reference
    steps: tuple[tuple[str, Selection], ...]


@dataclass(frozen=True)
class Sharing:
    """With which other tables a table can share a pass, or why it can't with any."""

    source: str
    tables: tuple[str, ...] = ()
    why_not: str = ""


def sharing(project: Project) -> Mapping[str, Sharing]:
    """For each table, with whom it can share a pass."""
    chains: dict[str, RowPipeline] = {}
    refused: dict[str, str] = {}
    for name, table in project.tables.items():
        try:
            chains[name] = chain(project, table)
        except NeedsOwnPass as reason:
            refused[name] = str(reason)
    found: dict[str, Sharing] = {}
    for name in project.tables:
        own = chains.get(name)
        if own is None:
            found[name] = Sharing("", why_not=refused[name])
            continue
        others = tuple(n for n, c in chains.items() if n != name and c.source == own.source)
        alone = "" if others else "no other table reads its source row by row"
        found[name] = Sharing(_source_text(own.reference), others, alone)
    return found


def chain(project: Project, table: Table) -> RowPipeline:
    """What becomes of the rows of a table's source; `NeedsOwnPass` if more than one pass can do."""
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
    lead: Feed, given: Mapping[str, Range], other: Feed, waiting: Mapping[str, Range]
) -> dict[str, Range] | None:
    """The ranges of `other` that hold the very records of those given; None if none do.

    Of what waits for it only the beginning may be wanted, and then the rest waits on.
    """
    ranges: dict[str, Range] = {}
    for transaction, wanted in given.items():
        own = other.transaction_of(lead.partition_of(transaction))
        have = waiting.get(own)
        length = wanted.end - wanted.start
        if have is None or have.end - have.start < length:
            return None
        ranges[own] = Range(have.start, have.start + length)
    identity = lead.identity(given)
    if not ranges or identity is None or identity != other.identity(ranges):
        return None
    return ranges
