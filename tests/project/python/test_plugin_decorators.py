from collections.abc import Callable, Mapping

import pytest

from springhouse.errors import DeclarationError
from springhouse.project.declarations.declaration import Place, Project
from springhouse.project.python.plugin_decorators import collect_plugins, source

FILE = """\
from springhouse.project.python.plugin_decorators import source

@source("read_weather")
class Weather:
    def __init__(self, city):
        pass
    def latest(self):
        pass
    def read(self, spark, ranges):
        pass
"""


def test_outside_a_load_the_decorator_only_marks_the_class() -> None:
    @source("Weather")
    class Weather:
        pass

    assert Weather.springhouse_source == "weather"  # type: ignore[attr-defined]


def test_inside_a_load_the_class_is_collected_with_its_place() -> None:
    with collect_plugins(lambda file, line: Place("here", 7)) as plugins:

        @source("weather")
        class Weather:
            pass

    assert [(p.name, p.cls, p.place) for p in plugins] == [("weather", Weather, Place("here", 7))]


def test_a_name_must_be_usable_in_sql() -> None:
    with pytest.raises(DeclarationError, match="'my source' can't name a source"):
        source("my source")


def test_a_project_brings_its_own_sources(
    project: Callable[[Mapping[str, str]], Project],
) -> None:
    loaded = project(
        {
            "all/w.py": FILE,
            "all/a.sql": "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_weather('Oslo')",
        }
    )
    assert [cls.__name__ for cls in loaded.sources.values()] == ["Weather"]


def test_a_name_that_is_taken_is_an_error(errors: Callable[[Mapping[str, str]], list[str]]) -> None:
    taken = FILE.replace("read_weather", "read_files")
    assert errors({"all/a.py": FILE, "all/b.py": FILE, "all/c.py": taken}) == [
        (
            'all/b.py:3: the source "read_weather" is registered twice\n'
            "  hint: The first is at all/a.py:3."
        ),
        'all/c.py:3: the source "read_files" is built in\n  hint: Choose another name.',
    ]
