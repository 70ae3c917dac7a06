"""The load of a machine; a folder replaces /proc, on systems with /proc."""

import psutil
import pytest

from springhouse.warehouse.machine import Machine

MEMORY = "MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:  250 kB\n"
MEMORY += "Buffers: 0 kB\nCached: 0 kB\nActive: 0 kB\nInactive: 0 kB\nShmem: 0 kB\nSlab: 0 kB\n"


@pytest.fixture
def proc(tmp_path, monkeypatch):
    if not psutil.LINUX:
        pytest.skip("only Linux has /proc")
    write_ticks(tmp_path, busy=0, idle=0)
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path), raising=False)
    return tmp_path


def write_ticks(folder, busy, idle, waiting=0):
    (folder / "stat").write_text(f"cpu  {busy} 0 0 {idle} {waiting} 0 0 0 0 0\ncpu0 1 2 3\n")


def test_cpu_is_counted_since_the_last_question(proc):
    write_ticks(proc, busy=100, idle=100)
    machine = Machine()
    write_ticks(proc, busy=130, idle=160, waiting=10)
    assert round(machine.cpu(), 6) == 0.3
    assert machine.cpu() == 0.0


def test_memory_that_could_be_freed_is_not_used(proc):
    (proc / "meminfo").write_text(MEMORY)
    assert Machine().memory() == 0.75


def test_a_real_machine_is_somewhere_between_idle_and_full():
    machine = Machine()
    assert 0.0 <= machine.cpu() <= 1.0
    assert 0.0 < machine.memory() <= 1.0
