"""The walks of ARCHITECTURE.md name functions that exist at the named places."""

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from pages import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text()
PACKAGE = ROOT / "src" / "springhouse"
NAMED = re.compile(r"`(?P<name>[\w.]+)` \(`(?P<path>[\w/]+\.py)`\)")
STEP = re.compile(r"^\d+\. (?P<text>.*)$", re.MULTILINE)


def named() -> list[tuple[str, str]]:
    return sorted({(found["path"], found["name"]) for found in NAMED.finditer(PAGE)})


def parts() -> Iterator[tuple[str, str]]:
    """The parts of the walks: the text below a heading, until the next one."""
    for part in re.split(r"^#{2,3} ", PAGE, flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        if STEP.search(text):
            yield title, text


def defined(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{m.name}" for m in node.body if isinstance(m, ast.FunctionDef)}
    return names


@pytest.mark.parametrize(("path", "name"), named())
def test_a_function_of_a_walk_is_where_the_page_says(path: str, name: str):
    assert name in defined(PACKAGE / path)


def test_there_are_four_walks_with_their_steps():
    assert len(re.findall(r"^## Walk \d", PAGE, re.MULTILINE)) == 4
    assert len(named()) >= 40


@pytest.mark.parametrize(("title", "text"), list(parts()), ids=[title for title, _ in parts()])
def test_no_part_of_a_walk_returns_to_a_module_that_it_left(title: str, text: str):
    first = [NAMED.search(step["text"]) for step in STEP.finditer(text)]
    assert None not in first, f"{title}: each step begins with a function"
    modules = [path for path, _ in groupby(found["path"] for found in first if found)]
    assert len(modules) == len(set(modules))
