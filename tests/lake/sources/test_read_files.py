"""The files that a folder offers, and their offsets. No Spark needed."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from springhouse.errors import SourceError
from springhouse.lake.delta.tables import open_table
from springhouse.lake.sources import file_log
from springhouse.lake.sources.file_log import FileLog, FoundFile
from springhouse.lake.sources.read_files import ReadFiles
from springhouse.lake.sources.source import Range, SourceContext

Put = Callable[..., Path]


def found(*names: str) -> list[FoundFile]:
    return [FoundFile(name, 3, 1_000 + int(name)) for name in names]


def paths(log: FileLog, start: int, end: int) -> list[str]:
    return [file.path for file in log.files(Range(start, end))]


def test_a_folder_that_is_not_there_yet_is_empty(context: SourceContext, put: Put) -> None:
    source = ReadFiles("data", context=context, format="json")
    assert source.latest() == {"0": 0}
    assert source.warning is not None
    assert 'data" that "data" names does not exist' in source.warning
    put("data/a.json")
    assert source.latest() == {"0": 1}
    assert source.warning is None


@pytest.mark.parametrize(
    ("options", "offered"),
    [
        ({}, ["a.json", "b.JSON", "c.csv"]),
        ({"pattern": "*.json"}, ["a.json"]),
        ({"recursive": "true"}, ["a.json", "b.JSON", "c.csv", "day=1/d.json"]),
        ({"recursive": "true", "pattern": "d*"}, ["day=1/d.json"]),
    ],
)
def test_what_is_offered(
    options: dict[str, str], offered: list[str], context: SourceContext, put: Put
) -> None:
    for name in ("a.json", "b.JSON", "c.csv", "day=1/d.json"):
        put(f"data/{name}")
    for name in ("_a.json", ".b.json", "c.json.tmp", "d.part", "e~", "_delta_log/f.json"):
        put(f"data/{name}")
    source = ReadFiles("data", context=context, format="json", **options)
    assert source.latest() == {"0": len(offered)}
    source.admit()
    assert sorted(paths(FileLog(context), 0, len(offered))) == offered


@pytest.mark.parametrize("path", ["data/*.json", "data/orders.json", "data/o[qr]ders.*"])
def test_a_path_may_end_in_a_pattern_or_be_a_file(
    path: str, context: SourceContext, put: Put
) -> None:
    source = ReadFiles(path, context=context, format="json")
    assert source.latest() == {"0": 0}
    put("data/orders.json")
    put("data/orders.txt" if path != "data/o[qr]ders.*" else "data/other.txt")
    assert source.latest() == {"0": 1}
    source.admit()
    assert paths(FileLog(context), 0, 1) == ["orders.json"]


def test_a_local_name_that_spark_cant_read_is_refused_before_it_gets_an_offset(
    context: SourceContext, put: Put
) -> None:
    put("data/12:30.json")
    with pytest.raises(SourceError, match="colon in its name"):
        ReadFiles("data", context=context, format="json").latest()


def test_files_get_their_offsets_by_age_and_keep_them(context: SourceContext, put: Put) -> None:
    for name, age in (("young", 30), ("old", 10), ("middle", 20)):
        os.utime(put(f"data/{name}.json"), (age, age))
    source = ReadFiles("data", context=context, format="json")
    assert source.latest() == {"0": 3}
    source.admit()
    os.utime(put("data/older.json"), (5, 5))
    assert source.latest() == {"0": 4}
    again = ReadFiles("data", context=context, format="json")
    assert again.latest() == {"0": 4}
    again.admit()
    order = ["old.json", "middle.json", "young.json", "older.json"]
    assert paths(FileLog(context), 0, 4) == order


def test_nothing_is_written_when_nothing_is_new(context: SourceContext, put: Put) -> None:
    put("data/a.json")
    source = ReadFiles("data", context=context, format="json")
    source.latest()
    source.admit()
    before = open_table(context.storage)
    source.latest()
    source.admit()
    after = open_table(context.storage)
    assert before is not None
    assert after is not None
    assert before.version == after.version


def test_the_size_of_a_range_is_that_of_its_files(context: SourceContext, put: Put) -> None:
    put("data/a.json", "12345")
    put("data/b.json", "123")
    source = ReadFiles("data", context=context, format="json", max_files="7")
    source.latest()
    assert source.size({"0": Range(0, 2)}) == 8
    assert source.size({}) == 0
    assert source.largest_range == 7


def admitted(log: FileLog, files: list[FoundFile]) -> int:
    count = log.see(files)
    log.admit()
    return count


def test_who_only_asks_writes_nothing(context: SourceContext, put: Put) -> None:
    put("data/a.json", "1")
    source = ReadFiles("data", context=context, format="json")
    assert source.latest() == {"0": 1}
    put("data/b.json", "12")
    assert source.latest() == {"0": 2}
    assert source.size({"0": Range(0, 2)}) == 3
    assert not context.storage.exists()
    # Meanwhile another process admitted the second file, so the first file follows it.
    files, _ = cast("tuple[frozenset[FoundFile], object]", source.identity({"0": Range(1, 2)}))
    admitted(FileLog(context), list(files))
    source.admit()
    assert paths(FileLog(context), 0, 2) == ["b.json", "a.json"]


def test_two_processes_admit_a_file_once_and_agree_on_its_offset(context: SourceContext) -> None:
    first, second = FileLog(context), FileLog(context)
    assert admitted(first, found("1", "2")) == 2
    # The second process has never looked: it finds the entries of 1 and 2, and adds 3.
    assert admitted(second, found("1", "2", "3")) == 3
    assert admitted(first, found("4", "3")) == 4
    for log in (first, second, FileLog(context)):
        assert paths(log, 0, 4) == ["1", "2", "3", "4"]


def test_a_race_to_admit_the_same_files_ends_in_one_order(context: SourceContext) -> None:
    names = [str(n) for n in range(12)]
    logs = [FileLog(context) for _ in range(4)]

    def look(number: int) -> None:
        for count in range(1, len(names) + 1):
            admitted(logs[number], found(*names[:count]))

    with ThreadPoolExecutor(len(logs)) as pool:
        list(pool.map(look, range(len(logs))))
    written = paths(FileLog(context), 0, len(names))
    assert sorted(written) == sorted(names)
    for log in logs:
        assert paths(log, 0, len(names)) == written


def test_a_log_of_many_small_files_is_compacted_and_reads_the_same(
    context: SourceContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_log, "COMPACT_AT", 4)
    log, other = FileLog(context), FileLog(context)
    admitted(other, found("0"))
    for count in range(1, 12):
        admitted(log, found(*(str(n) for n in range(count))))
    table = open_table(context.storage)
    assert table is not None
    assert len(table.files) < 6
    for reader in (log, other, FileLog(context)):
        assert paths(reader, 0, 11) == [str(n) for n in range(11)]


def test_offsets_that_nobody_wrote_down_are_an_error(context: SourceContext) -> None:
    with pytest.raises(SourceError, match="3 files were read and only 0 are in the log of files"):
        FileLog(context).files(Range(0, 3))
