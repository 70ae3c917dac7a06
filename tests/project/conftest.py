"""A project in a temporary folder, from the text of its files."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from springhouse.errors import ProjectErrors
from springhouse.project.declarations.declaration import Project
from springhouse.project.load import load

PIPELINE = "name: shop\nstorage: storage\nlibraries:\n  - glob:\n      include: all/**\n"

Files = str | Mapping[str, str]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Files], Path]:
    """Write files into a project; a bare text is its one SQL file, `all/a.sql`."""

    def write_files(files: Files) -> Path:
        named = {"all/a.sql": files} if isinstance(files, str) else files
        for name, text in {"spark-pipeline.yml": PIPELINE, **named}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write_files


@pytest.fixture
def project(write: Callable[[Files], Path]) -> Callable[[Files], Project]:
    """Load a project from the text of its files."""
    return lambda files: load(write(files))


@pytest.fixture
def errors(write: Callable[[Files], Path]) -> Callable[[Files], list[str]]:
    """All errors of a project; an empty list if it has none."""

    def errors_of(files: Files) -> list[str]:
        try:
            load(write(files))
        except ProjectErrors as found:
            return [str(error) for error in found.errors]
        return []

    return errors_of
