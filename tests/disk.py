"""What reaches the disk, and when? It records every sync of this process."""

import os
from pathlib import Path

import pytest


class Disk:
    """The synced paths, and the log entries that existed at each sync."""

    def __init__(self, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.table = table
        self.synced: list[tuple[Path, int]] = []
        fsync = os.fsync

        def noted(descriptor: int) -> None:
            path = Path(f"/proc/self/fd/{descriptor}").readlink()
            fsync(descriptor)
            self.synced.append((path, self.entries()))

        monkeypatch.setattr(os, "fsync", noted)

    def entries(self) -> int:
        return len(list(self.table.glob("_delta_log/*.json")))

    def before(self, entries: int) -> set[str]:
        """The paths synced while the log had this many entries, relative to the table."""
        here = [path for path, there in self.synced if there == entries]
        return {os.path.relpath(path, self.table) for path in here}
