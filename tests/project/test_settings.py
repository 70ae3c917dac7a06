import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from springhouse.cluster.timing import Timing
from springhouse.errors import DeclarationError
from springhouse.flows.flow_settings import QUEUE_PACKS, Settings
from springhouse.project.declarations.declaration import Place
from springhouse.project.settings import (
    ELECTION_SECONDS,
    ENVIRONMENT,
    FLOW_POLICY,
    FLOW_QUEUE_PACKS,
    HEARTBEAT_SECONDS,
    KEEP_ALIVE_SECONDS,
    LATENESS,
    PERIOD,
    PRIORITY,
    SETTINGS,
    SINK,
    TRACKS,
    Setting,
    check_setting,
    find_setting,
)
from springhouse.project.table_properties import Properties

SOURCE = Path(__file__).parents[2] / "src" / "springhouse"

HERE = Place("spark-pipeline.yml", 4)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("springhouse.tracks", "2"),
        ("springhouse.retention", "7 days"),
        ("springhouse.retry.seconds", "0.5"),
        ("springhouse.spark.remote", "sc://localhost"),
        ("spark.sql.shuffle.partitions", "anything is Spark's business"),
    ],
)
def test_a_known_key_with_a_fitting_value_is_fine(key: str, value: str) -> None:
    assert check_setting(key, value, HERE) is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "springhouse.track",
            "2",
            (
                'spark-pipeline.yml:4: unknown configuration key "springhouse.track"\n'
                '  hint: Did you mean "springhouse.tracks"?'
            ),
        ),
        (
            "springhouse.tracks",
            "many",
            (
                'spark-pipeline.yml:4: "springhouse.tracks" is "many", which is not a '
                "whole number of 1 or more\n"
                "  hint: How many refreshes may run at once."
            ),
        ),
        (
            "springhouse.retention",
            "long",
            (
                'spark-pipeline.yml:4: "springhouse.retention" is "long", which is not a duration\n'
                '  hint: Write it like "5 minutes", "90s", "1h 30m", "1 day" or "INTERVAL 2 HOURS".'
            ),
        ),
    ],
)
def test_what_is_wrong_is_said(key: str, value: str, message: str) -> None:
    assert str(check_setting(key, value, HERE)) == message


def test_a_key_of_a_table_is_refused_in_a_project_and_the_hint_says_where_it_belongs() -> None:
    assert str(check_setting("springhouse.refresh", "full", HERE)) == (
        'spark-pipeline.yml:4: "springhouse.refresh" belongs on a materialized view, not in '
        "`configuration:`\n"
        "  hint: Write it into TBLPROPERTIES: 'springhouse.refresh' = '…'."
    )


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: each.key)
def test_a_setting_is_declared_completely(setting: Setting[object]) -> None:
    assert setting.key.startswith("springhouse.")
    assert setting.meaning.endswith(".")
    assert setting.holders
    # Either a default that its own type accepts, or a text that describes the behaviour without it.
    assert (setting.default is None) == bool(setting.unset)
    if setting.default is not None:
        assert setting.type.accepts(setting.default)
    assert find_setting(setting.key) in (setting, SINK)  # Options of sinks share their prefix.


def test_no_key_is_declared_twice() -> None:
    assert len({each.key for each in SETTINGS}) == len(SETTINGS)


def test_a_wrong_value_that_nobody_checked_is_an_error_when_it_is_read() -> None:
    with pytest.raises(DeclarationError, match='"many", which is not a whole number of 1 or more'):
        TRACKS.read({"springhouse.tracks": "many"})
    assert TRACKS.read({}) == 2


def test_defaults_are_those_of_the_rooms_that_use_them() -> None:
    timing = Timing()
    assert HEARTBEAT_SECONDS.read({}) == timing.heartbeat_seconds
    assert ELECTION_SECONDS.read({}) == timing.election_seconds
    assert KEEP_ALIVE_SECONDS.read({}) == timing.keep_alive_seconds
    assert FLOW_QUEUE_PACKS.read({}) == QUEUE_PACKS
    assert FLOW_POLICY.read({}) == Settings().policy.value
    assert PERIOD.read({}) == Properties().period_seconds
    assert LATENESS.read({}) == Properties().lateness_seconds
    assert PRIORITY.read({}) == Properties().promise.priority


def _literals(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_every_environment_variable_that_is_read_is_listed() -> None:
    # PySpark's own switch, and values of Spark's settings.
    others = {"SPARK_CONNECT_MODE_ENABLED", "TIMESTAMP_MICROS", "NO_CODEGEN"}
    read = {
        literal
        for file in SOURCE.rglob("*.py")
        if "os.environ" in file.read_text(encoding="utf-8")
        for literal in _literals(file)
        if re.fullmatch(r"_?[A-Z]+(_[A-Z0-9]+)+|PYTHONPATH", literal)
    }
    assert read - others == set(ENVIRONMENT)


def test_every_key_that_the_code_names_is_declared() -> None:
    """A key outside of `SETTINGS` would be neither checked nor on the reference page."""
    declared = {each.key for each in SETTINGS}
    rooms = {each.name for each in SOURCE.iterdir()} | {"sources", "sinks", "kafka"}
    for file in SOURCE.rglob("*.py"):
        loggers = re.findall(r'getLogger\("([^"]+)"\)', file.read_text(encoding="utf-8"))
        for literal in set(_literals(file)) - set(loggers):
            key = re.fullmatch(r"springhouse\.([a-z]+)[a-z.-]*", literal)
            if key and key[1] not in rooms and f"{key[1]}.py" not in rooms:
                assert literal in declared, f"{file}: {literal}"
