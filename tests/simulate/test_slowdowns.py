"""Normal and slow periods take turns."""

import pytest

from springhouse.simulate.slowdowns import NEVER, Slowdowns


@pytest.mark.parametrize(
    ("at", "factor"),
    [(0.0, 1.0), (999.0, 1.0), (1_000.0, 3.0), (1_999.0, 3.0), (2_000.0, 1.0), (5_500.0, 3.0)],
)
def test_the_end_of_every_cycle_is_slow(at, factor):
    assert Slowdowns(times=3.0, share=0.5, cycle_seconds=2_000.0).factor(at) == factor


def test_never_is_never():
    assert {NEVER.factor(at / 7) for at in range(100_000)} == {1.0}
    assert NEVER.mean == 1.0
