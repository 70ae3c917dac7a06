"""How is a table changed in place, by key?

A store is a set of Parquet files that together are a table: a view with its hidden columns, or a
hidden table of a view. The rows are sorted by key. Each file holds a range of keys, and its
statistics give the range. A change by key rewrites only the files that may hold a touched key. For
keys that come and go together (new orders, old orders), these files are few. For scattered keys
they are all files, as with any other split. Files are small, so a small change rewrites little.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from springhouse.lake.delta.file_pruning import chosen_files, ranges_of_keys
from springhouse.lake.delta.key_codes import codes_of, is_among, net_rows, repeat_rows
from springhouse.lake.delta.tables import DataFile, read_arrow
from springhouse.lake.delta.writing import bounds_of, write_arrow
from springhouse.lake.storage.parallel import in_parallel
from springhouse.lake.storage.presence import reading
from springhouse.lake.storage.storage import Storage

ROWS_PER_FILE = 65_536
_MOST_SCRAPS = 8
"""How many files under half the usual size may exist before a change rewrites them, too."""


@dataclass(frozen=True)
class Store:
    """The files of one table. `schema` has all its columns, including hidden ones."""

    storage: Storage
    folder: str
    files: tuple[DataFile, ...]
    schema: pa.Schema

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def read(self, files: Iterable[DataFile] | None = None) -> pa.Table:
        """The rows of some files, or of all files."""
        chosen = self.files if files is None else files
        paths = [file.path for file in chosen]
        if not paths:
            return self.schema.empty_table()
        table = read_arrow(self.storage, paths, self.schema.names)
        return table.select(self.schema.names).cast(self.schema)


@dataclass(frozen=True)
class Rewritten:
    """A store after a change, with the removed and added files.

    `gone` and `come` are the old and the new rows of the change.
    """

    store: Store
    removed: tuple[DataFile, ...]
    added: tuple[AddAction, ...]
    gone: pa.Table
    come: pa.Table


def replace_keys(store: Store, keys: Sequence[str], touched: pa.Table, rows: pa.Table) -> Rewritten:
    """Replace all rows whose keys are in `touched` with `rows`."""
    rows = rows.select(store.schema.names).cast(store.schema)
    # Without keys all rows are one group.
    candidates = list(store.files)
    if keys:
        candidates = chosen_files(store.files, ranges_of_keys(touched, keys))
    removed, kept, gone = [], [], []
    for file, table, hit in in_parallel(lambda file: _hit(store, file, keys, touched), candidates):
        if hit is None:
            removed.append(file)
            gone.append(table)
        elif hit.any():
            removed.append(file)
            gone.append(table.filter(pa.array(hit)))
            kept.append(table.filter(pa.array(~hit)))
    return _written(store, keys, removed, kept, gone, rows)


def _hit(
    store: Store, file: DataFile, keys: Sequence[str], touched: pa.Table
) -> tuple[DataFile, pa.Table, np.ndarray[tuple[int], np.dtype[np.bool_]] | None]:
    """The rows of a file, and a mask of those with a touched key; None for all rows."""
    table = store.read([file])
    if not keys:
        return file, table, None
    # The first key column alone rules out most rows, which is much faster.
    first = touched.schema.names[0]
    hit = np.ones(table.num_rows, dtype=np.bool_)
    if not pa.types.is_nested(table.schema.field(keys[0]).type):
        wanted = pc.unique(touched[first].cast(table.schema.field(keys[0]).type))
        hit = pc.is_in(table[keys[0]], value_set=wanted).to_numpy(zero_copy_only=False)
    likely = table.select(list(keys)).filter(pa.array(hit))
    if likely.num_rows:
        own, sought = codes_of([likely, touched], [list(keys), touched.schema.names])
        hit[hit] = is_among(own, sought)
    return file, table, hit


def change_rows(store: Store, rows: pa.Table, weights: pa.Array) -> Rewritten | None:
    """Add and remove rows by weight; None if the store lacks a row to remove."""
    names = store.schema.names
    net = net_rows(rows.select(names).cast(store.schema), names, weights.to_numpy())
    weight = net["weight"].to_numpy()
    changed = net.select(names)
    leaving = changed.filter(pa.array(weight < 0))
    owed = -weight[weight < 0]
    come = repeat_rows(changed.filter(pa.array(weight > 0)), weight[weight > 0])
    removed, kept, gone = [], [], []
    candidates = chosen_files(store.files, ranges_of_keys(leaving, names)) if len(owed) else []
    owed = owed.copy()
    for file in candidates:
        if not owed.any():
            break
        table = store.read([file])
        own, wanted = codes_of([table, leaving], [names, names])
        hit = _first_copies(own, wanted, owed)
        if hit.any():
            removed.append(file)
            gone.append(table.filter(pa.array(hit)))
            kept.append(table.filter(pa.array(~hit)))
    if owed.any():
        return None
    return _written(store, (), removed, kept, gone, come)


def _first_copies(
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    wanted: np.ndarray[tuple[int], np.dtype[np.int64]],
    owed: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """A mask of the rows to remove: of each wanted row, at most the number in `owed`."""
    hit = np.zeros(len(rows), dtype=np.bool_)
    places = np.nonzero(is_among(rows, wanted))[0]
    where = {code: index for index, code in enumerate(wanted.tolist())}
    for place in places.tolist():
        index = where[rows[place]]
        if owed[index] > 0:
            owed[index] -= 1
            hit[place] = True
    return hit


def _written(
    store: Store,
    keys: Sequence[str],
    removed: list[DataFile],
    kept: list[pa.Table],
    gone: list[pa.Table],
    come: pa.Table,
) -> Rewritten:
    """Write the remaining rows of the touched files together with the new rows."""
    untouched = [file for file in store.files if file not in removed]
    scraps = [file for file in untouched if file.rows < ROWS_PER_FILE // 2]
    if len(scraps) > _MOST_SCRAPS:
        removed = [*removed, *scraps]
        untouched = [file for file in untouched if file not in scraps]
        kept = [*kept, store.read(scraps)]
    table = pa.concat_tables([*kept, come]) if kept or come.num_rows else come
    added = write_sorted(store, keys, table)
    files = (*untouched, *(describe_file(store.storage, add.path) for add in added))
    went = pa.concat_tables(gone) if gone else store.schema.empty_table()
    return Rewritten(replace(store, files=files), tuple(removed), tuple(added), went, come)


def write_sorted(store: Store, keys: Sequence[str], table: pa.Table) -> list[AddAction]:
    """Write rows sorted by key, so that each file holds a range of the keys."""
    if not table.num_rows:
        return []
    orderly = [key for key in keys if not pa.types.is_nested(table.schema.field(key).type)]
    if orderly and table.num_rows > 1:
        table = table.sort_by([(key, "ascending") for key in orderly])
    pieces = range(0, table.num_rows, ROWS_PER_FILE)
    return in_parallel(
        lambda start: write_arrow(store.storage, table.slice(start, ROWS_PER_FILE), store.folder),
        pieces,
    )


@lru_cache(maxsize=100_000)
def describe_file(storage: Storage, path: str) -> DataFile:
    """A file that no Delta log names, described by its footer; cached, as files never change."""
    with (
        reading(storage, path),
        storage.filesystem.open_input_file(f"{storage.path}/{path}") as file,
    ):
        metadata = pq.read_metadata(file)
        size = file.size()
    low, high, nulls = bounds_of(metadata)
    return DataFile(path, size, metadata.num_rows, {}, low, high, nulls)
