"""The command line as a function, and a project to use it on. Nothing here starts a JVM."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from springhouse.cli import main


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
