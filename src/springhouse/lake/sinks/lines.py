"""How do the changes of a table become lines of a positioned file?

`'springhouse.sink.audit' = 'positioned_file'` with `path`: one line of JSON per changed row, in the
file of `positioned_file`, whose offsets are the versions of the table. If a range comes again, it
was either written completely, and is skipped, or it is cut off when the file is opened: exactly
once. The file `<name>.owner` beside it names the table: a file with the changes of another table,
or of another warehouse, is refused.
"""

from pathlib import Path

from springhouse.errors import SinkError
from springhouse.lake.sinks.positioned_file import PositionedFile
from springhouse.lake.sinks.sink import Changes, Sink, SinkContext
from springhouse.lake.sources.json_rows import json_rows
from springhouse.lake.sources.source import Range
from springhouse.project.options.built_in import write_lines


class PositionedFileSink(Sink):
    """`path`: a file on this machine, or on a share that has locks."""

    def __init__(self, path: str, *, context: SinkContext) -> None:
        write_lines(path)
        self._path = Path(context.folder) / path
        self._file: PositionedFile | None = None
        self._identity = context.identity

    def write(self, changes: Changes, versions: Range) -> None:
        """Append a line for each changed row, unless the file has them."""
        if self._file is None:
            self._file = PositionedFile(self._path)
            self._prove_ours(self._file, versions)
        if self._file.offset >= versions.end:
            return
        self._file.resume(versions.start)
        lines = [line for batch in changes.batches() for line in json_rows(batch)]
        self._file.write(lines, versions.start, versions.end)

    def _prove_ours(self, file: PositionedFile, versions: Range) -> None:
        owner = self._path.with_name(self._path.name + ".owner")
        known = owner.read_text() if owner.exists() else None
        # Without an owner the file is new, or an older release wrote it. Then it ends before this
        # range, or has the range already.
        fits = known == self._identity if known else file.offset in (0, *versions)
        if not fits and self._identity:
            self.close()
            raise SinkError(
                "the file has the changes of another table or warehouse",
                where=str(self._path),
                hint="Give the sink another file, or move this one (with its .owner and "
                ".checkpoints) away.",
            )
        if known is None and self._identity:
            owner.write_text(self._identity)

    def close(self) -> None:
        """Let others write the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
