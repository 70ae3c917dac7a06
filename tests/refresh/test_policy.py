"""Are the words of `configuration:` understood?"""

import pytest

from springhouse.refresh.inheritance.priority import Inheritance, Rule
from springhouse.refresh.policy import (
    PAPER,
    EdfPartitioned,
    Global,
    Policy,
    Proportional,
    TrackRule,
    read_basic,
    read_chopping,
    read_inheritance,
    read_tracks,
)
from springhouse.refresh.ranking.basic import Basic
from springhouse.refresh.ranking.chopping import Chopping


def test_the_default_and_what_the_paper_found_best() -> None:
    assert str(Policy()) == (
        "whittle; tracks global; inheritance chain; chopping 3; last-track weigh"
    )
    assert str(PAPER) == (
        "max-benefit; tracks proportional all aggressive k=10; inheritance max; chopping 3 fixed; "
        "last-track take"
    )


TRACKS = [
    ("global", Global()),
    ("edf-partitioned", EdfPartitioned()),
    ("EDF-Partitioned aggressive", EdfPartitioned(aggressive=True)),
    ("proportional", Proportional()),
    ("proportional basic", Proportional(0, aggressive=False)),
    ("proportional all aggressive k=1", Proportional(k=1.0)),
    ("proportional 3 k=2.5", Proportional(3, False, 2.5)),
]


@pytest.mark.parametrize(("text", "rule"), TRACKS)
def test_tracks(text: str, rule: TrackRule) -> None:
    assert read_tracks(text) == rule
    assert read_tracks(str(rule)) == rule


def test_the_others() -> None:
    assert [read_basic(basic.value) for basic in Basic] == [*Basic]
    assert read_inheritance("sum") == Inheritance(Rule.SUM)
    assert read_inheritance("max-plus(3)") == Inheritance(Rule.MAX_PLUS, 3.0)
    assert read_chopping("none") is None
    assert read_chopping("2.5") == Chopping(2.5)
    assert read_chopping(str(PAPER.chopping)) == PAPER.chopping


@pytest.mark.parametrize("text", ["", "edf partitioned", "proportional some", "proportional k=0"])
def test_tracks_that_make_no_sense(text: str) -> None:
    with pytest.raises(ValueError, match="is none of"):
        read_tracks(text)


@pytest.mark.parametrize("text", ["0.5", "often", "-1", "inf", "nan"])
def test_chopping_that_makes_no_sense(text: str) -> None:
    with pytest.raises(ValueError, match="is none of"):
        read_chopping(text)


@pytest.mark.parametrize("text", ["min", "max(2)", "max-plus(1)", "max-plus(2"])
def test_inheritance_that_makes_no_sense(text: str) -> None:
    with pytest.raises(ValueError, match="is none of"):
        read_inheritance(text)


def test_an_unknown_algorithm_is_told_which_there_are() -> None:
    with pytest.raises(ValueError, match="round-robin"):
        read_basic("best")
