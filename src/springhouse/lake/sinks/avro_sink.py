"""How do the changes of a table become Avro files?

`'springhouse.sink.export' = 'avro'` with `path`: a folder, on this machine or in an object store,
with one file for each range of versions, named after the range. A file appears completely or not at
all, and a range that comes again replaces its file by the same file: exactly once, for every reader
of the folder, such as `read_files(…, format => 'avro')` of another warehouse. The file `_owner` in
the folder names the table: a folder with the changes of another table or warehouse is refused.
"""

import re
from collections.abc import Iterator
from typing import Any

from pyarrow import fs

from springhouse.errors import SinkError
from springhouse.lake.sinks.sink import Changes, Sink, SinkContext
from springhouse.lake.sources.avro_types import avro_schema, fastavro
from springhouse.lake.sources.source import Range
from springhouse.lake.storage.durable import sync_files
from springhouse.lake.storage.storage import Storage
from springhouse.project.options.built_in import write_avro

_RANGE = re.compile(r"(\d{20})-(\d{20})\.avro")


class AvroSink(Sink):
    """`path`: a folder; `codec`: deflate, or null for none."""

    def __init__(self, path: str, codec: str = "deflate", *, context: SinkContext) -> None:
        write_avro(path, codec)
        fastavro()  # If it is missing, the error has the place of the declaration.
        self._folder = Storage.at(path, relative_to=context.folder)
        self._codec = codec
        self._identity = context.identity
        self._record = "".join(c if c.isalnum() else "_" for c in context.table)

    def write(self, changes: Changes, versions: Range) -> None:
        """Write the file of this range, unless nothing changed."""
        records = _records(changes)
        first = next(records, None)
        if first is None:
            return
        self._prove_ours(versions)
        self._folder.make()
        name = f"{versions.start:020}-{versions.end:020}.avro"
        filesystem, path = self._folder.filesystem, self._folder.path
        # An object appears in a store when it is closed. A file appears when it is renamed.
        local = isinstance(filesystem, fs.LocalFileSystem)
        target = f"{path}/_{name}.part" if local else f"{path}/{name}"
        schema = fastavro().parse_schema(avro_schema(changes.columns, self._record))
        with filesystem.open_output_stream(target) as file:
            fastavro().writer(file, schema, _and_then(first, records), codec=self._codec)
        if local:
            sync_files(self._folder, [f"_{name}.part"], anew=True)
            filesystem.move(target, f"{path}/{name}")
            sync_files(self._folder, [name], anew=True)

    def _prove_ours(self, versions: Range) -> None:
        """Raise an error if the folder has changes that this sink does not know of."""
        if versions.start == 0:
            ranges = [_RANGE.fullmatch(info.base_name) for info in self._folder.files()]
            if any(each is not None and int(each[2]) != versions.end for each in ranges):
                raise SinkError(
                    "the folder has changes already, and the sink starts with the whole table: the "
                    "folder belongs to another sink, or the position of this sink was lost",
                    where=self._folder.root,
                    hint="Give the sink another folder, or empty this one.",
                )
        known = self._folder.read_text("_owner")
        if known and self._identity and known != self._identity:
            raise SinkError(
                "the folder has the changes of another table or warehouse",
                where=self._folder.root,
                hint="Give the sink another folder, or empty this one.",
            )
        if known is None and self._identity:
            self._folder.make()
            with self._folder.filesystem.open_output_stream(f"{self._folder.path}/_owner") as file:
                file.write(self._identity.encode())


def _records(changes: Changes) -> Iterator[dict[str, Any]]:
    maps = [field.name for field in changes.columns if str(field.type).startswith("map")]
    for batch in changes.batches():
        for record in batch.to_pylist():
            # Arrow returns a map as pairs.
            for name in maps:
                record[name] = None if record[name] is None else dict(record[name])
            yield record


def _and_then(first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield first
    yield from rest
