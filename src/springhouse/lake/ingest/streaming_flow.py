"""How does a streaming DataFrame of any Spark source get into a table, exactly once?

A Python flow may return a streaming DataFrame. Spark's own Structured Streaming runs it with
`availableNow`. Each micro-batch is first staged as a folder of Parquet files, named after its batch
id, and then committed to the table with the batch id as the version of a transaction. After a
crash Spark may repeat a batch, always with the same id and the same rows:

    staged, not committed     the next run of the flow commits it, even if Spark went on
    committed, repeated       its transaction exists already: nothing happens

Inside `foreachBatch` a batch is only staged, and not committed. So one code path serves classic
Spark and Spark Connect, where that function runs in another process.

A flow may read our own tables with `spark.readStream.table`: see `linked_files`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from springhouse.errors import LakeError
from springhouse.lake.delta.tables import open_table
from springhouse.lake.ingest.checkpoints import StreamingFlow
from springhouse.lake.ingest.linked_files import link_new_files
from springhouse.lake.lake import Lake
from springhouse.lake.landing.inputs import NotThereYet, RefreshInputs
from springhouse.lake.landing.landing import Done
from springhouse.lake.spark.queries import errors_at
from springhouse.lake.storage.durable import sync_tree
from springhouse.lake.storage.storage import Storage
from springhouse.project.declarations.declaration import AppendFlow, Project, ReadMode, Reference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Commit = Callable[["DataFrame", int, int, dict[str, int] | None], Done]
"""Commits the rows of a batch: (rows, bytes, batch id, versions of tables that it reflects).

The versions are None if later batches hold more rows of them.
"""


@dataclass(frozen=True)
class StagedBatch:
    """A micro-batch that Spark has computed; `number` is its batch id."""

    number: int
    folder: Storage


def run_stream(
    lake: Lake,
    project: Project,
    stream: StreamingFlow,
    commit: Commit,
    timeout_seconds: int = 600,
) -> list[Done]:
    """Commit all present records of the flow's stream, after the batches already committed."""
    flow, place, committed = stream.flow, stream.place, stream.committed
    inputs = _StreamInputs(lake, project, stream)
    with errors_at(flow.place):
        rows = inputs.frame(flow.query)
        if not rows.isStreaming:
            raise LakeError(
                f'the flow "{flow.name}" returned a DataFrame that is not streaming',
                where=str(flow.place),
                hint="Read with spark.readStream, or declare it with @dp.materialized_view.",
            )
        _run_to_end(rows, place, flow, timeout_seconds)
        # This includes batches of a process that died before its commit: Spark may never repeat
        # them.
        return _commit_staged(lake, place, committed, commit, inputs.linked)


def _run_to_end(rows: "DataFrame", place: Storage, flow: AppendFlow, timeout_seconds: int) -> None:
    staged = f"{place.root}/staged"

    def stage(batch: "DataFrame", number: int) -> None:
        # Under Spark Connect this runs in a Python process of the server, without our code.
        folder = f"{staged}/{number}"
        batch.write.mode("overwrite").parquet(folder)
        # After this function, Spark's checkpoint notes on the disk that the batch is finished.
        if os.path.isdir(folder):  # noqa: PTH112  as few imports as can be
            names = os.listdir(folder)  # noqa: PTH208
            for each in [*(f"{folder}/{name}" for name in names), folder, staged]:
                opened = os.open(each, os.O_RDONLY)
                try:
                    os.fsync(opened)
                finally:
                    os.close(opened)

    writer = rows.writeStream.foreachBatch(stage).queryName(flow.name.replace(".", "_"))
    writer = writer.option("checkpointLocation", f"{place.root}/checkpoint")
    query = writer.trigger(availableNow=True).start()
    try:
        if not query.awaitTermination(timeout_seconds):
            raise LakeError(
                f'the stream of the flow "{flow.name}" did not end within {timeout_seconds} s',
                where=str(flow.place),
                hint="Its staged batches are kept; the next run continues there.",
            )
    except PySparkException as error:
        raise LakeError(f"the stream failed: {_cause(error)}", where=str(flow.place)) from error
    finally:
        query.stop()


def _commit_staged(
    lake: Lake, place: Storage, committed: int, commit: Commit, reflected: dict[str, int]
) -> list[Done]:
    """Commit the batches that are completely staged and not committed yet, in order."""
    done = []
    # Spark never repeats a committed batch, so its offsets must be on the disk before the commit.
    sync_tree(place.inside("checkpoint"))
    batches = staged_batches(place)
    for batch in batches:
        if batch.number >= committed:
            session = lake.spark.session()
            rows = session.read.parquet(batch.folder.root)
            size = sum(info.size for info in batch.folder.files())
            # Only the last batch completes the versions that the stream has read.
            versions = reflected if batch is batches[-1] else None
            done.append(commit(rows, size, batch.number, versions))
        batch.folder.remove()
    return done


def staged_batches(place: Storage) -> list[StagedBatch]:
    """The batches that Spark has staged completely, oldest first."""
    staged = place.inside("staged")
    batches = []
    for name in staged.folders():
        folder = staged.inside(name)
        if name.isdigit() and folder.read_text("_SUCCESS") is not None:
            batches.append(StagedBatch(int(name), folder))
    return sorted(batches, key=lambda batch: batch.number)


class _StreamInputs(RefreshInputs):
    """The inputs of a streaming function: our tables, as files that Spark can stream."""

    def __init__(self, lake: Lake, project: Project, stream: StreamingFlow) -> None:
        super().__init__(lake, project, {})
        self._stream = stream
        self._place = stream.place
        self.linked: dict[str, int] = {}

    def resolve(self, reference: Reference) -> "DataFrame | None":
        if reference.reading is not ReadMode.STREAM:
            return super().resolve(reference)
        name = self.own_name(reference.name)
        temporary = self._project.temporary_views.get(name)
        if temporary is not None:
            return self.frame(temporary.query)
        if not self.is_declared(name):
            return None
        log = self._lake.log(name)
        log.validate_log()
        newest = log.newest()
        if newest is None:
            raise NotThereYet(name, str(reference.place))
        folder = self._place.inside("input", name)
        self.linked[name] = link_new_files(log, folder, reference, self._stream)
        opened = open_table(log.storage, newest.version)
        assert opened is not None
        schema = StructType(opened.schema.fields)
        reader: Any = self.session.readStream.schema(schema)
        stream: DataFrame = reader.parquet(folder.root)
        return stream


def _cause(error: PySparkException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(line for line in lines[:3] if not line.startswith(("at ", "==")))[:500]
