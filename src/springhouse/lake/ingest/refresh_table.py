"""How do new records get into a base table, each exactly once?

1. `Feed.behind`, `admit`    which offsets wait
2. `IngestRows`              their rows, good and bad rows separately
3. `RefreshInputs.frame`     the flow's query over the good rows
4. `fit_columns`             the columns that the table must have
5. `land`                    files of the rows that meet the expectations
6. `commit_append`           one commit of rows and offsets, and then the quarantine
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from springhouse.errors import SpringhouseError
from springhouse.lake.delta.alignment import same_columns
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.flows.flow_configuration import flow_settings
from springhouse.lake.ingest.checkpoints import StreamingFlow
from springhouse.lake.ingest.feeds import Feed
from springhouse.lake.ingest.flow_commit import batch_of_ranges, batch_of_stream, commit_append
from springhouse.lake.ingest.ingest_rows import IngestRows
from springhouse.lake.ingest.target_columns import TargetColumns, fit_columns
from springhouse.lake.lake import Lake
from springhouse.lake.landing.inputs import RefreshInputs
from springhouse.lake.landing.landing import Done, Landed, land, land_arrow
from springhouse.lake.landing.quarantine import settle_quarantine
from springhouse.lake.sources.source import Range
from springhouse.lake.spark.queries import errors_at
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import AppendFlow, Project, SqlQuery, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def append(
    lake: Lake,
    project: Project,
    table: Table,
    feed: Feed,
    plan: RefreshPlan,
    until: Mapping[str, int] | None = None,
) -> Done | None:
    """Append the rows of all new records in the flow's streams; None if there are none."""
    flow = feed.flow
    assert isinstance(flow, AppendFlow)
    began = lake.now()
    ground = lake.find(table.name)
    # A process that died after its commit may have left records for the quarantine.
    settle_quarantine(lake, table.name)
    ranges = feed.behind(ground, until)
    if not ranges:
        return None if ground else _create_empty(lake, project, table, feed, plan)
    feed.admit(lake.required)
    with errors_at(flow.place), feed.keeping_memory():
        taken = IngestRows(lake, feed, ranges)
        columns, landed = _land(lake, project, table, feed, ground, taken, ranges)
        quarantined = [*taken.bad, *landed.quarantined]
        batch = batch_of_ranges(lake, project, feed, ranges, taken.count, len(quarantined))
        return commit_append(lake, table, flow, columns, landed, quarantined, batch, plan, began)


def _land(
    lake: Lake,
    project: Project,
    table: Table,
    feed: Feed,
    ground: TableVersion | None,
    taken: IngestRows,
    ranges: Mapping[str, Range],
) -> tuple[TargetColumns, Landed]:
    """The columns that the table must have, and the files of its new rows."""
    flow = feed.flow
    assert isinstance(flow, AppendFlow)
    settings = flow_settings(project, table)
    unchanged = _unchanged_rows(table, flow, ground, taken)
    if ground is not None and unchanged is not None:
        landed = land_arrow(
            lake, table.name, unchanged, timestamp=table.timestamp, settings=settings
        )
        return TargetColumns(ground, ground.schema), landed
    inputs = RefreshInputs(lake, project, {}, taken.good())
    rows = inputs.frame(flow.query)
    if ground is not None and not flow.by_name:
        rows = rows.toDF(*ground.schema.fieldNames())
    columns, rows = fit_columns(lake, project, table, flow, ground, rows)
    landed = land(
        lake,
        table.name,
        rows,
        size=feed.size(ranges) + inputs.size,
        expectations=table.expectations,
        timestamp=table.timestamp,
        settings=settings,
    )
    return columns, landed


def _unchanged_rows(
    table: Table, flow: AppendFlow, ground: TableVersion | None, taken: IngestRows
) -> pa.Table | None:
    """The unchanged input rows, if the query is just `SELECT * FROM STREAM …`.

    Most flows have such a query, and save a second pass through Spark.
    """
    query = flow.query
    if ground is None or table.expectations or not isinstance(query, SqlQuery):
        return None
    around = query.spliced(lambda reference: "").split()
    if [word.lower() for word in around] != ["select", "*", "from"]:
        return None
    rows, schema = taken.held.get(query.references[0], (None, None))
    return rows if schema is not None and same_columns(schema, ground.schema) else None


def _create_empty(
    lake: Lake, project: Project, table: Table, feed: Feed, plan: RefreshPlan
) -> Done | None:
    """Create the table without rows, if its columns are known before the first record arrives."""
    assert isinstance(feed.flow, AppendFlow)
    try:
        taken = IngestRows(lake, feed, {})
        rows = RefreshInputs(lake, project, {}, taken.good()).frame(feed.flow.query)
        if table.schema is None and not rows.columns:
            return None
        columns, _ = fit_columns(lake, project, table, feed.flow, None, rows)
        columns.ready(lake, table.name)
    except SpringhouseError:
        return None  # The first records create the table, or fail with the reason.
    return Done(table.name, "schema", reason=plan.reason)


def append_batch(
    lake: Lake,
    project: Project,
    table: Table,
    stream: StreamingFlow,
    rows: "DataFrame",
    size: int,
    number: int,
    reflected: Mapping[str, int] | None,
    plan: RefreshPlan,
) -> Done:
    """Append a micro-batch of Structured Streaming, with its number as the transaction's version.

    `reflected` is None if a later batch has more rows of the same versions.
    """
    began, flow = lake.now(), stream.flow
    settle_quarantine(lake, table.name)
    columns, rows = fit_columns(lake, project, table, flow, lake.find(table.name), rows)
    landed = land(
        lake,
        table.name,
        rows,
        size=size,
        expectations=table.expectations,
        timestamp=table.timestamp,
        settings=flow_settings(project, table),
    )
    batch = batch_of_stream(lake, project, stream, number, landed, reflected)
    return commit_append(lake, table, flow, columns, landed, landed.quarantined, batch, plan, began)
