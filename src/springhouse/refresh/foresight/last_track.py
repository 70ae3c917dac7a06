"""Is a long refresh worth the last free track?

While the long refresh runs, no other job can start until another track is free, `B` seconds from
now. Meanwhile the staleness of a table of priority p adds up to `p × B² / 2`, whether its data
comes often or seldom. If the long refresh waits for that other track instead, only its own
freshness delta waits, for B seconds. So it takes the last track only if

    p_J × ΔF_J × B  >=  Σ p_K × B² / 2        over all K whose refreshes are shorter than B

Lookahead asks the same question (paper 001, section 3.1), but only about the next job that comes.
This rule is about all of them. It keeps a track for short jobs, as Proportional does (section
3.2.3), even if there are too few tracks to give short jobs a whole one. The delta of the long job
grows while it waits, so it gets its turn.
Among equal jobs no job is shorter, so none waits.
"""

_UNKNOWN_SHARE = 0.25


def blocked_seconds(expected_seconds: float, remaining: float) -> float:
    """The seconds without a free track if a job starts while other jobs need `remaining` more."""
    return min(expected_seconds, remaining)


def remaining_seconds(began: float, expected_seconds: float, now: float) -> float:
    """The seconds that a running refresh still needs; an overdue refresh is guessed to need some.

    >>> remaining_seconds(began=100.0, expected_seconds=20.0, now=105.0)
    15.0
    >>> remaining_seconds(began=100.0, expected_seconds=20.0, now=140.0)
    10.0
    """
    return max(began + expected_seconds - now, _UNKNOWN_SHARE * (now - began))


def is_worth_it(benefit: float, blocked: float, weight_of_shorter: float) -> bool:
    """Whether a job with this benefit (priority times freshness delta) takes the last track.

    >>> is_worth_it(benefit=300.0, blocked=10.0, weight_of_shorter=100.0)
    False
    >>> is_worth_it(benefit=300.0, blocked=5.0, weight_of_shorter=100.0)
    True
    """
    return benefit >= weight_of_shorter * blocked / 2
