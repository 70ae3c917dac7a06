"""What do the benchmarks of papers 000 and 002 share: TPC-H as sources, sinks on disk, one run."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from springhouse.flows.graph import Graph
from springhouse.flows.monitor import Measured
from springhouse.flows.request import Request
from springhouse.flows.run import Pool, request_of, run_here
from springhouse.flows.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "tpch"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "flows"))
import tpch
from _figure import Finding
from archetypes import SCHEMAS

RESULTS = Path(__file__).parents[1] / "results"


class OnDisk:
    """A target whose rows go to a file, as the paper's writers do; nothing is kept in memory."""

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
    paths = tpch.generate(scale, folder / f"tpch-{scale}")
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


def run(graph: Graph, sources: Mapping[str, pa.Table], settings: Settings) -> Measured:
    """Run a flow once, its targets on disk."""
    with tempfile.TemporaryDirectory() as folder:
        request = request_for(graph, sources, settings, Path(folder))
        if settings.threads == 1:
            return run_here(request, settings)
        with Pool(settings) as pool:
            return pool.submit(request).wait()


def request_for(
    graph: Graph,
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


def findings_table(findings: Sequence[Finding]) -> str:
    """What the paper says, what came out here, and whether that agrees, side by side."""
    rows = []
    for finding in findings:
        why = f". {finding.differs}" if finding.differs and not finding.agrees else ""
        verdict = "agrees" if finding.agrees else "**differs**"
        rows.append([finding.paper, f"{finding.ours}{why}", verdict])
    return table(["the paper's finding", "ours", ""], rows)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
