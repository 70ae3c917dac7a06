"""A problem that repeats with every heartbeat is logged only now and then."""

from springhouse.cluster.log_throttle import LogThrottle


def test_each_kind_is_told_at_first_and_then_once_a_minute():
    throttle = LogThrottle()
    lines = [throttle.throttle("b", "b is away", now) for now in (0, 1, 2, 59, 60, 61)]
    again = "b is away (3 more times in the meantime)"
    assert lines == ["b is away", None, None, None, again, None]
    assert throttle.throttle("c", "c is away", 61) == "c is away"


def test_made_up_kinds_do_not_fill_the_memory():
    throttle = LogThrottle()
    for number in range(5000):
        throttle.throttle(number, "", 0)
    assert throttle.throttle(1, "again", 1) == "again"
