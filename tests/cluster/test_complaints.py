"""Trouble that comes with every heartbeat is told now and then."""

from springhouse.cluster.complaints import LogThrottle


def test_each_kind_is_told_at_first_and_then_once_a_minute():
    complaints = LogThrottle()
    told = [complaints.worth_telling("b", "b is away", now) for now in (0, 1, 2, 59, 60, 61)]
    assert told == ["b is away", None, None, None, "b is away (3 times more since last told)", None]
    assert complaints.worth_telling("c", "c is away", 61) == "c is away"


def test_made_up_kinds_do_not_fill_the_memory():
    complaints = LogThrottle()
    for number in range(5000):
        complaints.worth_telling(number, "", 0)
    assert complaints.worth_telling(1, "again", 1) == "again"
