"""Which processors share memory, and how large is the cache of one processor?

The operating system or a caller gives the answer. A node is a group of processors that share their
memory. A machine without NUMA is one node (002 section 5.1).
"""

import os
from dataclasses import dataclass
from pathlib import Path

from springhouse.flows.row_pack import LEAST_BYTES

_SIZES = {"K": 1024, "M": 1024**2, "G": 1024**3}


@dataclass(frozen=True)
class Topology:
    """The processors of each node, and the size of one L2 cache (None: unknown)."""

    nodes: tuple[tuple[int, ...], ...]
    l2_bytes: int | None = None

    @property
    def pack_bytes(self) -> int:
        """Half of the L2 cache (002 section 5.2), but at least `LEAST_BYTES`."""
        return max((self.l2_bytes or 0) // 2, LEAST_BYTES)

    def threads(self) -> tuple[tuple[int, ...], ...]:
        """The threads of each node: one per processor, numbered from 0."""
        numbered, first = [], 0
        for processors in self.nodes:
            numbered.append(tuple(range(first, first + len(processors))))
            first += len(processors)
        return tuple(numbered)


def one_node(threads: int, l2_bytes: int | None = None) -> Topology:
    """A topology of one node with this number of threads."""
    return Topology((tuple(range(threads)),), l2_bytes)


def read_topology(system: Path = Path("/sys/devices/system")) -> Topology:
    """The part of this machine that this process may use."""
    usable = _usable()
    nodes = []
    for folder in sorted(system.glob("node/node[0-9]*"), key=lambda path: int(path.name[4:])):
        text = _text(folder / "cpulist")
        processors = tuple(cpu for cpu in numbers(text or "") if not usable or cpu in usable)
        if processors:
            nodes.append(processors)
    if not nodes:
        nodes = [tuple(sorted(usable)) or tuple(range(os.cpu_count() or 1))]
    return Topology(tuple(nodes), _l2_bytes(system, nodes[0][0]))


def free_memory(node: int, system: Path = Path("/sys/devices/system")) -> int:
    """The free memory of a node in bytes; 0 if the system does not report it."""
    for line in (_text(system / f"node/node{node}/meminfo") or "").splitlines():
        words = line.split()
        if "MemFree:" in words:
            return int(words[words.index("MemFree:") + 1]) * 1024
    return 0


def numbers(text: str) -> tuple[int, ...]:
    """The numbers in a list as the kernel writes it.

    >>> numbers("0-2,8")
    (0, 1, 2, 8)
    """
    result: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            result += range(int(first), int(last or first) + 1)
    return tuple(result)


def _l2_bytes(system: Path, processor: int) -> int | None:
    for folder in sorted(system.glob(f"cpu/cpu{processor}/cache/index[0-9]*")):
        size = (_text(folder / "size") or "").strip()
        if (_text(folder / "level") or "").strip() == "2" and size:
            return int(size.rstrip("KMG")) * _SIZES.get(size[-1], 1)
    return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _usable() -> frozenset[int]:
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()
