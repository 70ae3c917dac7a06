"""The command line as a function, and a project to use it on. Nothing here starts a JVM."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.cli import main
from springhouse.lake.delta.commits import ensure
from springhouse.lake.delta.note import Note
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant


@dataclass(frozen=True)
class Answer:
    code: int | str | None
    out: str
    err: str


Springhouse = Callable[..., Answer]


@pytest.fixture
def springhouse(capsys: pytest.CaptureFixture[str]) -> Springhouse:
    """Runs a command: `springhouse("check", "-p", folder)`."""

    def call(*arguments: object) -> Answer:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Answer(left.value.code, out, err)

    return call


@pytest.fixture
def shop(springhouse: Springhouse, tmp_path: Path) -> Path:
    """The project that `springhouse init` makes."""
    folder = tmp_path / "shop"
    assert springhouse("init", folder).code == 0
    return folder


@pytest.fixture
def idle_shop(shop: Path) -> Path:
    """A project with one existing table and an empty source: nothing needs Spark."""
    (shop / "transformations" / "revenue_by_country.sql").unlink()
    for file in (shop / "data" / "orders").iterdir():
        file.unlink()
    place = Storage.at(str(shop / "storage" / "tables" / "orders"))
    note = Note(kind="schema", at=Instant(1.0), channel=True)
    ensure(place, StructType([StructField("id", LongType())]), note)
    return shop
