from collections.abc import Callable
from pathlib import Path

import pytest

from springhouse.lake.sources.source import SourceContext
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant


@pytest.fixture
def context(tmp_path: Path) -> SourceContext:
    return SourceContext(
        flow="orders/read_files",
        folder=tmp_path,
        storage=Storage.at("log", relative_to=tmp_path),
        now=lambda: Instant(1_000.0),
    )


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a complete file into the project's folder."""

    def write(name: str, text: str = "{}\n") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write
