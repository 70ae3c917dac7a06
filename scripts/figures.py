"""Measure the code: lines per room, homonyms, complexity, dead and duplicated code, as Markdown.

    python scripts/figures.py before=TREE after=. > figures

Each argument names a checkout. radon, vulture and pylint come from the package index, by uv.
"""

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

UV = Path(sys.executable).with_name("uv")
LONG = 500
ROOMS = (
    *("cli", "simulate", "warehouse", "lake", "loop", "planner", "refresh", "views", "flows"),
    *("cluster", "project"),
)
FORMER = {"warehouse": "house"}


def tool(*arguments: str, folder: Path) -> str:
    return subprocess.run(
        [UV, "tool", "run", *arguments], cwd=folder, capture_output=True, text=True, check=False
    ).stdout


def files_of(tree: Path) -> list[Path]:
    source = tree / "src" / "springhouse"
    return [file for file in sorted(source.rglob("*.py")) if not file.name.endswith("_pb2.py")]


def lines_of(files: list[Path]) -> int:
    return sum(len(file.read_text().splitlines()) for file in files)


def room_lines(tree: Path, room: str) -> int:
    source = tree / "src" / "springhouse"
    folder = source / room if (source / room).exists() else source / FORMER.get(room, room)
    return lines_of([file for file in files_of(tree) if folder in file.parents])


def homonyms(tree: Path) -> tuple[int, int]:
    files = Counter(file.name for file in files_of(tree))
    del files["__init__.py"], files["run.py"]
    classes = Counter(
        node.name.lstrip("_")
        for file in files_of(tree)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    return sum(n > 1 for n in files.values()), sum(n > 1 for n in classes.values())


def complexity(tree: Path) -> tuple[float, int, int]:
    """The mean, the greatest, and how many functions are above 15."""
    told = json.loads(tool("radon", "cc", "-j", "src/springhouse", folder=tree))
    parts = [block for blocks in told.values() if isinstance(blocks, list) for block in blocks]
    functions = [block["complexity"] for block in parts if block["type"] != "class"]
    return (
        sum(functions) / len(functions),
        max(functions),
        sum(value > 15 for value in functions),
    )


def dead(tree: Path) -> int:
    """Names that nothing in the package uses; some are used by users, tests and frameworks."""
    return len(
        tool(
            "vulture", "src", "--min-confidence", "60", "--exclude", "*_pb2*", folder=tree
        ).splitlines()
    )


def duplicated(tree: Path) -> int:
    """Lines that stand twice, six or more at a time, without imports, comments and docstrings."""
    told = tool(
        *("pylint", "--disable=all", "--enable=R0801", "--min-similarity-lines=6"),
        *("--ignore-imports=y", "--ignore-docstrings=y", "--ignore-comments=y"),
        *("--ignore-signatures=y", "--output-format=json", "src/springhouse"),
        folder=tree,
    )
    pieces = [entry["message"].splitlines() for entry in json.loads(told or "[]")]
    return sum(
        len([line for line in piece[1:] if line.strip() and not line.startswith("==")])
        for piece in pieces
    )


def main(trees: dict[str, Path]) -> None:
    rows: list[list[str]] = []
    for tree in trees.values():
        files = files_of(tree)
        same_files, same_classes = homonyms(tree)
        mean, greatest, above = complexity(tree)
        lengths = [lines_of([file]) for file in files]
        rows.append(
            [
                str(lines_of(files)),
                *(str(room_lines(tree, room)) for room in ROOMS),
                str(len(files)),
                str(max(Counter(file.parent for file in files).values())),
                str(sum(length > LONG for length in lengths)),
                str(same_files),
                str(same_classes),
                f"{mean:.1f}",
                str(greatest),
                str(above),
                str(dead(tree)),
                str(duplicated(tree)),
            ]
        )
    names = [
        "lines of `src`",
        *(f"… in `{room}/`" for room in ROOMS),
        "files",
        "files in the fullest folder",
        f"files of more than {LONG} lines",
        "file names that occur twice",
        "class names that occur twice",
        "mean complexity of a function (radon)",
        "greatest complexity",
        "functions above 15",
        "names that vulture thinks unused",
        "duplicated lines (pylint, six or more in a row)",
    ]
    print("| | " + " | ".join(trees) + " |")
    print("|---|" + "---:|" * len(trees))
    for name, *values in zip(names, *rows, strict=True):
        print(f"| {name} | " + " | ".join(values) + " |")


if __name__ == "__main__":
    main({name: Path(path).resolve() for name, _, path in (a.partition("=") for a in sys.argv[1:])})
