"""Is the state of a view worth what it costs?

State (hidden columns and tables) makes later refreshes cheap, and the refresh that builds it dear.
Nobody knows how the inputs will change, so it is bought as skis are by who does not know how often
he will ski: he rents until the rents have cost as much as skis, and then buys. He never pays more
than twice what he would have paid had he known.

    built   when what its absence has cost since it was given up is more than building it costs
    kept    through a refresh that recomputes everything, when two refreshes such as there were
            lately save more than building it anew costs
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from statistics import fmean

from springhouse.lake.note import Note
from springhouse.views.variants import Way

_LATELY = 5
_PAYS_FOR_IT = 2
_LEAST, _MOST = 0.1, 2.0
"""Building takes at least and at most so many times what a plain recomputation takes, and beyond
it: a first refresh in a cold process says little."""


def worth_building(saved: float, notes: Sequence[Note], batch_seconds: float) -> bool:
    """Whether to build state that would have saved so many seconds of this refresh."""
    without = takewhile(lambda note: not note.stateful, reversed(notes))
    missed = saved + sum(note.missed for note in without)
    return missed > building_seconds(notes, batch_seconds)


def worth_keeping(notes: Sequence[Note], batch_seconds: float) -> bool:
    """Whether to build state anew in a refresh that recomputes everything anyway."""
    lately = [_saved(note, batch_seconds) for note in notes[-_LATELY:]]
    return bool(lately) and _PAYS_FOR_IT * fmean(lately) > building_seconds(notes, batch_seconds)


def building_seconds(notes: Iterable[Note], batch_seconds: float) -> float:
    """What it takes to build state beyond what a plain recomputation takes."""
    built = [note.seconds for note in notes if note.stateful and note.variant == Way.BATCH.value]
    beyond = min(built) - batch_seconds if built else batch_seconds
    return min(max(beyond, _LEAST * batch_seconds), _MOST * batch_seconds)


def _saved(note: Note, batch_seconds: float) -> float:
    """What a refresh took less than a recomputation would have; what it took more, as negative."""
    return batch_seconds - note.seconds if note.variant != Way.BATCH.value else 0.0
