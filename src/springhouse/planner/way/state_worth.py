"""Is the state of a view worth what it costs?

State (hidden columns and tables) makes later refreshes cheap, and the refresh that builds it dear.
Nobody knows how the inputs will change, so it is bought as skis are by who does not know how often
he will ski: he rents until the rents have cost as much as skis, and then buys. He never pays more
than twice what he would have paid had he known. It is sold in the same way.

    built     when what its absence has cost since it was given up is more than building it costs
    given up  when refreshes that used it have cost more than recomputations would have, by as much
              as building it again costs
    kept      through one refresh that recomputes everything, when two refreshes such as there were
              lately save more than building it anew costs; a second one in a row gives it up
"""

from collections.abc import Sequence
from itertools import takewhile
from statistics import fmean

from springhouse.planner.logs import PastRefresh
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.refresh_cost import WAYS

_LATELY = 5
_PAYS_FOR_IT = 2
_FULL = WAYS[WidgetVariant.BATCH]


def worth_building(saved: float, refreshes: Sequence[PastRefresh], building_seconds: float) -> bool:
    """Whether to build state that would have saved so many seconds of this refresh."""
    return saved + missed_so_far(refreshes) > building_seconds


def missed_so_far(refreshes: Sequence[PastRefresh]) -> float:
    """What the absence of state has cost since there was none."""
    return sum(each.missed for each in takewhile(lambda e: not e.stateful, reversed(refreshes)))


def worth_keeping(
    refreshes: Sequence[PastRefresh], batch_seconds: float, building_seconds: float
) -> bool:
    """Whether to build state anew in a refresh that recomputes everything anyway."""
    if not refreshes or refreshes[-1].variant == _FULL:
        return False
    lately = [_saved(each, batch_seconds) for each in refreshes[-_LATELY:]]
    return _PAYS_FOR_IT * fmean(lately) > building_seconds


def overpaid_so_far(refreshes: Sequence[PastRefresh], batch_seconds: float) -> float:
    """What refreshes that used state took longer than recomputations, since they last saved any."""
    overpaid = 0.0
    for each in refreshes:
        overpaid = max(overpaid - _saved(each, batch_seconds), 0.0)
    return overpaid


def _saved(refresh: PastRefresh, batch_seconds: float) -> float:
    """What it took less than a recomputation would have; what it took more, as negative."""
    return batch_seconds - refresh.seconds if refresh.variant != _FULL else 0.0
