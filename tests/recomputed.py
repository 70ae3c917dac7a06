"""Which rows should a view hold that was refreshed from one input at a time?

No single version of its inputs explains such a view. But its log names, for each refresh, the
versions that the refresh read. So plain Spark can recompute the rows that each refresh added. Let Q
be the view's query and R the last refresh that read all inputs. Then, as bags of rows:

    rows  =  Q(R)  +  sum over asynchronous refreshes of  Q(read)  -  Q(read, the driver as before)
"""

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import pairwise

from pyspark.sql import DataFrame, Row

from springhouse.lake.delta.note import Note
from springhouse.lake.landing.inputs import RefreshInputs
from springhouse.warehouse import Warehouse

Read = Mapping[str, int]


def differences(warehouse: Warehouse, view: str) -> list[Row]:
    """Rows that a view wrongly holds or lacks."""
    notes = [c.note for c in warehouse.internals.lake.log(view).commits() if c.note and c.note.read]
    last = max(n for n, note in enumerate(notes) if note.variant != "asynchronous")
    steps = list(_merged([_step(*each) for each in pairwise(notes[last:])]))
    inputs = RefreshInputs(warehouse.internals.lake, warehouse.project, notes[last].read)
    stored = warehouse.internals.lake.open(view).read(inputs.session)
    should = [
        _computed(warehouse, view, read) for read in (notes[last].read, *(b for _, b in steps))
    ]
    does = [stored, *(_computed(warehouse, view, before) for before, _ in steps)]
    left, right = reduce(DataFrame.unionAll, should), reduce(DataFrame.unionAll, does)
    return [*left.exceptAll(right).take(5), *right.exceptAll(left).take(5)]


def _step(before: Note, note: Note) -> tuple[Read, Read]:
    """The versions with and without the change that an asynchronous refresh applied."""
    moved = {key for key, version in note.read.items() if version != before.read[key]}
    driver = next(key for key in moved if key not in note.mixed)
    return {**note.read, driver: before.read[driver]}, note.read


def _merged(steps: list[tuple[Read, Read]]) -> Iterator[tuple[Read, Read]]:
    """Merge steps that follow each other, if one begins where the other ended."""
    while steps:
        start, end = steps.pop(0)
        while steps and steps[0][0] == end:
            _, end = steps.pop(0)
        yield start, end


def _computed(warehouse: Warehouse, view: str, read: Read) -> DataFrame:
    """The rows of a view's query over these versions, by plain Spark."""
    return RefreshInputs(warehouse.internals.lake, warehouse.project, read).frame(
        warehouse.project.views[view].query
    )
