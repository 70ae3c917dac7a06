"""One word stands for one thing: no two files and no two classes of the package share a name."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "springhouse"
# Each room may have an `__init__.py`, and a `run.py`: its shell.
SHARED = {"__init__.py", "run.py"}


def test_no_two_files_have_one_name():
    places: dict[str, list[str]] = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        places[file.name].append(str(file.relative_to(PACKAGE)))
    assert {name: at for name, at in places.items() if len(at) > 1 and name not in SHARED} == {}


def test_no_two_classes_have_one_name():
    places: dict[str, list[str]] = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(str(file.relative_to(PACKAGE)))
    assert {name: at for name, at in places.items() if len(at) > 1} == {}
