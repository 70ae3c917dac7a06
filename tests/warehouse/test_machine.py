"""How busy a machine is, from what Linux tells."""

from springhouse.warehouse.machine import Machine

MEMORY = "MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:  250 kB\nHugePages_Total:   0\n"


def tell(folder, busy, idle, waiting=0):
    (folder / "stat").write_text(f"cpu  {busy} 0 0 {idle} {waiting} 0 0 0 0 0\ncpu0 1 2 3\n")


def test_cpu_is_counted_since_the_last_question(tmp_path):
    tell(tmp_path, busy=100, idle=100)
    machine = Machine(tmp_path)
    tell(tmp_path, busy=130, idle=160, waiting=10)
    assert round(machine.cpu(), 6) == 0.3
    assert machine.cpu() == 0.0


def test_memory_that_could_be_freed_is_not_used(tmp_path):
    (tmp_path / "meminfo").write_text(MEMORY)
    assert Machine(tmp_path).memory() == 0.75


def test_where_nobody_tells_a_machine_counts_as_idle(tmp_path):
    machine = Machine(tmp_path / "nowhere")
    assert (machine.cpu(), machine.memory()) == (0.0, 0.0)
