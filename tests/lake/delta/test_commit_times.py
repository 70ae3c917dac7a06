"""The time of a commit, if the clock of its writer was wrong. No Spark needed."""

import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.lake.delta.commits import Change, ensure
from springhouse.lake.delta.commits import commit as write
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import open_table
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.storage.clock import CLOCK_TOLERANCE
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

NOW = 1_700_000_000.0
TEN_YEARS = 10 * 365.25 * 86_400


def dated(folder, *dates):
    """A table whose commits have these dates."""
    place = Storage.at(str(folder / "orders"))
    columns = StructType([StructField("id", LongType())])
    for number, at in enumerate(dates):
        note = Note("append", Instant(at), channel=True, freshness=Instant(at))
        if number == 0:
            ensure(place, columns, note)
        else:
            add = write_arrow(place, pa.table({"id": [number]}))
            write(open_table(place), Change(note, [add]))
    return place


def test_a_commit_dated_ten_years_ahead_counts_as_made_before_the_next(tmp_path):
    place = dated(tmp_path, NOW - 100, NOW + TEN_YEARS, NOW - 50)
    log = TableLog(place, "orders", lambda: Instant(NOW))
    assert [each.at for each in log.commits()] == [NOW - 100, NOW - 50, NOW - 50]
    assert [each.dated for each in log.commits()] == [NOW - 100, NOW + TEN_YEARS, NOW - 50]
    assert log.newest().note.freshness == NOW - 50
    assert log.dated_ahead() is None


def test_the_newest_commit_dated_ahead_counts_as_made_now_and_is_told(tmp_path):
    place = dated(tmp_path, NOW - 100, NOW + TEN_YEARS)
    log = TableLog(place, "orders", lambda: Instant(NOW))
    assert [each.at for each in log.commits()] == [NOW - 100, NOW]
    assert log.newest().note.freshness == NOW
    assert log.dated_ahead() == NOW + TEN_YEARS


def test_after_a_clock_went_back_an_hour_no_commit_is_older_than_the_one_before(tmp_path):
    place = dated(tmp_path, NOW, NOW + 3600, NOW + 1, NOW + 2)
    log = TableLog(place, "orders", lambda: Instant(NOW + 2 * 3600))
    at = [each.at for each in log.commits()]
    assert at == sorted(at)
    assert log.newest().note.freshness == at[-1]


def test_machines_may_differ_a_little(tmp_path):
    place = dated(tmp_path, NOW, NOW + CLOCK_TOLERANCE - 1)
    log = TableLog(place, "orders", lambda: Instant(NOW))
    assert log.commits()[-1].at == NOW + CLOCK_TOLERANCE - 1
    assert log.dated_ahead() is None
