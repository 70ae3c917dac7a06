"""How does a streaming DataFrame of any Spark source get into a table, exactly once?

A Python flow may return a streaming DataFrame: Spark's own Structured Streaming runs it with
`availableNow`. Each micro-batch is staged as a folder of Parquet files named after its batch id,
and then committed to the table with the batch id as the version of a transaction. Spark may
repeat a batch after a crash, always with the same id and the same rows:

    staged, not committed     committed when the flow runs next, after Spark went on
    committed, repeated       its transaction is there already: nothing happens

Staging instead of committing inside `foreachBatch` is what makes one code path serve classic Spark
and Spark Connect, where the function runs in another process.

A flow may read our own tables with `spark.readStream.table`. Spark has no source for them without
a connector, so the files of their commits are linked into a folder of the flow's, in order, and
Spark streams that folder.
"""

import os
import re
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from springhouse.errors import LakeError, SourceError
from springhouse.lake.delta.changes import only_appended
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.tables import open_table
from springhouse.lake.ingest.checkpoints import StreamingFlow
from springhouse.lake.ingest.identity import refused_source
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

None for the versions: the batches after this one hold more of them.
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
    """Take in all that the flow's stream has now, after the batches that are in already."""
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
        _run_to_its_end(rows, place, flow, timeout_seconds)
        # With what a process staged that died before it could commit: Spark may never repeat it.
        return _commit_staged(lake, place, committed, commit, inputs.linked)


def _run_to_its_end(
    rows: "DataFrame", place: Storage, flow: AppendFlow, timeout_seconds: int
) -> None:
    staged = f"{place.root}/staged"

    def stage(batch: "DataFrame", number: int) -> None:
        # Runs in a Python process of Spark's under Spark Connect: nothing of ours may be used here.
        folder = f"{staged}/{number}"
        batch.write.mode("overwrite").parquet(folder)
        # Spark's checkpoint forgets the batch next, and writes that down.
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
                f'the stream of the flow "{flow.name}" was not through after {timeout_seconds} s',
                where=str(flow.place),
                hint="What it has staged is kept; the flow goes on from there.",
            )
    except PySparkException as error:
        raise LakeError(f"the stream failed: {_cause(error)}", where=str(flow.place)) from error
    finally:
        query.stop()


def _commit_staged(
    lake: Lake, place: Storage, committed: int, commit: Commit, reflected: dict[str, int]
) -> list[Done]:
    """Commit the batches that are staged whole and not committed yet, in order."""
    done = []
    # A batch that is committed is never made again, so its offsets have to be there for good.
    sync_tree(place.inside("checkpoint"))
    batches = staged_batches(place)
    for batch in batches:
        if batch.number >= committed:
            session = lake.spark.session()
            schema = session.read.parquet(batch.folder.root)
            size = sum(info.size for info in batch.folder.files())
            # Only with the last one is everything in that was there to read.
            through = reflected if batch is batches[-1] else None
            done.append(commit(schema, size, batch.number, through))
        batch.folder.remove()
    return done


def staged_batches(place: Storage) -> list[StagedBatch]:
    """The batches that Spark staged to their end, oldest first."""
    staged = place.inside("staged")
    found = []
    for name in staged.folders():
        folder = staged.inside(name)
        if name.isdigit() and folder.read_text("_SUCCESS") is not None:
            found.append(StagedBatch(int(name), folder))
    return sorted(found, key=lambda batch: batch.number)


class _StreamInputs(RefreshInputs):
    """The inputs of a streaming function: tables of ours as files that Spark can stream."""

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
        self.linked[name] = _link_new_files(log, folder, reference, self._stream)
        opened = open_table(log.storage, newest.version)
        assert opened is not None
        schema = StructType(opened.schema.fields)
        reader: Any = self.session.readStream.schema(schema)
        stream: DataFrame = reader.parquet(folder.root)
        return stream


def _link_new_files(
    log: TableLog, folder: Storage, reference: Reference, stream: StreamingFlow
) -> int:
    """Link the files of every new commit into a folder, in order; the version linked up to.

    The first time, the table as it is: what it went through to become so may be vacuumed already.
    Of a table that was made anew, all commits, under names of their own.
    """
    newest, own = log.newest(), log.table_id()
    assert newest is not None
    assert own is not None
    if not folder.exists():
        opened = open_table(log.storage, newest.version)
        assert opened is not None
        # Made aside and then moved: a folder that is there is complete.
        aside = folder.inside("..", f".{log.name}.{uuid.uuid4().hex}")
        aside.make()
        for index, file in enumerate(opened.files):
            _link(f"{log.storage.path}/{file.path}", f"{aside.path}/{_name(newest.made, index)}")
        _write_ids(aside, [own])
        aside.filesystem.move(aside.path, folder.path)
        return newest.made
    ids = (folder.read_text(_IDS) or own).split()
    if not log.has_id(ids[-1]):
        if not stream.policy.read_recreated:
            raise refused_source(stream.flow, f"table:{log.name}")
        ids.append(own)
    suffix = f"-{own[:8]}" if len(ids) > 1 else ""
    linked = {
        info.base_name
        for info in folder.files()
        if re.fullmatch(rf"\d+-\d+{suffix}\.parquet", info.base_name)
    }
    last = max((int(name.split("-")[0]) for name in linked), default=-1)
    first = min((int(name.split("-")[0]) for name in linked), default=-1)
    if newest.made > last and not only_appended(log, max(last, 0), newest.made):
        raise SourceError(
            f'the table "{log.name}" is updated in place, and a stream can only read what is added',
            where=str(reference.place),
            hint=f'Read it with spark.read.table("{log.name}") in a materialized view.',
        )
    for commit in log.commits():
        # The last commit may have been linked in part, when the process died.
        if commit.changes_data and commit.version > first and commit.version >= last:
            for index, path in enumerate(commit.added):
                if (name := _name(commit.version, index, suffix)) not in linked:
                    _link(f"{log.storage.path}/{path}", f"{folder.path}/{name}")
    _write_ids(folder, ids)
    return newest.made


_IDS = "_table_ids"
"""The ids of the tables whose files are linked, the one that is there now last."""


def _write_ids(folder: Storage, ids: list[str]) -> None:
    text = "\n".join(ids)
    if folder.read_text(_IDS) != text:
        Path(folder.path, _IDS).write_text(text)


def _name(version: int, index: int, suffix: str = "") -> str:
    return f"{version:020}-{index:05}{suffix}.parquet"


def _link(source: str, target: str) -> None:
    # A link takes no room and no time; where there are none (another disk), a copy will do.
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except OSError:
        # Under a name that Spark passes over, in case that we die halfway.
        half_done = Path(target).with_name(f".{Path(target).name}.tmp")
        shutil.copyfile(source, half_done)
        half_done.replace(target)


def _cause(error: PySparkException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(line for line in lines[:3] if not line.startswith(("at ", "==")))[:500]
