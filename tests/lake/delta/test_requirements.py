"""A commit's requirements are values, and an unmet one stops the commit. No Spark needed."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.errors import CommitConflict, NotOwned
from springhouse.lake.delta.commits import Change, commit, ensure
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.requirements import (
    CommitPermit,
    FilesExist,
    OffsetsUnread,
    PermitHeld,
    TableHasVersion,
    TransactionNotSeen,
    VersionIs,
    check_all,
    follows_at_once,
    transactions_of,
)
from springhouse.lake.delta.tables import TableVersion, open_table
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.storage.leases import HeldLease, Leases
from springhouse.lake.storage.presence import FileLost
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

SCHEMA = StructType([StructField("id", LongType())])
NOTE = Note("append", Instant(1.0), channel=True)


@pytest.fixture
def ground(tmp_path: Path) -> TableVersion:
    return ensure(Storage.at(str(tmp_path / "orders")), SCHEMA, NOTE)


def taken_back() -> None:
    raise NotOwned("orders is another node's by now")


def test_a_permit_is_asked_once_per_commit(ground: TableVersion) -> None:
    asked = []
    add = write_arrow(ground.storage, pa.table({"id": [1]}))
    commit(ground, Change(NOTE, [add]), CommitPermit(lambda: asked.append(1)).requirements())
    assert asked == [1]


def test_a_permit_requires_its_lease_before_the_files_that_were_scanned(tmp_path: Path) -> None:
    storage = Storage.at(str(tmp_path))
    with Leases(storage).hold() as lease:
        permit = CommitPermit(taken_back, lease)
        permit.scans.add(storage, {"a.parquet": 1})
        kinds = [type(each) for each in permit.requirements()]
        lease.leases.release()
    assert kinds == [HeldLease, PermitHeld, FilesExist]


def test_the_first_requirement_that_is_not_met_is_told(ground: TableVersion) -> None:
    lost = FilesExist(ground.storage, {"a.parquet": None})
    with pytest.raises(NotOwned):
        check_all([PermitHeld(taken_back), lost])
    with pytest.raises(FileLost):
        check_all([lost, PermitHeld(taken_back)])


def test_offsets_that_the_table_has_already_are_a_conflict(ground: TableVersion) -> None:
    commit(ground, Change(NOTE, transactions={"stream": 5}))
    newest = open_table(ground.storage)
    assert newest is not None
    OffsetsUnread(newest, {"stream": (5, 9)}).check()
    with pytest.raises(CommitConflict):
        OffsetsUnread(newest, {"stream": (4, 9)}).check()


def test_a_table_that_was_deleted_is_a_conflict(ground: TableVersion) -> None:
    required = TableHasVersion(ground.storage, ground.version)
    required.check()
    shutil.rmtree(ground.storage.root)
    with pytest.raises(CommitConflict, match="was deleted"):
        required.check()


def test_the_write_itself_compares_transactions_and_the_version() -> None:
    required = [TransactionNotSeen("stream", 5), VersionIs(3)]
    check_all(required)
    assert transactions_of(required) == [TransactionNotSeen("stream", 5)]
    assert follows_at_once(required)
    assert not follows_at_once(required[:1])
