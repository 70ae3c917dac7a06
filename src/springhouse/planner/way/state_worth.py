"""Is the state of a view worth what it costs?

State (hidden columns and tables) makes later refreshes cheap, but the refresh that builds it is
expensive. Future changes of the inputs are unknown. This is the ski rental problem: rent skis until
the rents have cost as much as a pair, then buy. This never costs more than twice the best choice in
hindsight. The same rule decides when to give state up.

    built     when its absence has cost more than building it, since it was given up
    given up  when refreshes with state have cost more than recomputations would have, by as much as
              building it again costs
    kept      through one recomputation, if two refreshes like the last few save more than building
              it again costs; a second recomputation in a row gives it up
"""

from collections.abc import Sequence
from itertools import takewhile
from statistics import fmean

from springhouse.planner.delta_logs import PastRefresh
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.refresh_cost import WAYS

_LATELY = 5
_PAYS_FOR_IT = 2
_FULL = WAYS[WidgetVariant.BATCH]


def worth_building(saved: float, refreshes: Sequence[PastRefresh], building_seconds: float) -> bool:
    """Whether to build state that would have saved `saved` seconds of this refresh."""
    return saved + missed_so_far(refreshes) > building_seconds


def missed_so_far(refreshes: Sequence[PastRefresh]) -> float:
    """The seconds that the absence of state has cost since it was given up."""
    return sum(each.missed for each in takewhile(lambda e: not e.stateful, reversed(refreshes)))


def worth_keeping(
    refreshes: Sequence[PastRefresh], batch_seconds: float, building_seconds: float
) -> bool:
    """Whether to build state again in a refresh that recomputes everything anyway."""
    if not refreshes or refreshes[-1].variant == _FULL:
        return False
    lately = [_saved(each, batch_seconds) for each in refreshes[-_LATELY:]]
    return _PAYS_FOR_IT * fmean(lately) > building_seconds


def overpaid_so_far(refreshes: Sequence[PastRefresh], batch_seconds: float) -> float:
    """The seconds by which recent refreshes with state took longer than recomputations."""
    overpaid = 0.0
    for each in refreshes:
        overpaid = max(overpaid - _saved(each, batch_seconds), 0.0)
    return overpaid


def _saved(refresh: PastRefresh, batch_seconds: float) -> float:
    """The seconds that a refresh saved compared with a recomputation; negative if it was slower."""
    return batch_seconds - refresh.seconds if refresh.variant != _FULL else 0.0
