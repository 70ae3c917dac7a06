"""The scheduler understands all that `configuration:` accepts for it, and the other way round."""

from collections.abc import Callable

import pytest

from springhouse.project.declarations.declaration import Place
from springhouse.project.settings import SCHEDULER_BASIC, check_setting
from springhouse.refresh.policy import (
    Policy,
    read_basic,
    read_chopping,
    read_inheritance,
    read_tracks,
)
from springhouse.refresh.policy_settings import configured_policy
from springhouse.refresh.ranking.basic import Basic

READERS: dict[str, Callable[[str], object]] = {
    "basic": read_basic,
    "tracks": read_tracks,
    "inheritance": read_inheritance,
    "chopping": read_chopping,
}


def accepted(word: str, value: str) -> bool:
    return check_setting(f"springhouse.scheduler.{word}", value, Place("a.yml", 1)) is None


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *(("basic", each.value) for each in Basic),
        ("tracks", "global"),
        ("tracks", "edf-partitioned"),
        ("tracks", "edf-partitioned aggressive"),
        ("tracks", "proportional"),
        ("tracks", "proportional basic"),
        ("tracks", "proportional all aggressive k=2.5"),
        ("tracks", "proportional 3 k=10"),
        ("inheritance", "none"),
        ("inheritance", "max-plus"),
        ("inheritance", "max-plus(1.5)"),
        ("chopping", "none"),
        ("chopping", "1"),
        ("chopping", "2.5"),
        ("chopping", "3 fixed"),
        ("inheritance", "chain"),
    ],
)
def test_what_is_accepted_is_understood(word: str, value: str) -> None:
    assert accepted(word, value)
    READERS[word](value)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("basic", "best"),
        ("tracks", "proportional most"),
        ("tracks", "global aggressive"),
        ("inheritance", "min"),
        ("inheritance", "sum(2)"),
        ("inheritance", "max-plus(1)"),
        ("tracks", "proportional k=0"),
        ("chopping", "0.5"),
        ("chopping", "often"),
    ],
)
def test_what_is_refused_is_not_understood_either(word: str, value: str) -> None:
    assert not accepted(word, value)
    with pytest.raises(ValueError, match="is none of"):
        READERS[word](value)


def test_every_basic_algorithm_can_be_chosen() -> None:
    assert {*SCHEDULER_BASIC.type.words} == {each.value for each in Basic}


def test_the_default_policy_is_the_one_of_the_scheduler() -> None:
    assert configured_policy({}) == Policy()


def test_a_policy_from_a_projects_configuration() -> None:
    configured = {"springhouse.tracks": "2", "springhouse.scheduler.basic": "lookahead"}
    assert configured_policy(configured) == Policy(Basic.LOOKAHEAD)
