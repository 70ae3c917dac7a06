"""Every test that the documentation names exists under that name."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
NAMED = re.compile(r"`(?:tests/)?(?P<file>…(?=::)|[\w/]*test_\w+\.py)(?:::(?P<test>test_\w+))?`")


def named_tests(page: Path) -> Iterator[tuple[str, str | None]]:
    """The files and tests that a page names; `…` stands for the file before it in the line."""
    for line in page.read_text().splitlines():
        file = ""
        for match in NAMED.finditer(line):
            file = file if match["file"] == "…" else match["file"]
            yield file, match["test"]


@cache
def names_in(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    missing = [
        f"{file}::{test}"
        for file, test in named_tests(page)
        if not (TESTS / file).is_file() or (test and test not in names_in(TESTS / file))
    ]
    assert missing == []


def test_no_name_of_a_test_is_written_in_another_way() -> None:
    page = ROOT / "docs" / "nothing-silent.md"
    written = re.findall(r"`[^`]*test_[^`]*`", page.read_text())
    assert [name for name in written if not NAMED.fullmatch(name)] == []
