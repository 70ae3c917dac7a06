"""Which old versions of a table do its readers still need?

A reader continues from the version that it reflects, so vacuum keeps the files of that version and
of all later ones.
"""

from springhouse.lake.sinks.delivery import needed_by_sinks
from springhouse.project.declarations.declaration import ReadMode
from springhouse.project.lineage.keys import reference_key
from springhouse.warehouse.watch import Watch


def needed_versions(watch: Watch, name: str) -> list[int]:
    """The versions of a table that its readers reflect."""
    # A state is read at the newest version that holds it: older ones with the same rows may go.
    read_at = {s.made: s.version for s in watch.lake.log(name).snapshots()}
    return [read_at.get(made, made) for made in _reflected_by_readers(watch, name)]


def _reflected_by_readers(watch: Watch, name: str) -> list[int]:
    needed = [*_streamed_by_readers(watch, name), *needed_by_sinks(watch.lake, watch.project, name)]
    for reader in watch.graph.downstream(name):
        newest = watch.lake.log(reader).newest()
        if newest is None:
            continue
        needed += newest.provenance.reflected.get(name, ())
        if name in watch.project.views:
            needed += _reflected_states(watch, name, reader)
    return needed


def _streamed_by_readers(watch: Watch, name: str) -> list[int]:
    """For each stream over a table, the last version that it has read."""
    needed = []
    for table in watch.project.tables:
        stored = watch.stored(table)
        for stream in (s for feed in watch.feeds(table) for s in feed.streams):
            if (
                stream.reference.reading is ReadMode.SOURCE
                or reference_key(stream.reference) != name
            ):
                continue
            needed.append(max(stored.offset(stream.transaction("0")) - 1, 0) if stored else 0)
    return needed


def _reflected_states(watch: Watch, view: str, reader: str) -> list[int]:
    """The newest version of a view that is not newer than those that its reader reflects."""
    reflected = watch.lake.log(reader).newest()
    assert reflected is not None
    states = [
        s.made
        for s in watch.lake.log(view).snapshots()
        if not reflected.provenance.precedes(s.provenance)
    ]
    return states[-1:]
