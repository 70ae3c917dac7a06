"""How do the changes of a table become lines of a positioned file?

`'springhouse.sink.audit' = 'positioned_file'` with `path`: one line of JSON per changed row, in the
file of `positioned_file`, whose offsets are then the versions of the table. A range that comes
again was either written whole, and is skipped, or is cut off when the file is opened: exactly once.
"""

from pathlib import Path

from springhouse.lake.sinks.contract import Changes, SinkContext
from springhouse.lake.sinks.json_rows import json_rows
from springhouse.lake.sinks.positioned_file import PositionedFile
from springhouse.lake.sources.contract import Range
from springhouse.project.built_in import write_lines


class PositionedFileSink:
    """`path`: a file on this machine, or on a share that has locks."""

    def __init__(self, path: str, *, context: SinkContext) -> None:
        write_lines(path)
        self._path = Path(context.folder) / path
        self._file: PositionedFile | None = None

    def write(self, changes: Changes, given: Range) -> None:
        """Append a line for each changed row, unless the file has them."""
        if self._file is None:
            self._file = PositionedFile(self._path)
        if self._file.offset >= given.end:
            return
        self._file.resume(given.start)
        lines = [line for batch in changes.batches() for line in json_rows(batch)]
        self._file.write(lines, given.start, given.end)

    def close(self) -> None:
        """Let others write the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
