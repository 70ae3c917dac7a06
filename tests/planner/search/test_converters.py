"""Section 2.4: declared converters, and compositions of them."""

from collections.abc import Iterable, Mapping
from itertools import pairwise, permutations

import pytest

from springhouse.errors import SpringhouseError
from springhouse.planner.search.blocks import BASE, INCREMENTS, STRONG, UPSERTS, Kind
from springhouse.planner.search.converters import (
    BUILT_IN,
    Way,
    WeakDelta,
    converters,
    increments,
    upserts,
)
from springhouse.planner.search.operators import Base

DIFF = Kind("diff")


def compositions(weak: Iterable[WeakDelta] = ()) -> Mapping[Way, tuple[Way, ...]]:
    """For every way between two kinds, the given converters that lead there, as few as possible.

    >>> given = WeakDelta(Kind("diff"), frozenset({(STRONG, Kind("diff")), (Kind("diff"), BASE)}))
    >>> compositions([given])[Kind("diff"), STRONG]
    (('diff', 'base'), ('base', 'strong delta'))
    """
    given = dict.fromkeys([*BUILT_IN, *(way for each in weak for way in sorted(each.given))])
    found: dict[Way, tuple[Way, ...]] = {way: (way,) for way in given}
    kinds = dict.fromkeys(kind for way in given for kind in way)
    for _ in kinds:
        for (source, middle), steps in [*found.items()]:
            for step in given:
                way = (source, step[1])
                if step[0] == middle and source != step[1] and way not in found:
                    found[way] = (*steps, step)
    return found


def test_all_six_of_figure_2_are_there_for_upserts():
    assert {*compositions([upserts])} == {*permutations([BASE, STRONG, UPSERTS], 2)}


@pytest.mark.parametrize("into", [BASE, STRONG])
@pytest.mark.parametrize("out", [BASE, STRONG])
def test_one_way_in_and_one_out_are_enough(into, out):
    weak = WeakDelta(DIFF, frozenset({(into, DIFF), (DIFF, out)}))
    found = compositions([weak])
    assert {*found} == {*permutations([BASE, STRONG, DIFF], 2)}
    for (source, target), steps in found.items():
        assert (steps[0][0], steps[-1][1]) == (source, target)
        assert all(one[1] == other[0] for one, other in pairwise(steps))
        assert all(step in {*weak.given, (BASE, STRONG), (STRONG, BASE)} for step in steps)


def test_two_weak_deltas_reach_each_other():
    found = compositions([upserts, increments])
    assert found[UPSERTS, INCREMENTS] == ((UPSERTS, STRONG), (STRONG, INCREMENTS))


def test_a_weak_delta_that_leads_nowhere_is_refused():
    with pytest.raises(SpringhouseError, match="can not be converted both to and from"):
        WeakDelta(DIFF, frozenset({(STRONG, DIFF)}))
    with pytest.raises(SpringhouseError, match="built in"):
        WeakDelta(STRONG, frozenset())


def test_only_from_strong_to_weak_needs_no_base():
    found = {(each.source, each.target): each for each in converters("v", [upserts])}
    assert {way for way, each in found.items() if not each.reads_base} == {(STRONG, UPSERTS)}
    assert found[STRONG, UPSERTS].operator.ports[0].base is Base.NONE
    assert found[UPSERTS, STRONG].operator.ports[0].base is Base.OLD
    assert found[STRONG, BASE].name == "v: base from strong delta"
