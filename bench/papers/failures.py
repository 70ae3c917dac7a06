"""Does the cluster of paper 003 survive what its authors did to it (section 5, Table 1)?

Five real processes run on loopback with ten partitions, ten events a second in each, positioned
files, and the paper's time-outs. The leader is killed, its successor is killed, and the first one
comes back. Two more are killed (no quorum: nothing may move), and the second one comes back (all
must move again). Then:

    each partition's file has every offset once, from 0 on, in order
    from a keep-alive time after the loss of the quorum until its return, nothing was written
    every partition advanced within 10 s of every moment at which there was a quorum again

A machine that runs nothing for longer than a time-out breaks no promise. So the program measures
and reports these stalls, and adds ten times their length to the 10 s.

Figures 1 (a partition, by node) and 2 (a node, by partition) are drawn from the files.

Run: `python bench/papers/failures.py [--pace 5] [--out FOLDER]`; about four minutes. `--pace`
divides this time and the time-outs.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan, nan
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from _nodes import Nodes, waited

from springhouse.simulate.chart import line_chart

NODES = (
    "BN4SCH102032018",
    "BN4SCH102031924",
    "BN4SCH102032017",
    "BN4SCH102031919",
    "BN4SCH102031619",
)
PARTITIONS = 10
KEEP_ALIVE_SECONDS = 3.0
PROGRESS_SECONDS = 10.0
DOT_SECONDS = 0.5
SCRIPT = Path(__file__).with_name("_failures_node.py")
RESULTS = Path(__file__).parents[1] / "results" / "003"

# Table 1, in seconds since its first line (29:15); before it, the cluster is in a steady state.
STEADY, SECOND, RESTORED, MINORITY, QUORUM, END = 30.0, 60.0, 91.0, 137.0, 181.0, 211.0


class Stalls:
    """TableMeasures how long this machine does not run a thread that wants to run."""

    def __init__(self) -> None:
        self._found: list[tuple[float, float]] = []
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            before = time.time()
            time.sleep(0.02)
            late = time.time() - before - 0.02
            if late > 0.1:
                self._found.append((before, late))

    def between(self, start: float, end: float) -> float:
        """The seconds that were lost between two moments."""
        return sum(late for at, late in self._found if start <= at <= end)


@dataclass
class Experiment:
    """The processes, and the times of the kills and restarts."""

    nodes: Nodes
    pace: float
    anchor: float = field(default_factory=time.time)
    actions: list[tuple[float, str]] = field(default_factory=list)
    stalls: Stalls = field(default_factory=Stalls)

    def start(self, name: str) -> None:
        addresses = self.nodes.addresses
        peers = ",".join(f"{each}={at}" for each, at in addresses.items() if each != name)
        self.nodes.start(
            name,
            str(SCRIPT),
            *("--name", name, "--listen", addresses[name], "--peers", peers),
            *("--folder", str(self.nodes.folder), "--partitions", str(PARTITIONS)),
            *("--anchor", str(self.anchor), "--pace", str(self.pace)),
        )

    def note(self, what: str) -> None:
        self.actions.append((time.time() - self.anchor, what))
        print(f"{self.actions[-1][0]:7.1f} s  {what}", flush=True)

    def leader(self) -> str:
        """The leader; waits until there is one, and until every partition has a running owner."""

        def found() -> str | None:
            report, running = self.nodes.report(), self.nodes.running
            if report is None or report.leader not in running:
                return None
            owners = [of.owner for of in report.newest.assignments.values()]
            settled = len(owners) == PARTITIONS and set(owners) <= set(running)
            return report.leader if settled else None

        leader = waited(found, "leader", 60.0, every=0.05)
        assert leader is not None
        return leader


@contextmanager
def running(folder: Path, pace: float) -> Iterator[Experiment]:
    experiment = Experiment(Nodes("experiment", NODES, folder), pace)
    try:
        yield experiment
    finally:
        experiment.nodes.end()


def perform(experiment: Experiment) -> dict[str, float]:
    """Table 1; the moments at which the quorum was lost and was back, and others that matter."""
    pace, moments = experiment.pace, {}
    for name in NODES:
        experiment.start(name)
    leader = experiment.leader()
    experiment.note(f"{leader} leads")
    time.sleep(STEADY / pace)
    began = time.monotonic()

    def until(seconds: float) -> None:
        time.sleep(max(began + seconds / pace - time.monotonic(), 0.0))

    def now() -> float:
        return time.time() - experiment.anchor

    first = experiment.leader()
    experiment.nodes.kill(first)
    moments["first killed"] = now()
    experiment.note(f"{first} (leader) killed")
    until(SECOND)
    second = experiment.leader()
    experiment.nodes.kill(second)
    moments["second killed"] = now()
    experiment.note(f"{second} (leader) killed")
    until(RESTORED)
    experiment.start(first)
    moments["first restored"] = now()
    experiment.note(f"{first} restored")
    until(MINORITY)
    # Any two except the restored one; Table 1 names these two.
    victims = [name for name in ("BN4SCH102031919", "BN4SCH102032017", *NODES) if name != first]
    for name in dict.fromkeys(name for name in victims if name in experiment.nodes.running):
        if len(experiment.nodes.running) > 2:
            experiment.nodes.kill(name)
            experiment.note(f"{name} killed")
    moments["quorum lost"] = now()
    until(QUORUM)
    experiment.start(second)
    moments["quorum back"] = now()
    experiment.note(f"{second} restored")
    until(END)
    patience = time.monotonic() + 6 * PROGRESS_SECONDS
    while time.monotonic() < patience and check(experiment, read(experiment), moments):
        time.sleep(0.5)
    moments["end"] = now()
    return moments


@dataclass(frozen=True)
class Written:
    """One event in a file, with times since the experiment began."""

    at: float
    partition: str
    offset: int
    node: str


def read(experiment: Experiment) -> dict[str, list[Written]]:
    """Every event, by partition."""
    found = {}
    for number in range(PARTITIONS):
        name = f"partition-{number}"
        lines = (experiment.nodes.folder / "events" / f"{name}.jsonl").read_text().splitlines()
        found[name] = [
            Written(each["time"] - experiment.anchor, name, each["offset"], each["node"])
            for each in map(json.loads, lines)
        ]
    return found


def check(
    experiment: Experiment, events: dict[str, list[Written]], moments: dict[str, float]
) -> list[str]:
    """All violations of the rules."""
    wrong = []
    silent = moments["quorum lost"] + KEEP_ALIVE_SECONDS / experiment.pace, moments["quorum back"]
    for partition, written in events.items():
        offsets = [each.offset for each in written]
        if offsets != list(range(len(offsets))):
            wrong.append(f"{partition}: offsets with a gap or twice")
        late = [each for each in written if silent[0] < each.at < silent[1]]
        if late:
            wrong.append(f"{partition}: {len(late)} events were written without a quorum")
        for what in ("first killed", "second killed", "first restored", "quorum back"):
            moment = moments[what]
            since = experiment.anchor + moment
            patience = PROGRESS_SECONDS + 10 * experiment.stalls.between(since - 5.0, since + 30.0)
            if not any(moment < each.at <= moment + patience for each in written):
                wrong.append(f"{partition}: no progress within {patience:.1f} s of: {what}")
    return wrong


def pauses(events: dict[str, list[Written]], moments: dict[str, float]) -> dict[str, float]:
    """After each step and before the next, how long the partition that waited longest stood."""
    found = {}
    for (what, moment), (_, then) in pairwise(moments.items()):
        if what == "quorum lost":
            continue
        longest = 0.0
        for written in events.values():
            times = [each.at for each in written]
            # The wait before there was a quorum does not count.
            last = max(t for t in times if t <= moment)
            since = moment if what == "quorum back" else last
            moved = [since, *(t for t in times if moment < t <= then), then]
            longest = max(longest, *(later - earlier for earlier, later in pairwise(moved)))
        found[what] = longest
    return found


def segments(written: list[Written], name: Callable[[Written], str]) -> dict[str, list]:
    """Time against offset, a curve for each name, with gaps while another name worked."""
    curves: dict[str, list[tuple[float, float]]] = {}
    last = None
    for each in written:
        curve = curves.setdefault(name(each), [])
        if curve and (name(each) != last or each.at - curve[-1][0] > 2 * DOT_SECONDS):
            curve.append((each.at, nan))
        # Ten points a second would only make the picture large.
        if not curve or isnan(curve[-1][1]) or each.at - curve[-1][0] >= DOT_SECONDS:
            curve.append((each.at, float(each.offset)))
        last = name(each)
    return curves


def draw(events: dict[str, list[Written]], out: Path) -> None:
    """Figures 1 and 2: the partition that moved most, and the node with most partitions."""
    by_partition = {p: segments(written, lambda each: each.node) for p, written in events.items()}
    partition = max(by_partition, key=lambda p: len(by_partition[p]))
    by_node = {
        node: {
            p: segments([e for e in written if e.node == node], lambda each: each.partition)
            for p, written in events.items()
            if any(each.node == node for each in written)
        }
        for node in NODES
    }
    node = max(by_node, key=lambda n: len(by_node[n]))
    work = {p: curves[p] for p, curves in by_node[node].items()}
    for number, title, curves in (
        (1, f"Figure 1: progress of {partition}", by_partition[partition]),
        (2, f"Figure 2: work of {node}", work),
    ):
        svg = line_chart(title, "seconds", "offset", curves, linear=True)
        (out / f"figure{number}.svg").write_text(svg)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pace", type=float, default=1.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, running(Path(name), given.pace) as experiment:
        try:
            moments = perform(experiment)
            experiment.nodes.end()
            events = read(experiment)
        except BaseException:
            print(experiment.nodes.last_words(), file=sys.stderr)
            raise
        wrong = check(experiment, events, moments)
        waits = pauses(events, moments)
        draw(events, given.out)
        found = {
            "pace": given.pace,
            "actions": experiment.actions,
            "moments": moments,
            "events": {partition: len(written) for partition, written in events.items()},
            "longest_pause_seconds": waits,
            "stalled_seconds": experiment.stalls.between(0.0, time.time()),
            "wrong": wrong,
        }
        (given.out / "failures.json").write_text(json.dumps(found, indent=2) + "\n")
    for what, seconds in waits.items():
        print(f"longest pause of a partition after: {what:<15} {seconds:5.1f} s")
    print(f"{sum(map(len, events.values())):,} events in {PARTITIONS} partitions")
    print(f"this machine stood still for {found['stalled_seconds']:.1f} s")
    print("\n".join(wrong) or "every offset once, no progress without quorum, progress with it")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
