"""Shared parts of the benchmarks of papers 000 and 002: TPC-H sources, sinks on disk, one run."""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from springhouse.flows.flow_graph import FlowGraph
from springhouse.flows.flow_settings import Settings
from springhouse.flows.monitor import FlowMeasurements
from springhouse.flows.request import Request
from springhouse.flows.run import Pool, request_of, run_here

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "tpch"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "flows"))
import tpch
from archetypes import SCHEMAS

RESULTS = Path(__file__).parents[1] / "results"
PAPER_PACK_BYTES = 400 * 48
"""400 tuples (000, Table 3); a row of lineitem has 48 bytes here."""
PACKS: dict[str, tuple[int, ...]] = {"paper": (100, PAPER_PACK_BYTES), "default": ()}
"""Packs on an edge and bytes in a pack: as 000 has them, and as flows have them by default."""


class OnDisk:
    """A target that writes its rows to a file, as the paper's writers do, and keeps none."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        self._stream = pa.OSFile(str(folder / f"{name}.arrow"), "wb")
        self._writer = ipc.new_stream(self._stream, schema)
        self.rows = 0

    def write(self, pack: pa.RecordBatch) -> None:
        self._writer.write_batch(pack)
        self.rows += pack.num_rows

    def close(self) -> None:
        self._writer.close()
        self._stream.close()


def tpch_sources(scale: float, folder: Path) -> dict[str, pa.Table]:
    """The archetypes' sources out of generated TPC-H tables, in memory."""
    paths = tpch.generate(scale, folder / f"tpch-{scale:g}")
    made: dict[str, pa.Table] = {}
    for name in ("lineitem", "partsupp", "supplier"):
        rows = tpch.read(paths[name]).select(SCHEMAS[name].names)
        made[name] = rows.cast(SCHEMAS[name])
    for table, column, key in (
        ("part", "p_partkey", "part"),
        ("supplier", "s_suppkey", "supplier"),
    ):
        keys = tpch.read(paths[table])[column]
        numbers = pc.add(keys, 1_000_000)
        name = f"{key}_keys"
        made[name] = pa.Table.from_arrays([keys, numbers], schema=SCHEMAS[name])
    return made


class Used(NamedTuple):
    """The cost of a run: by the clock, of all processors, and how often a thread had to wait."""

    seconds: float
    processor_seconds: float
    waits: int


class Usage:
    """`with Usage() as usage: …`, then `usage.used`."""

    used: Used

    def __enter__(self) -> "Usage":
        self._before = _now()
        return self

    def __exit__(self, *raised: object) -> None:
        self.used = Used(*(b - a for a, b in zip(self._before, _now(), strict=True)))


def _now() -> Used:
    waits = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    return Used(time.perf_counter(), time.process_time(), waits)


def run(
    graph: FlowGraph, sources: Mapping[str, pa.Table], settings: Settings
) -> tuple[FlowMeasurements, Used]:
    """Run a flow once, its targets on disk."""
    with tempfile.TemporaryDirectory() as folder:
        request = request_for(graph, sources, settings, Path(folder))
        if settings.threads == 1:
            with Usage() as usage:
                measured = run_here(request, settings)
        else:
            with Pool(settings) as pool, Usage() as usage:
                measured = pool.submit(request).wait()
    return measured, usage.used


def request_for(
    graph: FlowGraph,
    sources: Mapping[str, pa.Table],
    settings: Settings,
    folder: Path,
    *,
    traced: bool = False,
) -> Request:
    """A flow whose targets are on disk, ready to run."""
    sinks = {
        name: OnDisk(folder, f"{number}", graph.nodes[name].inputs[0])
        for number, name in enumerate(graph.targets)
    }
    return request_of(graph, sources, sinks, settings, traced=traced)


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Add `--data`: a folder where many runs, or short ones, find their tables."""
    parser.add_argument("--data", type=Path, help="where generated TPC-H tables are, and stay")


@contextmanager
def data_folder(given: Path | None) -> Iterator[Path]:
    """The given folder, or a temporary one for this run."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
