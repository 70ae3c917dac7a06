"""Paper 003, section 4.4.2: the file holds every event once, whatever happens to its writer."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springhouse.errors import SinkError
from springhouse.lake.sinks.positioned_file import PositionedFile, read_checkpoints

SOURCE = Path(__file__).parents[3] / "src"


def event(offset: int) -> str:
    """The source: the same offset always gives the same event."""
    return f"event {offset} " + "x" * (offset % 7)


def replay(file: PositionedFile, end: int, step: int = 3) -> None:
    """Write the missing events up to `end`, as a processor would."""
    while file.offset < end:
        start, stop = file.offset, min(file.offset + step, end)
        file.write([event(o) for o in range(start, stop)], start, stop)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_an_event_is_a_line_and_a_write_is_a_checkpoint(tmp_path: Path) -> None:
    with PositionedFile(tmp_path / "5.txt") as file:
        file.write(["a", "b"], 0, 2)
        file.write(["long"], 2, 3)
    assert (tmp_path / "5.txt").read_text() == "a\nb\nlong\n"
    assert read_checkpoints((tmp_path / "5.txt.checkpoints").read_bytes()) == [(2, 4), (3, 9)]


def test_it_goes_on_where_the_last_process_stopped(tmp_path: Path) -> None:
    for end in (4, 4, 11):
        with PositionedFile(tmp_path / "f") as file:
            replay(file, end)
    assert lines(tmp_path / "f") == [event(o) for o in range(11)]


@settings(max_examples=40)
@given(st.data())
def test_a_crash_at_any_byte_loses_nothing_and_doubles_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("sink") / "f"
    log = path.with_name("f.checkpoints")
    with PositionedFile(path) as file:
        replay(file, data.draw(st.integers(0, 20)))
    # After a power cut, a machine may keep any beginning of either file.
    for each in (path, log):
        os.truncate(each, data.draw(st.integers(0, each.stat().st_size)))
    with PositionedFile(path) as file:
        replay(file, 20)
    assert lines(path) == [event(o) for o in range(20)]


def test_a_half_written_event_is_cut_off_before_the_next_one(tmp_path: Path) -> None:
    with PositionedFile(tmp_path / "f") as file:
        replay(file, 3)
    with (tmp_path / "f").open("a") as torn:
        torn.write("event 3, whole, but without its checkpoint\nevent 4, ha")
    with PositionedFile(tmp_path / "f") as file:
        assert file.offset == 3
        assert lines(tmp_path / "f") == [event(o) for o in range(3)]


def test_a_cluster_that_agreed_on_less_takes_the_file_back_to_that(tmp_path: Path) -> None:
    with PositionedFile(tmp_path / "f") as file:
        replay(file, 9)
        assert file.resume(7) == 6, "6 is the newest checkpoint that is not above 7"
        assert lines(tmp_path / "f") == [event(o) for o in range(6)]
        assert file.resume(100) == 6, "what is not there can't be resumed: the source replays it"
        replay(file, 12)
    assert lines(tmp_path / "f") == [event(o) for o in range(12)]


def test_a_second_writer_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first = PositionedFile(tmp_path / "f")
    with pytest.raises(SinkError, match="another process writes this file"):
        PositionedFile(tmp_path / "f")
    first.close()
    PositionedFile(tmp_path / "f").close()


def test_offsets_that_do_not_follow_are_refused(tmp_path: Path) -> None:
    with PositionedFile(tmp_path / "f") as file:
        replay(file, 3)
        with pytest.raises(SinkError, match="offsets 5 to 6 do not follow 3"):
            file.write(["x"], 5, 6)
        with pytest.raises(SinkError, match="line break"):
            file.write(["two\nlines"], 3, 4)
    assert lines(tmp_path / "f") == [event(o) for o in range(3)]


def test_old_checkpoints_are_forgotten_and_the_file_is_not(tmp_path: Path) -> None:
    with PositionedFile(tmp_path / "f", most_checkpoints=20) as file:
        replay(file, 60, step=1)
        assert file.resume(10) == 0, "too long ago: the whole file is written again"
        replay(file, 60, step=1)
    assert len(read_checkpoints((tmp_path / "f.checkpoints").read_bytes())) <= 20
    with PositionedFile(tmp_path / "f") as file:
        assert file.offset == 60
    assert lines(tmp_path / "f") == [event(o) for o in range(60)]


def test_a_killed_process_leaves_every_event_once(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from springhouse.lake.sinks.positioned_file import PositionedFile\n"
        "file = PositionedFile(Path(sys.argv[1]))\n"
        "while True:\n"
        "    o = file.offset\n"
        "    file.write([f'event {n}' for n in range(o, o + 50)], o, o + 50)\n"
        "    print(o, flush=True)\n"
    )
    path = tmp_path / "f"
    for _ in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", program, str(path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        assert writer.stdout is not None
        for _ in range(20):
            assert writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        writer.wait(timeout=20)
        writer.stdout.close()
    with PositionedFile(path) as file:
        assert file.offset >= 4 * 20 * 50
        assert lines(path) == [f"event {n}" for n in range(file.offset)]
