"""Is the state of a view worth what it costs?

State (hidden columns and tables) makes later refreshes cheap, and the refresh that builds it dear.
Nobody knows how the inputs will change, so it is bought as skis are by who does not know how often
he will ski: he rents until the rents have cost as much as skis, and then buys. He never pays more
than twice what he would have paid had he known.

    built   when what its absence has cost since it was given up is more than building it costs
    kept    through one refresh that recomputes everything, when two refreshes such as there were
            lately save more than building it anew costs; a second one in a row gives it up
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from statistics import fmean

from springhouse.lake.note import Note
from springhouse.views.algebra import Scan, walk
from springhouse.views.compile import Compiled
from springhouse.views.statement import Kind
from springhouse.views.variants import Way

_LATELY = 5
_PAYS_FOR_IT = 2
_LEAST = 0.25
_LEAST_SECONDS = 0.5
_HIDDEN_ROW = 2e-6


def worth_building(saved: float, notes: Sequence[Note], building_seconds: float) -> bool:
    """Whether to build state that would have saved so many seconds of this refresh."""
    without = takewhile(lambda note: not note.stateful, reversed(notes))
    return saved + sum(note.missed for note in without) > building_seconds


def worth_keeping(notes: Sequence[Note], batch_seconds: float, building_seconds: float) -> bool:
    """Whether to build state anew in a refresh that recomputes everything anyway."""
    if not notes or notes[-1].variant == Way.BATCH.value:
        return False
    lately = [_saved(note, batch_seconds) for note in notes[-_LATELY:]]
    return _PAYS_FOR_IT * fmean(lately) > building_seconds


def building_seconds(
    view: Compiled, inputs: Mapping[str, int], hidden_rows: int, batch_seconds: float
) -> float:
    """What it takes to build state beyond what a plain recomputation takes.

    The steps read inputs, of so many rows each, more often than the plain query does. What took how
    long in the past tells less: state is built seldom, and first in a cold process.
    """
    plain = sum(inputs[node.input] for node in walk(view.root) if isinstance(node, Scan))
    read = sum(
        inputs.get(reading.of, 0)
        for step in view.build
        for reading in step.build.reads
        if reading.kind is Kind.AFTER
    )
    again = read / max(plain, 1) - 1
    beyond = max(again, _LEAST) * batch_seconds + hidden_rows * _HIDDEN_ROW
    return max(beyond, _LEAST_SECONDS)


def _saved(note: Note, batch_seconds: float) -> float:
    """What a refresh took less than a recomputation would have; what it took more, as negative."""
    return batch_seconds - note.seconds if note.variant != Way.BATCH.value else 0.0
