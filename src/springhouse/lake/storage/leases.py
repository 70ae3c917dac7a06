"""Which processes write right now, and since when?

A process writes files before the commit that names them. Until the commit they look like unneeded
files. So a process that writes holds a lease: a small file under `leases/` in the storage.

    start     no file of unfinished work is older than this (by the storage's own clock)
    alive     on the same machine, the owner still runs: a lease dies with its owner; on another
              machine, the owner wrote the file again within the last `EXPIRES_SECONDS`

Vacuum deletes nothing that is younger than the oldest start of a live lease, and it keeps every
version that was readable then. All times are modification times of files in the storage, so the
clocks of the machines need not agree.
"""

import contextlib
import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from springhouse.lake.storage.clock import steady_seconds
from springhouse.lake.storage.storage import Storage
from springhouse.logged_errors import passing

LOG = logging.getLogger("springhouse.leases")

FOLDER = "leases"
OF_TABLE = "_leases"
"""The folder inside a table for the leases of work that knows only the table, not a warehouse."""
RENEWED_SECONDS = 20.0
EXPIRES_SECONDS = 600.0
MARGIN_SECONDS = 60.0
"""A storage may round times, and may date a file by its first byte."""


@dataclass(frozen=True)
class Lease:
    """A lease as stored; the times are the storage's."""

    host: str
    pid: int
    born: str
    start: float
    renewed: float

    def is_alive(self, now: float) -> bool:
        """Whether its owner may still write."""
        if self.host == _host():
            return _born(self.pid) == self.born
        return now - self.renewed < EXPIRES_SECONDS


class Leases:
    """The lease of this process on one storage, and the leases of other processes there."""

    def __init__(
        self,
        storage: Storage,
        folder: str = FOLDER,
        steady: Callable[[], float] = steady_seconds,
    ) -> None:
        self._storage = storage.inside(folder)
        self._steady = steady
        self.name = f"{uuid.uuid4().hex}.json"
        self._lock = threading.Lock()
        self._running: dict[int, float] = {}  # start of each unfinished work, in steady seconds
        self._next = 0
        self._renewer: threading.Thread | None = None
        self._stop = threading.Event()
        self._written: tuple[float, float, float] | None = None  # steady, storage's time, start

    @contextmanager
    def hold(self) -> Iterator["HeldLease"]:
        """Hold a lease while this block writes files; blocks may overlap."""
        number = self._begin()
        try:
            yield HeldLease(self)
        finally:
            self._end(number)

    def oldest_start(self) -> float | None:
        """The oldest start of all live leases, in the storage's time; None without leases."""
        now = self.storage_now()
        starts = []
        for info in self._storage.files():
            if not info.base_name.endswith(".json") or info.base_name == self.name:
                continue
            found = self._read(info)
            if found is not None and found.is_alive(now):
                starts.append(found.start)
        with self._lock:
            if self._running and self._written is not None:
                starts.append(self._start())
        return min(starts, default=None)

    def has_any(self) -> bool:
        """Whether the storage has any lease, live or dead."""
        return bool(self._storage.files())

    def remove_dead(self) -> list[str]:
        """Delete the leases whose owners are long gone, and return their names."""
        now = self.storage_now()
        gone = []
        for info in self._storage.files():
            dead = info.base_name.endswith(".probe") or self._is_dead(info, now)
            if dead and info.mtime_ns is not None and now - info.mtime_ns / 1e9 > EXPIRES_SECONDS:
                with passing(LOG, "the next vacuum removes a dead lease", OSError):
                    self._storage.filesystem.delete_file(info.path)
                    gone.append(str(info.base_name))
        return gone

    def _is_dead(self, info: fs.FileInfo, now: float) -> bool:
        found = self._read(info)
        return found is not None and not found.is_alive(now)

    def storage_now(self) -> float:
        """The storage's current time: the time that it gives to a file written now."""
        self._storage.make()
        path = f"{self._storage.path}/{uuid.uuid4().hex}.probe"
        files = self._storage.filesystem
        with files.open_output_stream(path) as stream:
            stream.write(b" ")
        try:
            modified: int | None = files.get_file_info(path).mtime_ns
        finally:
            with passing(LOG, "vacuum removes a probe", OSError):
                files.delete_file(path)
        return time.time() if modified is None else modified / 1e9

    def release(self) -> None:
        """Delete the lease: this process writes no more."""
        self._stop.set()
        with self._lock:
            renewer, self._renewer, written = self._renewer, None, self._written
            self._written = None
        if renewer is not None:
            renewer.join(timeout=RENEWED_SECONDS)
        if written is not None:
            with passing(LOG, "a lease that stays expires", OSError):
                self._storage.filesystem.delete_file(f"{self._storage.path}/{self.name}")

    def renew_if_late(self) -> None:
        """Renew the lease if the last renewal is long ago: this process may have been stopped.

        In the meantime a vacuum may have deleted files, so a commit checks its files after this.
        """
        with self._lock:
            late = self._written is not None and (
                self._steady() - self._written[0] > EXPIRES_SECONDS / 2
            )
            if late:
                self._write()

    def _begin(self) -> int:
        with self._lock:
            self._next += 1
            self._running[self._next] = self._steady()
            # Work that begins later is covered by the start that is already written.
            if self._written is None:
                self._write()
            if self._renewer is None:
                self._stop = threading.Event()
                self._renewer = threading.Thread(
                    target=self._renew, args=(self._stop,), name="springhouse-lease", daemon=True
                )
                self._renewer.start()
            return self._next

    def _end(self, number: int) -> None:
        with self._lock:
            self._running.pop(number, None)

    def _renew(self, stop: threading.Event) -> None:
        while not stop.wait(RENEWED_SECONDS):
            reason = "it is renewed again soon, and commits refuse a lease that is too old"
            with self._lock, passing(LOG, reason, OSError):
                self._write()

    def _write(self) -> None:
        """Write the lease with the oldest unfinished start; the caller holds the lock."""
        start = self._start() if self._written is not None else None
        self._put(start)
        info = self._storage.filesystem.get_file_info(f"{self._storage.path}/{self.name}")
        at = time.time() if info.mtime_ns is None else info.mtime_ns / 1e9
        if start is None or at < start:
            # This is the first write, or the storage's clock went back: new files get this time.
            start = at - MARGIN_SECONDS
            self._put(start)
        self._written = (self._steady(), at, start)

    def _start(self) -> float:
        """When the oldest unfinished work began, in the storage's time, less a margin."""
        assert self._written is not None
        steady, at, start = self._written
        began = min(self._running.values(), default=self._steady())
        if began <= steady:
            # The work was already running when the lease was last written.
            return min(start, at + (began - steady) - MARGIN_SECONDS)
        return at + (began - steady) - MARGIN_SECONDS

    def _put(self, start: float | None) -> None:
        value = {
            "format": 1,
            "host": _host(),
            "pid": os.getpid(),
            "born": _born(os.getpid()),
            "start": start if start is not None else 0.0,
        }
        self._storage.make()
        # A reader of a half-written lease assumes that its work began long ago.
        with self._storage.filesystem.open_output_stream(
            f"{self._storage.path}/{self.name}"
        ) as stream:
            stream.write(json.dumps(value).encode())

    def _read(self, info: fs.FileInfo) -> Lease | None:
        text = self._storage.read_text(info.base_name)
        renewed = time.time() if info.mtime_ns is None else info.mtime_ns / 1e9
        try:
            value = json.loads(text or "")
            return Lease(
                str(value["host"]),
                int(value["pid"]),
                str(value["born"]),
                float(value["start"]),
                renewed,
            )
        except (ValueError, KeyError, TypeError):
            return None if text is None else Lease("", 0, "", 0.0, renewed)


@dataclass(frozen=True)
class HeldLease:
    """A lease that this process holds while a block runs; a commit can require it."""

    leases: Leases

    def check(self) -> None:
        """Make sure that the lease is valid, even after this process was stopped for long."""
        self.leases.renew_if_late()


@contextmanager
def hold_in(tables: Iterable[Storage]) -> Iterator[None]:
    """Hold a lease inside each of these tables, for work that does not know their warehouse."""
    with contextlib.ExitStack() as stack:
        for table in tables:
            leases = Leases(table, OF_TABLE)
            stack.callback(leases.release)
            stack.enter_context(leases.hold())
        yield


def _host() -> str:
    """This machine since its last boot: a process number has no meaning anywhere else."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    name = socket.gethostname()
    try:
        return f"{name}/{boot.read_text().strip()}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{name}/{uuid.getnode()}"


def _born(pid: int) -> str:
    """The start of a process of this machine, in the kernel's count; empty if it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        if Path("/proc").is_dir():
            return ""
        with contextlib.suppress(OSError):  # The error means that there is no such process.
            os.kill(pid, 0)
            return "there"
        return ""
    fields = stat.rpartition(")")[2].split()
    # A zombie is dead; it only waits until its parent reads its exit code.
    return "" if fields[0] in "ZX" else fields[19]
