"""Every command block of the documentation runs, and prints the text that the page shows.

A test follows a page from top to bottom, in a folder of its own. A block with `title="path"` is a
file that the reader writes. A block of the language `console` holds commands behind `$ `, each with
its output; `…` stands for any text. Times, durations and widths of columns may differ. A command
exits with 0 unless the comment above its block says `exits with N`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pages import ROOT, SITE, Block, all_pages, blocks_of
from patience import patience
from springhouse.cli import main

PAGES = [page for page in all_pages() if any(b.language == "console" for b in blocks_of(page))]


@dataclass(frozen=True)
class Command:
    text: str
    expected: tuple[str, ...]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_do_what_it_says(
    page: Path,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for block in blocks_of(page):
        if block.title:
            file = Path(block.title)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        if block.language == "console":
            code = int((re.search(r"exits with (\d+)", block.comment or "") or [0, 0])[1])
            for command in _commands(block):
                ended, printed = _run(command.text, capfd)
                told = f"{block.where}: $ {command.text}\n{printed}"
                assert ended == code, told
                assert _matches(command.expected, printed), told


def _commands(block: Block) -> Iterator[Command]:
    lines = block.text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    assert starts[:1] == [0], f"{block.where}: a console block begins with `$ `"
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield Command(lines[start][2:], tuple(lines[start + 1 : end]))


def _run(text: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run the command as a shell would, but with `springhouse` in this process and its Spark."""
    words = shlex.split(text)
    if words[0] == "cd":
        os.chdir(words[1])
        return 0, ""
    # A reader has activated the virtual environment: its `python` comes first.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if shutil.which(words[0], path=path) is None and words[0] != "springhouse":
        pytest.skip(f"{words[0]} is not on this machine")
    capfd.readouterr()
    if words[0] == "springhouse" and not {"|", ">", "&&", "&"} & set(words):
        with pytest.raises(SystemExit) as left:
            main(tuple(words[1:]))
        return int(left.value.code or 0), "".join(capfd.readouterr())
    done = subprocess.run(
        text,
        shell=True,
        capture_output=True,
        text=True,
        timeout=patience(120),
        check=False,
        env={**os.environ, "PATH": path},
    )
    return done.returncode, done.stdout + done.stderr


def _matches(expected: tuple[str, ...], printed: str) -> bool:
    """Whether the output equals the lines on the page, apart from times and blanks."""
    if not expected:
        return True
    lines = [
        r"(?:[^\n]*\n)*?"
        if line.strip() == "…"
        else re.escape(_alike(line)).replace("…", r"[^\n]*") + r"\n"
        for line in expected
    ]
    return (
        re.fullmatch("".join(lines), "".join(f"{_alike(line)}\n" for line in printed.splitlines()))
        is not None
    )


def _alike(line: str) -> str:
    without = re.sub(r"\d\d:\d\d:\d\d", "12:00:00", line)
    without = re.sub(r"(?<![\w.])\d+(?:\.\d+)? (?:ms|s|min)\b", "1 s", without)
    return re.sub(r"\s+", " ", without).strip()


def test_a_block_that_looks_like_commands_runs_or_says_where_it_is_tested():
    """`sh` marks commands that another test runs; the comment above the block names that test."""
    for page in [page for page in all_pages() if SITE in page.parents or page.parent == ROOT]:
        for block in blocks_of(page):
            if block.language in {"", "text"}:
                first = block.text.split(" ", 1)[0]
                assert first not in {"$", "springhouse", "make", "sh", "python"}, block.where
            if block.language in {"sh", "bash", "shell"}:
                named = re.search(r"tested (?:by|in) `?([\w./]+)", block.comment or "")
                assert named, f"{block.where}: use `console`, or say which test runs it"
                assert named[1] == "CI" or (ROOT / named[1]).exists(), block.where
