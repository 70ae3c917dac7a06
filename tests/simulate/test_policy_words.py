"""Policies in words."""

import pytest

from springhouse.errors import SpringhouseError
from springhouse.refresh.policy import EdfPartitioned, Global, Policy
from springhouse.refresh.ranking.basic import Basic
from springhouse.refresh.ranking.chopping import Chopping
from springhouse.simulate.policy_words import FIFO, read_policy


@pytest.mark.parametrize("policy", [Policy(), FIFO, Policy(Basic.EDF, EdfPartitioned(True))])
def test_what_a_policy_says_of_itself_can_be_read(policy):
    assert str(read_policy(str(policy))) == str(policy)


def test_what_is_left_out_is_as_usual():
    usual = Policy(Basic.EDF, Global())
    assert read_policy("chopping 5", usual) == Policy(Basic.EDF, Global(), chopping=Chopping(5.0))
    assert not read_policy("promises ignore", usual).heed_promises


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "the policy is empty"),
        ("fastest", '"fastest" is none of: edf, '),
        ("tracks many", '"many" is none of: global'),
        ("chopping 0.5", "at least 1"),
        ("promises maybe", '"maybe" is not one of: heed, ignore'),
    ],
)
def test_words_that_mean_nothing(words, problem):
    with pytest.raises(SpringhouseError, match=problem):
        read_policy(words)
