"""How a cluster begins: nobody votes before it knows that nothing is forgotten."""

from springhouse.cluster.founding import FOUNDED, Founding, new_number
from springhouse.cluster.messages import Introduced
from springhouse.cluster.state import State
from springhouse.units import Dice


def answer(disk, to=1, voters=None):
    return Introduced(disk, to, voters)


def test_all_disks_are_empty():
    founding = Founding("a", ["b", "c"])
    assert founding.answered("b", answer(2), 1) is None
    assert founding.answered("c", answer(3), 1) == State(FOUNDED, {"a": 1, "b": 2, "c": 3})


def test_an_answer_to_another_disk_does_not_count():
    founding = Founding("a", ["b"])
    assert founding.answered("b", answer(2, to=9), 1) is None


def test_one_that_remembers_is_enough_to_wait_for_a_leader():
    founding = Founding("a", ["b", "c"])
    founding.answered("b", answer(2), 1)
    assert founding.answered("c", answer(3, voters={"b": 2, "c": 3}), 1) is None
    assert founding.answered("c", answer(3), 1) is None, "b has to be asked again"


def test_who_was_counted_on_may_begin_too():
    voters = {"a": 1, "b": 2}
    assert Founding("a", ["b"]).answered("b", answer(2, 1, voters), 1) == State(FOUNDED, voters)
    assert Founding("a", ["b"]).answered("b", answer(2, 8, voters), 8) is None, "it forgot"


def test_a_node_met_with_two_disks_makes_all_answers_worthless():
    founding = Founding("a", ["b", "c"])
    founding.answered("b", answer(2), 1)
    assert not founding.contradicts("b", 2)
    assert founding.contradicts("b", 5)
    assert founding.answered("c", answer(3), 1) is None


def test_alone_there_is_nobody_to_ask():
    assert Founding("a", []).complete(1) == State(FOUNDED, {"a": 1})


def test_disks_have_different_numbers():
    dice = Dice(1)
    assert len({new_number(dice) for _ in range(100)}) == 100
