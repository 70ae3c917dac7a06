"""What does a commit of a flow contain, and in which order does it become visible?

One commit holds the rows of a range of offsets *and* the ends of the range, as transactions on the
table version that gave the starts. So both are stored or neither is, and a second attempt at the
same range is rejected. The commit also holds the sources that the offsets count, the memory of the
sources, and the versions of other tables that the rows came from.

    1. the records for the quarantine are written to a file that no reader sees yet
    2. the table is created, or its columns grow
    3. the commit: rows, ends of offsets, and the name of the file
    4. the quarantine adds the file
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from springhouse.lake.delta.commits import Change, commit
from springhouse.lake.delta.note import FlowNote, Note
from springhouse.lake.delta.requirements import OffsetsUnread
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.ingest.checkpoints import StreamingFlow
from springhouse.lake.ingest.feeds import Feed
from springhouse.lake.ingest.target_columns import TargetColumns
from springhouse.lake.lake import Lake
from springhouse.lake.landing.landing import Done, Landed
from springhouse.lake.landing.quarantine import (
    QuarantinedRecord,
    settle_quarantine,
    write_quarantine_file,
)
from springhouse.lake.sources.source import Range
from springhouse.planner.delta_logs import provenance_of
from springhouse.planner.provenance import Provenance, join_provenances
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import Flow, Project, Table
from springhouse.project.lineage.channels import is_channel
from springhouse.units import Instant


@dataclass(frozen=True)
class IngestBatch:
    """The content of one commit of a flow.

    `ends` are its transactions. `reflected` are the versions of other tables that the rows came
    from. With `channel`, data from outside the warehouse flows in, so the table is a channel. With
    `partial`, more rows of the same versions follow. `together` are the tables in the same pass.
    """

    ends: Mapping[str, int]
    note: FlowNote
    channel: bool
    reflected: Provenance
    partial: bool = False
    together: tuple[str, ...] = ()


def batch_of_ranges(
    lake: Lake,
    project: Project,
    feed: Feed,
    ranges: Mapping[str, Range],
    rows_in: int,
    quarantined: int,
) -> IngestBatch:
    """The content of a commit of these ranges; an error if a source was replaced meanwhile."""
    offsets = {name: (r.start, r.end) for name, r in ranges.items()}
    note = FlowNote(offsets, feed.memory(), rows_in, quarantined, streams=feed.stream_notes(ranges))
    ends = {name: r.end for name, r in ranges.items()}
    channel = is_channel(project, feed.flow.target)
    return IngestBatch(ends, note, channel, provenance_of(lake, feed.inputs(ranges)))


def batch_of_stream(
    lake: Lake,
    project: Project,
    stream: StreamingFlow,
    number: int,
    landed: Landed,
    reflected: Mapping[str, int] | None,
) -> IngestBatch:
    """The content of the commit of a micro-batch, with its number as the transaction's version.

    `reflected` is None if a later batch has more rows of the same versions.
    """
    flow = stream.flow
    note = FlowNote(
        {stream.transaction: (number, number + 1)},
        rows_in=landed.count,
        quarantined=len(landed.quarantined),
        streams=stream.noted(),
    )
    channel = is_channel(project, flow.target)
    if reflected is None:
        provenance = _reflected_by_flow(lake, flow.target).get(flow.name, Provenance())
    else:
        provenance = provenance_of(lake, reflected)
    partial = reflected is None and not channel
    return IngestBatch({stream.transaction: number + 1}, note, channel, provenance, partial)


def commit_append(
    lake: Lake,
    table: Table,
    flow: Flow,
    columns: TargetColumns,
    landed: Landed,
    quarantined: Sequence[QuarantinedRecord],
    batch: IngestBatch,
    plan: RefreshPlan,
    began: Instant,
) -> Done:
    """Commit rows for a table, in the order that this module describes."""
    batch = with_quarantine_file(lake, table, flow, batch, quarantined)
    ground = columns.ready(lake, table.name)
    note = Note(
        kind="append",
        at=lake.now(),
        variant="append",
        reason=plan.reason,
        since=plan.since,
        rows=ground.rows + landed.count,
        rows_added=landed.count,
        seconds=lake.now() - began,
        changes=None if landed.add else (),
    )
    commit_batch(lake, table, flow, ground, batch, landed, Change(note, landed.add))
    return Done(
        table.name,
        "append",
        note.rows,
        landed.count,
        rows_set_aside=len(quarantined),
        seconds=lake.now() - began,
        reason=plan.reason,
    )


def with_quarantine_file(
    lake: Lake,
    table: Table,
    flow: Flow,
    batch: IngestBatch,
    records: Sequence[QuarantinedRecord],
) -> IngestBatch:
    """The batch with the file of its bad records, which the quarantine adds after the commit."""
    path = write_quarantine_file(lake, table.name, flow.name, records, lake.now())
    return replace(batch, note=replace(batch.note, aside=path))


def commit_batch(
    lake: Lake,
    table: Table,
    flow: Flow,
    ground: TableVersion,
    batch: IngestBatch,
    landed: Landed,
    change: Change,
) -> None:
    """Commit a change with the ends of its offsets, and then add its bad records."""
    note = _flow_note(lake, table, flow, batch, landed, change.note)
    requires = [OffsetsUnread(ground, batch.note.offsets), *lake.required]
    commit(ground, replace(change, note=note, transactions=batch.ends), requires)
    if batch.note.aside:
        settle_quarantine(lake, table.name)


def _flow_note(
    lake: Lake, table: Table, flow: Flow, batch: IngestBatch, landed: Landed, note: Note
) -> Note:
    """The note of a flow's commit: it has the offsets, and the provenance of the rows."""
    newest = lake.log(table.name).newest()
    before = newest.note.after if newest and newest.note else Provenance()
    by_flow = _reflected_by_flow(lake, table.name)
    others = [provenance for name, provenance in by_flow.items() if name != flow.name]
    return replace(
        note,
        channel=batch.channel,
        partial=batch.partial,
        together=batch.together,
        freshness=_freshness(lake, table, landed, note.at),
        before=before,
        after=join_provenances([batch.reflected, *others]),
        flows={flow.name: replace(batch.note, reflects=batch.reflected.as_json())},
        violations=landed.violations,
        activities=landed.activities,
    )


def _reflected_by_flow(lake: Lake, table: str) -> dict[str, Provenance]:
    """The provenance that each flow into the table had at its last commit."""
    last: dict[str, Provenance] = {}
    for entry in reversed(lake.log(table).commits()):
        for name, note in entry.note.flows.items() if entry.note else ():
            last.setdefault(name, Provenance.from_json(note.reflects))
    return last


def _freshness(lake: Lake, table: Table, landed: Landed, at: Instant) -> Instant | None:
    """The safe trailing edge (001 section 2.2): no older record will arrive later."""
    if table.timestamp is None:
        return at
    newest = lake.log(table.name).newest()
    before = newest.note.freshness if newest and newest.note else None
    if landed.newest is None:
        return before
    # A record dated in the future does not prove that no older record will arrive.
    edge = Instant(min(landed.newest - table.lateness_seconds, at))
    return edge if before is None else max(before, edge)
