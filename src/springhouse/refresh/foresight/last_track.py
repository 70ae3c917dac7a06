"""Is a long refresh worth the last free track?

While it runs, nothing else can start until another track is free, `B` seconds from now. A table of
priority p then grows stale by p for every second of every second: `p × B² / 2` in all, whether its
data comes often or seldom (arrivals in B times the mean wait times the data of a period). Waiting
until the other track is free instead leaves the long job's own freshness delta waiting for B. So it
takes the last track only if

    p_J × ΔF_J × B  >=  Σ p_K × B² / 2        over all K whose refreshes are shorter than B

This is Lookahead's question (001 section 3.1), asked of all that may come and not of the next one,
and it keeps a track for short jobs as Proportional does (section 3.2.3), where there are too few
tracks to keep a whole one. The long job's delta grows while it waits, so that its turn comes; and
among equal jobs there is none that is shorter.
"""

_UNKNOWN_SHARE = 0.25


def blocked_seconds(expected_seconds: float, remaining: float) -> float:
    """For how long no track would be free, if a job starts while others still need `remaining`."""
    return min(expected_seconds, remaining)


def remaining_seconds(began: float, expected_seconds: float, now: float) -> float:
    """How long a running refresh still needs; one that is overdue may need some more.

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
