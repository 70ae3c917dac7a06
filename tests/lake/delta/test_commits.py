"""A commit is written whole and once, on the version that it was computed from. No Spark needed."""

import threading
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import (
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from springhouse.errors import CommitConflict, LakeError, NotOwned, SchemaError
from springhouse.lake.delta.changes import small_delta
from springhouse.lake.delta.commits import (
    Change,
    add_columns,
    commit,
    create,
    delta_schema,
    describe,
    ensure,
    with_features_for,
)
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.requirements import PermitHeld
from springhouse.lake.delta.tables import TableVersion, open_table
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.storage.storage import Storage
from springhouse.planner.provenance import Provenance
from springhouse.units import Instant

SCHEMA = StructType([StructField("id", LongType()), StructField("name", StringType())])


def note(kind: str = "append", **more: object) -> Note:
    return Note(kind=kind, at=Instant(1.0), **more)  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path) -> Storage:
    return Storage.at(str(tmp_path / "orders"))


@pytest.fixture
def ground(place: Storage) -> TableVersion:
    return ensure(place, SCHEMA, note("schema", channel=True))


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{i}" for i in ids], "__springhouse_n": ids})


def append(ground: TableVersion, *ids: int, transactions: dict[str, int] | None = None) -> None:
    add = [write_arrow(ground.storage, rows(*ids))]
    commit(ground, Change(note(channel=True), add, transactions=transactions or {}))


def stored(place: Storage) -> list[int]:
    return sorted(DeltaTable(place.root).to_pyarrow_table()["id"].to_pylist())


def test_readers_see_declared_columns_only(ground: TableVersion) -> None:
    append(ground, 1, 2)
    assert DeltaTable(ground.storage.root).to_pyarrow_table().column_names == ["id", "name"]


def test_the_same_offsets_are_committed_once(ground: TableVersion) -> None:
    late = open_table(ground.storage)
    assert late is not None
    append(ground, 1, transactions={"flow/0": 5})
    with pytest.raises(CommitConflict):
        append(late, 1, transactions={"flow/0": 5})
    assert stored(ground.storage) == [1]


def test_a_different_range_of_the_same_partition_conflicts_too(ground: TableVersion) -> None:
    late = open_table(ground.storage)
    assert late is not None
    append(ground, 1, transactions={"flow/0": 5})
    with pytest.raises(CommitConflict):
        append(late, 1, 2, transactions={"flow/0": 8})


def test_two_flows_append_to_one_table_side_by_side(ground: TableVersion) -> None:
    other = open_table(ground.storage)
    assert other is not None
    append(ground, 1, transactions={"one/0": 1})
    append(other, 2, transactions={"other/0": 1})
    assert stored(ground.storage) == [1, 2]


def test_a_table_is_opened_from_a_checkpoint_that_knows_all_offsets(place: Storage) -> None:
    late = ensure(place, SCHEMA, note("schema", channel=True))
    append(late, 0, transactions={"rare/0": 7})
    for number in range(1, 25):
        opened = open_table(place)
        assert opened is not None
        append(opened, number, transactions={"often/0": number})
    assert (Path(place.path) / "_delta_log" / "_last_checkpoint").exists()
    opened = open_table(place)
    assert opened is not None
    assert (opened.offset("rare/0"), opened.offset("often/0")) == (7, 24)
    assert stored(place) == list(range(25))
    first = open_table(place, 0)
    assert first is not None
    with pytest.raises(CommitConflict):
        append(first, 0, transactions={"rare/0": 7})


def test_how_two_versions_differ_is_read_once(place: Storage) -> None:
    append(ensure(place, SCHEMA, note("schema", channel=True)), 1, 2)
    log, newest = TableLog(place, "orders"), open_table(place)
    assert newest is not None
    found = small_delta(log, 0, newest)
    assert found is not None
    assert found["id"].to_pylist() == [1, 2]
    assert small_delta(log, 0, newest) is found


def test_many_writers_at_once_lose_nothing(ground: TableVersion) -> None:
    grounds = [open_table(ground.storage) for _ in range(8)]

    def write(index: int, on: TableVersion | None) -> None:
        assert on is not None
        append(on, index, transactions={f"flow-{index}": 1})

    threads = [threading.Thread(target=write, args=(index, on)) for index, on in enumerate(grounds)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert stored(ground.storage) == list(range(8))


def test_two_refreshes_from_one_version_can_not_both_replace(ground: TableVersion) -> None:
    append(ground, 1)
    one, other = open_table(ground.storage), open_table(ground.storage)
    assert one is not None
    assert other is not None

    def replacing(on: TableVersion, *ids: int) -> None:
        add = [write_arrow(on.storage, rows(*ids))]
        refresh = {"springhouse/refresh": on.version + 1}
        commit(on, Change(note("replace"), add, transactions=refresh, replace=SCHEMA))

    replacing(one, 10)
    with pytest.raises(CommitConflict):
        replacing(other, 20)
    assert stored(ground.storage) == [10]


def test_a_replacement_may_have_other_columns(ground: TableVersion) -> None:
    append(ground, 1)
    on = open_table(ground.storage)
    assert on is not None
    wider = StructType([*SCHEMA.fields, StructField("city", StringType())])
    table = pa.table({"id": [2], "name": ["b"], "city": ["Oslo"]})
    add = [write_arrow(on.storage, table)]
    commit(on, Change(note("replace"), add, replace=wider))
    assert DeltaTable(on.storage.root).to_pyarrow_table().to_pylist() == table.to_pylist()


def test_only_one_of_two_creates_a_table(place: Storage) -> None:
    create(place, SCHEMA, Change(note("replace")))
    with pytest.raises(CommitConflict):
        create(place, SCHEMA, Change(note("replace")))


def test_new_columns_are_null_in_old_rows(ground: TableVersion) -> None:
    append(ground, 1)
    on = open_table(ground.storage)
    assert on is not None
    grown = add_columns(on, [StructField("city", StringType())], note("schema"))
    assert grown.schema.fieldNames() == ["id", "name", "city"]
    assert DeltaTable(on.storage.root).to_pyarrow_table()["city"].to_pylist() == [None]


def test_a_column_without_a_type_is_an_error_that_says_what_to_write() -> None:
    with pytest.raises(SchemaError) as caught:
        delta_schema(StructType([StructField("nothing", NullType())]))
    assert str(caught.value) == (
        'the column "nothing" has no type, only NULLs\n'
        "  hint: Give it one: CAST(NULL AS STRING) AS nothing"
    )


def test_the_log_tells_states_and_what_they_reflect(ground: TableVersion) -> None:
    append(ground, 1)
    on = open_table(ground.storage)
    assert on is not None
    append(on, 2)
    on = open_table(ground.storage)
    assert on is not None
    commit(on, Change(note("compaction"), [write_arrow(on.storage, rows(1, 2))], on.files))
    log = TableLog(ground.storage, "orders")
    # The compaction is a version that readers may use, but no new state of the rows.
    assert [(s.made, s.version) for s in log.snapshots()] == [(0, 0), (1, 1), (2, 3)]
    assert log.snapshots()[-1].provenance == Provenance.of(orders=2)
    assert stored(ground.storage) == [1, 2]


def test_the_log_follows_what_others_commit(ground: TableVersion) -> None:
    append(ground, 1, 2)
    log = TableLog(ground.storage, "orders")
    assert len(log.snapshots()) == 2
    DeltaTable(ground.storage.root).delete("id = 1")
    newest = log.newest()
    assert newest is not None
    assert (newest.made, newest.note) == (2, None)
    DeltaTable(ground.storage.root).optimize.compact()
    assert len(log.snapshots()) == 3


def test_a_commit_that_delta_refuses_is_no_conflict(ground: TableVersion) -> None:
    append(ground, 1)
    DeltaTable(ground.storage.root).alter.set_table_properties({"delta.appendOnly": "true"})
    on = open_table(ground.storage)
    assert on is not None
    with pytest.raises(LakeError, match="the commit was refused") as caught:
        commit(on, Change(note("merge"), [write_arrow(on.storage, rows(2))], on.files))
    assert not isinstance(caught.value, CommitConflict)


def test_a_replacement_may_bring_a_type_that_needs_a_table_feature(ground: TableVersion) -> None:
    append(ground, 1)
    on = open_table(ground.storage)
    assert on is not None
    schema = StructType([StructField("at", TimestampNTZType())])
    able = with_features_for(on, schema, note("schema"))
    table = pa.table({"at": pa.array([datetime(2026, 1, 1)], pa.timestamp("us"))})  # noqa: DTZ001
    add = [write_arrow(able.storage, table)]
    commit(able, Change(note("replace"), add, replace=schema))
    assert DeltaTable(on.storage.root).to_pyarrow_table().to_pylist() == table.to_pylist()


def test_a_table_of_another_warehouse_is_a_channel_of_its_own(ground: TableVersion) -> None:
    reflecting = note("replace", after=Provenance.of(their_orders=7))
    commit(ground, Change(reflecting, [write_arrow(ground.storage, rows(1))]))
    foreign = TableLog(ground.storage, "delta.`theirs`").newest()
    assert foreign is not None
    assert foreign.provenance.as_json() == {"delta.`theirs`": [1]}


def test_a_writer_that_may_not_commit_any_more_changes_nothing(ground: TableVersion) -> None:
    def prove() -> None:
        raise NotOwned("orders is another node's by now")

    fresh = Storage.at(str(Path(ground.storage.root).with_name("fresh")))
    required = [PermitHeld(prove)]
    add = write_arrow(ground.storage, rows(1))
    with pytest.raises(NotOwned):
        commit(ground, Change(note(channel=True), [add]), required)
    with pytest.raises(NotOwned):
        add_columns(ground, [StructField("more", LongType())], note("schema"), required)
    with pytest.raises(NotOwned):
        describe(ground, "a comment", {}, {}, note("schema"), required)
    with pytest.raises(NotOwned):
        ensure(fresh, SCHEMA, note("schema"), required)
    assert DeltaTable(ground.storage.root).version() == ground.version
    assert open_table(fresh) is None
    append(ground, 1)
    assert DeltaTable(ground.storage.root).version() == ground.version + 1


@pytest.mark.parametrize("number", range(10))
def test_of_two_that_make_a_table_at_the_same_moment_one_does(place: Storage, number: int) -> None:
    together, refused = threading.Barrier(2), []

    def make() -> None:
        add = write_arrow(place, rows(number, number + 1))
        together.wait()
        try:
            create(place, SCHEMA, Change(note("replace"), [add]))
        except CommitConflict as conflict:
            refused.append(conflict)

    makers = [threading.Thread(target=make) for _ in range(2)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join(timeout=30.0)
    assert DeltaTable(place.root).version() == 0
    assert len(DeltaTable(place.root).file_uris()) == 1
    assert len(refused) == 1


@pytest.mark.parametrize("second", ["compaction", "merge"])
@pytest.mark.parametrize("first", ["compaction", "merge"])
def test_files_are_put_together_or_rewritten_once(
    ground: TableVersion, place: Storage, first: str, second: str
) -> None:
    append(ground, 1)
    grounds = open_table(place), open_table(place)
    for kind, each in zip((first, second), grounds, strict=True):
        assert each is not None
        change = Change(note(kind), [write_arrow(place, rows(1))], each.files)
        if each is grounds[0]:
            commit(each, change)
        else:
            with pytest.raises(CommitConflict):
                commit(each, change)
    assert DeltaTable(place.root).to_pyarrow_table()["id"].to_pylist() == [1]


def test_who_replaces_everything_does_not_add_to_a_compaction(
    ground: TableVersion, place: Storage
) -> None:
    append(ground, 1)
    late, early = open_table(place), open_table(place)
    assert late is not None
    assert early is not None
    commit(early, Change(note("compaction"), [write_arrow(place, rows(1))], early.files))
    with pytest.raises(CommitConflict):
        commit(late, Change(note("replace"), [write_arrow(place, rows(2))], replace=SCHEMA))
    assert DeltaTable(place.root).to_pyarrow_table()["id"].to_pylist() == [1]


def test_nothing_is_committed_into_a_table_that_was_deleted(
    ground: TableVersion, place: Storage
) -> None:
    append(ground, 1)
    held = open_table(place)
    assert held is not None
    place.inside("_delta_log").remove()
    with pytest.raises(CommitConflict, match="deleted"):
        append(held, 2)
    assert open_table(place) is None
