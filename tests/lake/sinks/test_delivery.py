"""A sink gets every version once and in order, whatever happens between two commits."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from springhouse.errors import SinkError
from springhouse.lake.delta.commits import Change, commit
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.writing import paths_of, write_arrow
from springhouse.lake.lake import Lake
from springhouse.lake.sinks.delivery import MOST_VERSIONS, deliver, delivered
from springhouse.lake.sinks.sink import Changes, Sink
from springhouse.lake.sources.source import Range
from springhouse.lake.spark.session import Spark
from springhouse.lake.storage.storage import Storage
from springhouse.project.declarations.declaration import Place, Project, SinkCall, Table
from springhouse.units import Instant, Seconds
from springhouse.warehouse.running.courier import Courier

SINK = SinkCall("out", "memory", {}, Place("t.sql", 1))
WEIGHT = "__springhouse_weight"


class Memory(Sink):
    """A sink that remembers its rows, and breaks or dies at a moment of the test's choice."""

    def __init__(self) -> None:
        self.ranges: list[Range] = []
        self.rows: list[tuple[str, int, int]] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def write(self, changes: Changes, versions: Range) -> None:
        self.before()
        self.ranges.append(versions)
        for batch in changes.batches():
            names = ("_change_type", "_commit_version", "id")
            self.rows += zip(*(batch[name].to_pylist() for name in names), strict=True)
        self.after()


class Death(BaseException):
    """An exception that our code never catches."""


def die() -> None:
    raise Death


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(Storage(str(tmp_path)), Spark({}, "none"), tmp_path, lambda: Instant(1_000.0))


@pytest.fixture
def append(lake: Lake) -> Callable[..., None]:
    def write(*ids: int) -> None:
        write_deltalake(
            lake.place("t").root, pa.table({"id": pa.array(ids, pa.int64())}), mode="append"
        )

    return write


def test_the_first_delivery_is_the_whole_table_and_then_what_changed(
    lake: Lake, append: Callable[..., None]
) -> None:
    sink = Memory()
    append(1, 2)
    append(3)
    first = deliver(lake, "t", SINK, sink)
    append(4)
    append(5)
    deliver(lake, "t", SINK, sink)
    assert deliver(lake, "t", SINK, sink) is None, "there is nothing new"
    assert first is not None
    assert (first.rows, sink.ranges) == (3, [(0, 2), (2, 4)])
    assert sink.rows == [("insert", 1, i) for i in (3, 1, 2)] + [("insert", 2, 4), ("insert", 3, 5)]


def test_of_a_rewrite_the_changed_rows_are_delivered_deletes_first(
    lake: Lake, append: Callable[..., None]
) -> None:
    sink = Memory()
    append(1, 2)
    deliver(lake, "t", SINK, sink)
    place, table = lake.place("t"), lake.open("t")
    new = write_arrow(place, pa.table({"id": [2, 7, 7]}))
    changed = pa.table({"id": [7, 1], WEIGHT: pa.array([2, -1], pa.int64())})
    change = write_arrow(place, changed, "_changes")
    note = Note("merge", Instant(5.0), changes=paths_of([change]))
    commit(table, Change(note, [new], table.files))
    sink.rows.clear()
    deliver(lake, "t", SINK, sink)
    assert sink.rows == [("delete", 1, 1), ("insert", 1, 7), ("insert", 1, 7)]


def test_commits_that_change_no_rows_hold_nothing_up(
    lake: Lake, append: Callable[..., None]
) -> None:
    sink = Memory()
    append(1)
    deliver(lake, "t", SINK, sink)
    for number in range(MOST_VERSIONS + 2):
        unchanged = Note("merge", Instant(number), changes=())
        commit(lake.open("t"), Change(unchanged))
    assert deliver(lake, "t", SINK, sink) is None
    append(2)
    deliver(lake, "t", SINK, sink)
    assert [row[2] for row in sink.rows] == [1, 2]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_a_dead_process_left_comes_again_exactly_as_it_was(
    lake: Lake, append: Callable[..., None], moment: str
) -> None:
    append(1)
    deliver(lake, "t", SINK, Memory())
    append(2)
    dying = Memory()
    setattr(dying, moment, die)
    with pytest.raises(Death):
        deliver(lake, "t", SINK, dying)
    append(3)
    sink = Memory()
    deliver(lake, "t", SINK, sink)
    assert sink.ranges == [(1, 2)], "not (1, 3): the sink must be able to recognise it"
    deliver(lake, "t", SINK, sink)
    assert sink.rows == [("insert", 1, 2), ("insert", 2, 3)]


def test_a_table_that_was_made_anew_is_not_passed_off_as_the_old_one(
    lake: Lake, append: Callable[..., None], tmp_path: Path
) -> None:
    append(1)
    append(2)
    deliver(lake, "t", SINK, Memory())
    lake.place("t").remove()
    fresh = Lake(lake.storage, lake.spark, lake.folder, lake.now)
    write_deltalake(lake.place("t").root, pa.table({"id": [9]}))
    with pytest.raises(SinkError, match="the table was deleted and created again"):
        deliver(fresh, "t", SINK, Memory())


def project_with(tmp_path: Path, **options: str) -> Project:
    place = Place("t.sql", 1)
    sink = SinkCall("out", "positioned_file", options, place)
    table = Table("t", place, sinks=(sink,))
    return Project("p", tmp_path, "", None, None, {}, {"t": table}, {}, {}, (), {})


def test_a_positioned_file_has_a_line_of_json_for_each_changed_row(
    lake: Lake, append: Callable[..., None], tmp_path: Path
) -> None:
    told: list[Any] = []
    courier = Courier(
        project_with(tmp_path, path="out/t.jsonl"),
        lake,
        lake.now,
        Seconds(2.0),
        listener=told.append,
    )
    append(1)
    at = DeltaTable(lake.place("t").root).history(1)[0]["timestamp"]
    with courier.running():
        pass
    assert not courier.failures
    text = (tmp_path / "out" / "t.jsonl").read_text()
    assert text.startswith('{"id":1,"_change_type":"insert","_commit_version":0,')
    assert at
    assert (told[0].rows, delivered(lake, "t", "out")) == (1, 1)


def test_a_sink_that_fails_is_told_and_tried_again(
    lake: Lake, append: Callable[..., None], tmp_path: Path
) -> None:
    append(1)
    (tmp_path / "out").write_text("a file where a folder should be")
    courier = Courier(project_with(tmp_path, path="out/t.jsonl"), lake, lake.now, Seconds(2.0))
    courier.round()
    assert "out" in courier.failures["t > out"].problem
    (tmp_path / "out").unlink()
    courier.round()
    assert courier.failures, "its pause is not over"
    courier.round(hurry=True)
    assert not courier.failures
    assert (tmp_path / "out" / "t.jsonl").exists()
    courier.close()


def test_options_are_held_against_the_plugin(
    lake: Lake, append: Callable[..., None], tmp_path: Path
) -> None:
    append(1)
    courier = Courier(project_with(tmp_path, pth="x"), lake, lake.now, Seconds(2.0))
    courier.round()
    assert courier.failures["t > out"].problem == (
        't.sql:1: the sink "positioned_file" has no option "pth"\n  hint: Did you mean "path"?'
    )


def test_a_table_that_was_made_anew_is_not_taken_for_the_one_that_was_delivered(
    lake: Lake, append: Callable[..., None]
) -> None:
    append(1)
    append(2)
    sink = Memory()
    while deliver(lake, "t", SINK, sink) is not None:
        pass
    lake.place("t").remove()
    assert deliver(lake, "t", SINK, sink) is None
    for ids in ([10], [20], [30]):
        append(*ids)
        with pytest.raises(SinkError, match="the table was deleted and created again"):
            deliver(lake, "t", SINK, sink)
    assert sorted(id for _, _, id in sink.rows) == [1, 2]


def test_a_table_that_was_restored_is_not_taken_for_the_one_that_was_delivered(
    lake: Lake, append: Callable[..., None], tmp_path: Path
) -> None:
    append(1)
    table = Path(lake.place("t").root)
    shutil.copytree(table, tmp_path / "backup")
    append(2)
    sink = Memory()
    while deliver(lake, "t", SINK, sink) is not None:
        pass
    shutil.rmtree(table)
    shutil.copytree(tmp_path / "backup", table)
    for each in (lake, Lake(lake.storage, lake.spark, lake.folder, lake.now)):
        append(3)
        with pytest.raises(SinkError, match="an older copy of it was put in its place"):
            deliver(each, "t", SINK, sink)
    assert sorted(id for _, _, id in sink.rows) == [1, 2]


@pytest.mark.parametrize("plugin", ["positioned_file", "avro"])
def test_what_another_warehouse_wrote_is_neither_skipped_nor_mixed(
    tmp_path: Path, plugin: str
) -> None:
    def courier_of(storage: str) -> Courier:
        folder = Storage(str(tmp_path / storage))
        lake = Lake(folder, Spark({}, "none"), tmp_path, lambda: Instant(1_000.0))
        place = Place("t.sql", 1)
        call = SinkCall("out", plugin, {"path": "out/put"}, place)
        tables = {"t": Table("t", place, sinks=(call,))}
        project = Project("p", tmp_path, "", None, None, {}, tables, {}, {}, (), {})
        write_deltalake(lake.place("t").root, pa.table({"id": [1]}), mode="append")
        return Courier(project, lake, lake.now, Seconds(1.0))

    first = courier_of("first")
    first.round()
    assert first.failures == {}
    courier_of("first").round()  # Goes on after the first one.
    first.close()
    written = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    second = courier_of("second")
    second.round()
    (failure,) = second.failures.values()
    assert "another" in failure.problem
    left = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert left.items() >= written.items()
