"""The process's working folder: users of the same folder share it, and the last one restores it."""

import threading
from pathlib import Path

import pytest

from springhouse.lake.spark.working_folder import working_in


def test_the_folder_is_given_back_also_after_an_error(tmp_path: Path) -> None:
    before = Path.cwd()

    def fail() -> None:
        with working_in(tmp_path):
            raise RuntimeError(Path.cwd())

    with pytest.raises(RuntimeError, match=str(tmp_path)):
        fail()
    assert Path.cwd() == before


def test_a_function_may_read_a_view_that_is_a_function(tmp_path: Path) -> None:
    with working_in(tmp_path):
        with working_in(tmp_path):
            pass
        assert Path.cwd() == tmp_path


def test_no_folder_is_no_change() -> None:
    before = Path.cwd()
    with working_in(None):
        assert Path.cwd() == before


def test_one_folder_is_shared_and_another_one_waits(tmp_path: Path) -> None:
    before = Path.cwd()
    other = tmp_path / "other"
    other.mkdir()
    shared, waited = threading.Event(), threading.Event()
    seen: list[Path] = []

    def same() -> None:
        with working_in(tmp_path):
            shared.set()

    def elsewhere() -> None:
        with working_in(other):
            seen.append(Path.cwd())
            waited.set()

    threads = [threading.Thread(target=same), threading.Thread(target=elsewhere)]
    with working_in(tmp_path):
        for thread in threads:
            thread.start()
        assert shared.wait(10)
        assert not waited.is_set()
        assert Path.cwd() == tmp_path
    for thread in threads:
        thread.join(10)
    assert seen == [other]
    assert Path.cwd() == before
