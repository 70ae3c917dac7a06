"""When is a failed refresh tried again?"""

from springhouse.refresh.retry import LONGEST, Failure, add_failure
from springhouse.units import Instant, Seconds


def waits(times: int) -> list[float]:
    found, last = [], None
    for at in range(times):
        last = add_failure(last, "no disk", Instant(float(at)), Seconds(2.0))
        found.append(last.retry_at - at)
    return found


def test_the_wait_doubles_up_to_a_limit() -> None:
    assert waits(4) == [2.0, 4.0, 8.0, 16.0]
    assert waits(50)[-1] == LONGEST


def test_a_failure_remembers_the_last_problem_and_how_often() -> None:
    first = add_failure(None, "no disk", Instant(1.0), Seconds(2.0))
    assert add_failure(first, "no memory", Instant(5.0), Seconds(2.0)) == Failure(
        "no memory", 2, Instant(5.0), Instant(9.0)
    )
