"""Blocks, and the inputs that accept them."""

import pytest

from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import (
    BASE,
    INCREMENTS,
    MONOTONE,
    STRONG,
    UPSERTS,
    Block,
    apply_block,
    fits,
    is_weak,
)

ONE, TWO, THREE = (Provenance.of(a=version) for version in (1, 2, 3))


def test_a_block_is_what_it_holds_not_how_large_it_is():
    small, large = Block("v", STRONG, TWO, ONE, 3.0), Block("v", STRONG, TWO, ONE, 9.0, (4, 5))
    assert small == large
    assert len({small, large}) == 1
    assert small != Block("v", MONOTONE, TWO, ONE, 3.0)


def test_a_base_has_no_start_and_a_delta_has_one():
    with pytest.raises(AssertionError):
        Block("v", BASE, TWO, ONE)
    with pytest.raises(AssertionError):
        Block("v", STRONG, TWO)


@pytest.mark.parametrize(
    ("kind", "wanted", "yes"),
    [
        (STRONG, STRONG, True),
        (MONOTONE, STRONG, True),
        (STRONG, MONOTONE, False),
        (BASE, STRONG, False),
        (UPSERTS, STRONG, False),
        (INCREMENTS, INCREMENTS, True),
    ],
)
def test_what_will_do(kind, wanted, yes):
    assert fits(kind, wanted) is yes


def test_weak_is_what_is_not_built_in():
    assert [is_weak(kind) for kind in (BASE, STRONG, MONOTONE, UPSERTS)] == [False] * 3 + [True]


def test_a_delta_needs_a_state_that_it_continues():
    delta = Block("v", STRONG, THREE, TWO)
    assert apply_block(None, delta) is None
    assert apply_block(ONE, delta) is None
    assert apply_block(TWO, delta) == THREE


def test_a_block_tells_what_it_is():
    assert str(Block("v", STRONG, TWO, ONE)) == "strong delta of v ⟨a:1⟩ ▷ ⟨a:2⟩"
