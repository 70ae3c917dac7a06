"""The facts about the machine that the code reads, from a folder that looks like /sys."""

from pathlib import Path

from springhouse.flows.row_pack import LEAST_BYTES
from springhouse.flows.topology import Topology, free_memory, numbers, one_node, read_topology


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_this_machine_has_a_processor() -> None:
    found = read_topology()
    assert found.nodes[0]
    assert found.pack_bytes > 0


def test_a_machine_that_tells_nothing_is_one_node(tmp_path: Path) -> None:
    found = read_topology(tmp_path)
    assert len(found.nodes) == 1
    assert found.pack_bytes == LEAST_BYTES


def test_nodes_and_the_l2_cache_are_read(tmp_path: Path) -> None:
    mine = read_topology().nodes[0][0]
    write(tmp_path / "node/node0/cpulist", f"{mine}\n")
    write(tmp_path / "node/node0/meminfo", "Node 0 MemFree:       2048 kB\n")
    write(tmp_path / f"cpu/cpu{mine}/cache/index1/level", "1\n")
    write(tmp_path / f"cpu/cpu{mine}/cache/index1/size", "32K\n")
    write(tmp_path / f"cpu/cpu{mine}/cache/index2/level", "2\n")
    write(tmp_path / f"cpu/cpu{mine}/cache/index2/size", "1M\n")
    found = read_topology(tmp_path)
    assert found == Topology(((mine,),), 1024**2)
    assert free_memory(0, tmp_path) == 2048 * 1024
    assert free_memory(1, tmp_path) == 0


def test_threads_are_numbered_through_all_nodes() -> None:
    assert Topology(((0, 1), (4, 5, 6))).threads() == ((0, 1), (2, 3, 4))
    assert one_node(2).threads() == ((0, 1),)
    assert numbers("") == ()
