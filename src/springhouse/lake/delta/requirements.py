"""What must be true when a commit is written?

A commit is data: what it requires, and what it changes. A requirement is a value with one method,
`check`, which raises an error if the requirement is not met. `commits` checks all requirements of a
commit in one place, right before it writes:

    PermitHeld           this process may still commit: the permit of its work is not revoked
    HeldLease            the lease is valid, so no vacuum deletes the files that the process wrote
    OffsetsUnread        the table does not hold the records of these ranges yet
    TableHasVersion      the table was not deleted since the version that the work read
    FilesExist           these files exist, with their sizes

Two requirements concern commits of others between the check and the write. Only the write itself
can check these, so they say what the Delta log has to compare:

    TransactionNotSeen   no other commit has this transaction, or a later one of the same name
    VersionIs            no other commit came at all: the new one follows this version

Delta compares transactions by itself. But Delta accepts a commit that removes a file which a
compaction already removed (tried: afterwards the table has the old and the new rows). So a commit
that removes files requires `VersionIs`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from springhouse.errors import CommitConflict
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.storage.leases import HeldLease
from springhouse.lake.storage.presence import RemoteScans, validate_files
from springhouse.lake.storage.storage import Storage


class Requirement(Protocol):
    """Something that must be true when a commit is written."""

    def check(self) -> None:
        """Raise an error if it is not true."""
        ...


@dataclass(frozen=True)
class PermitHeld:
    """The permit of the work is still valid: `validate` raises an error if it is revoked."""

    validate: Callable[[], None]

    def check(self) -> None:
        self.validate()


@dataclass(frozen=True)
class OffsetsUnread:
    """The table holds no records of these ranges (from, to), by transaction.

    Delta compares only commits after the version that the work read. That version may be newer than
    the ranges, because the work had to create the table or to add columns in between.
    """

    table: TableVersion
    ranges: Mapping[str, tuple[int, int]]

    def check(self) -> None:
        if any(self.table.offset(app) > start for app, (start, _) in self.ranges.items()):
            raise CommitConflict(
                "somebody else committed the same work first", where=self.table.storage.root
            )


@dataclass(frozen=True)
class TableHasVersion:
    """The log still has the entry of a version; Delta itself would commit into a deleted table."""

    storage: Storage
    version: int

    def check(self) -> None:
        (entry,) = self.storage.inside("_delta_log").entries([f"{self.version:020}.json"])
        if entry is None:
            raise CommitConflict("the table was deleted meanwhile", where=self.storage.root)


@dataclass(frozen=True)
class FilesExist:
    """Files of a table exist with their sizes; None for an unknown size.

    A vacuum may have deleted them: a vacuum of another tool, or one while this process was stopped.
    """

    storage: Storage
    sizes: Mapping[str, int | None]

    def check(self) -> None:
        validate_files(self.storage, self.sizes)


@dataclass(frozen=True)
class TransactionNotSeen:
    """No other commit has this version of the transaction, or a later one."""

    app: str
    version: int

    def check(self) -> None:
        """The write itself checks it: Delta refuses the second commit."""


@dataclass(frozen=True)
class VersionIs:
    """No other commit was made after this version."""

    version: int

    def check(self) -> None:
        """The write itself checks it: delta-rs does not retry with the next version."""


@dataclass(frozen=True)
class CommitPermit:
    """The requirements of all commits of a piece of work, in any table.

    `validate` raises an error when the work may no longer commit. `lease` protects the files that
    the work writes. `scans` are the files that a remote engine reads for the work.
    """

    validate: Callable[[], None] | None = None
    lease: HeldLease | None = None
    scans: RemoteScans = field(default_factory=RemoteScans)

    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements of each commit of this work."""
        # Check the lease before the files: after its renewal no vacuum deletes them.
        lease = () if self.lease is None else (self.lease,)
        permit = () if self.validate is None else (PermitHeld(self.validate),)
        scanned = (FilesExist(storage, sizes) for storage, sizes in self.scans.scans)
        return (*lease, *permit, *scanned)


def check_all(requirements: Iterable[Requirement]) -> None:
    """Raise the error of the first requirement that is not met."""
    for requirement in requirements:
        requirement.check()


def transactions_of(requirements: Sequence[Requirement]) -> list[TransactionNotSeen]:
    """The transactions that the Delta log has to compare."""
    return [each for each in requirements if isinstance(each, TransactionNotSeen)]


def follows_at_once(requirements: Sequence[Requirement]) -> bool:
    """Whether the commit has to follow its ground directly, with no other commit in between."""
    return any(isinstance(each, VersionIs) for each in requirements)
