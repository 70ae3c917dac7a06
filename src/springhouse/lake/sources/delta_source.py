"""How does a Delta table flow like a stream?

A table that only grows is a sequence of commits, and its rows are the records. There is one
partition; its offset counts versions:

    offset n      every version below n is read
    [0, v + 1)    the whole table as of version v
    [u, v + 1)    the rows that the versions u to v added

A commit that changes no row (a compaction, a new column) raises the version and not `latest`: there
is nothing to read. If rows were changed or deleted, the table is no stream any more: an error.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from springhouse.errors import SourceError
from springhouse.lake.delta.changes import WEIGHT, only_appended, strong_delta
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.tables import TableVersion, open_table
from springhouse.lake.sources.source import Range, Source, SourceContext
from springhouse.lake.storage.durable import sync_entries
from springhouse.lake.storage.presence import RemoteScans
from springhouse.lake.storage.storage import Storage
from springhouse.project.options.built_in import read_delta

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITION = "0"


class DeltaSource(Source):
    """The rows that are appended to a Delta table of this warehouse or of another writer."""

    def __init__(self, log: TableLog) -> None:
        self._log = log

    @property
    def warning(self) -> str | None:  # type: ignore[override]  # looked up every time
        """The table does not exist, or not yet."""
        if self._log.newest() is None:
            return f'there is no Delta table at "{self._log.storage.root}" yet'
        return None

    def incarnation(self) -> str | None:
        """The id of the table; None without a table. A table that is created again has another."""
        return self._log.table_id()

    def sync(self, ranges: Mapping[str, Range]) -> None:
        """Sync the log entries of these ranges to the disk: another writer may not have done so."""
        sync_entries(self._log.storage, _only(ranges).end - 1)

    def mark(self, end: int) -> str | None:
        """The fingerprint of the last version below an offset."""
        return self._log.mark(end - 1)

    def has_mark(self, mark: str) -> bool:
        """Whether the table has the version with this fingerprint."""
        return self._log.has_mark(mark)

    def stepped_back(self, start: int, latest: int) -> SourceError | None:
        """The error if the table has fewer versions than were read; None without a table."""
        if latest == 0:
            return None
        return SourceError(
            f"the Delta table has {latest} versions, and {start} were read: an older copy of it "
            "was put in its place",
            where=self._log.storage.root,
            hint="Put back the newer one; or delete the table that reads it, and run again.",
        )

    def latest(self) -> Mapping[str, int]:
        """One above the last version that changed the rows."""
        self._log.validate_log()
        newest = self._log.newest()
        return {_PARTITION: newest.made + 1 if newest else 0}

    def size(self, ranges: Mapping[str, Range]) -> int:
        """The bytes of the files that the versions of these ranges added."""
        versions = _only(ranges)
        if versions.start == versions.end:
            return 0
        if versions.start == 0:
            return self._opened(self._same_rows(versions.end - 1)).size
        added = self._added(versions)
        files = self._opened(versions.end - 1).files
        return sum(file.size for file in files if file.path in added)

    def identity(self, ranges: Mapping[str, Range]) -> object:
        """The versions of the table: every reader counts them in the same way."""
        return dict(ranges), self._log.storage.root

    def read(
        self,
        spark: "SparkSession",
        ranges: Mapping[str, Range],
        scans: RemoteScans | None = None,
    ) -> "DataFrame":
        """The rows that the versions of these ranges added."""
        versions = _only(ranges)
        if versions.start == versions.end:
            newest = self._log.newest()
            return self._opened(newest.version if newest else 0).read_files(spark, [])
        if versions.start == 0:
            return self._opened(self._same_rows(versions.end - 1)).read(spark, scans=scans)
        self._prove_appended(versions)
        rows = strong_delta(spark, self._log, versions.start - 1, versions.end - 1, scans)
        return rows.drop(WEIGHT)

    def _added(self, versions: Range) -> set[str]:
        return {
            path
            for commit in self._log.commits()
            if versions.start <= commit.version < versions.end
            for path in commit.added
        }

    def _same_rows(self, version: int) -> int:
        """The newest version with the rows of `version`: vacuum keeps its files the longest."""
        states = [state for state in self._log.snapshots() if state.made <= version]
        return max(version, states[-1].version) if states else version

    def _opened(self, version: int) -> TableVersion:
        opened = open_table(self._log.storage, version)
        if opened is None:
            raise SourceError("there is no Delta table", where=self._log.storage.root)
        return opened

    def _prove_appended(self, versions: Range) -> None:
        if only_appended(self._log, versions.start - 1, versions.end - 1):
            return
        logged = {commit.version for commit in self._log.commits()}
        if not logged.issuperset(range(versions.start, versions.end)):
            raise SourceError(
                f"the log of the Delta table no longer has all of its versions {versions.start} to "
                f"{versions.end - 1}, so the rows that were added are not known",
                where=self._log.storage.root,
                hint="Rebuild the table that reads it, and keep the log longer: "
                "delta.logRetentionDuration.",
            )
        raise SourceError(
            f"rows of the Delta table were changed or deleted between its versions "
            f"{versions.start - 1} and {versions.end - 1}; a stream can only be appended to",
            where=self._log.storage.root,
            hint="Read it in a materialized view, which follows every change "
            f"(FROM delta.`{self._log.storage.root}`), or send its changes through AUTO CDC.",
        )


class ReadDelta(DeltaSource):
    """`read_delta('path')`: the rows that are appended to the Delta table at a path or URI."""

    def __init__(self, path: str, *, context: SourceContext) -> None:
        read_delta(path)
        storage = Storage.at(path, relative_to=context.folder)
        super().__init__(TableLog(storage, path))


def _only(ranges: Mapping[str, Range]) -> Range:
    return ranges.get(_PARTITION, Range(0, 0))
