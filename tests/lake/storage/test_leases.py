"""Work in progress holds a lease, in the storage's time; the lease dies with its owner."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from springhouse.lake.storage import leases as module
from springhouse.lake.storage.leases import EXPIRES_SECONDS, MARGIN_SECONDS, Leases, hold_in
from springhouse.lake.storage.storage import Storage

HOLDER = """
import sys, time
from springhouse.lake.storage.leases import Leases
from springhouse.lake.storage.storage import Storage
with Leases(Storage.at(sys.argv[1])).hold():
    print("held", flush=True)
    time.sleep(600)
"""


class Clock:
    """A clock that advances when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def place(tmp_path: Path) -> Storage:
    return Storage.at(str(tmp_path))


def files(place: Storage) -> list[Path]:
    return sorted((Path(place.root) / "leases").glob("*.json"))


def test_nobody_writes(place: Storage) -> None:
    assert Leases(place).oldest_start() is None


def test_a_start_is_seen_by_others_and_goes_with_the_release(place: Storage) -> None:
    ours, theirs = Leases(place), Leases(place)
    before = theirs.storage_now()
    with ours.hold():
        start = theirs.oldest_start()
        assert start is not None
        assert start <= before
        assert start > before - 2 * MARGIN_SECONDS
        assert ours.oldest_start() is not None
    ours.release()
    assert theirs.oldest_start() is None
    assert files(place) == []


def test_the_oldest_of_overlapping_works_counts(place: Storage) -> None:
    clock = Clock()
    leases, other = Leases(place, steady=clock), Leases(place)
    with leases.hold():
        first = other.oldest_start()
        clock.now += 5_000
        with leases.hold():
            leases.renew_if_late()
            assert other.oldest_start() == pytest.approx(first, abs=1)
    leases.release()


def test_a_lease_dies_with_a_process_that_is_killed(place: Storage) -> None:
    arguments = [sys.executable, "-c", HOLDER, place.root]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert Leases(place).oldest_start() is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert Leases(place).oldest_start() is None
    assert len(files(place)) == 1
    # The file of an old lease is deleted.
    old = time.time() - EXPIRES_SECONDS - 1
    os.utime(files(place)[0], (old, old))
    assert len(Leases(place).remove_dead()) == 1
    assert files(place) == []


def test_a_lease_of_another_machine_lives_as_long_as_it_is_renewed(place: Storage) -> None:
    folder = Path(place.root) / "leases"
    folder.mkdir()
    told = {"format": 1, "host": "elsewhere", "pid": 1, "born": "1", "start": 123.0}
    (folder / "a.json").write_text(json.dumps(told))
    assert Leases(place).oldest_start() == 123.0
    old = time.time() - EXPIRES_SECONDS - 1
    os.utime(folder / "a.json", (old, old))
    assert Leases(place).oldest_start() is None


def test_a_lease_that_nobody_can_read_keeps_everything(place: Storage) -> None:
    folder = Path(place.root) / "leases"
    folder.mkdir()
    (folder / "half.json").write_text('{"format": 1, "ho')
    assert Leases(place).oldest_start() == 0.0


def test_a_process_that_slept_renews_before_it_commits(place: Storage) -> None:
    clock = Clock()
    leases = Leases(place, steady=clock)
    with leases.hold():
        (file,) = files(place)
        os.utime(file, (1, 1))
        leases.renew_if_late()
        assert file.stat().st_mtime == 1  # the lease believes that it renewed the file a moment ago
        clock.now += 5_000
        leases.renew_if_late()
        assert file.stat().st_mtime > 1
    leases.release()


def test_a_lease_is_renewed_after_the_machine_slept(
    place: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = Leases(place)
    with leases.hold():
        (file,) = files(place)
        os.utime(file, (1, 1))
        # The monotonic clock stands still while a machine sleeps; this clock does not.
        now = time.clock_gettime
        monkeypatch.setattr(time, "clock_gettime", lambda which: now(which) + 5_000)
        leases.renew_if_late()
        assert file.stat().st_mtime > 1
    leases.release()


def test_work_on_a_table_alone_holds_its_lease_there(place: Storage) -> None:
    table = place.inside("t")
    with hold_in([table]):
        assert Leases(table, module.OF_TABLE).oldest_start() is not None
    assert Leases(table, module.OF_TABLE).oldest_start() is None
