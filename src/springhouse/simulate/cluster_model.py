"""What is a pretend cluster made of?

The conditions of a run and what came of it, and the machines: a clock that drifts and starts anew
with each life, a disk that survives a crash or does not, and the node on it, if it runs; and a
Spark, without which the node can't work.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Protocol

from springhouse.cluster.raft_node import Node
from springhouse.cluster.state import EMPTY, ClusterState, PersistentState
from springhouse.cluster.timing import Timing
from springhouse.units import Dice, Instant, Seconds

TIMING = Timing(heartbeat_seconds=Seconds(0.75))
"""The paper's time-outs, with fewer heartbeats: they are most of what a run costs."""


@dataclass(frozen=True)
class ClusterConditions:
    """A cluster, and the seed of all that happens to it."""

    nodes: int = 5
    units: int = 10
    seed: int = 1
    timing: Timing = TIMING

    @property
    def replay(self) -> str:
        """The one command that does the same again, and tells what happens."""
        size = f"--nodes {self.nodes} --units {self.units}"
        return f"springhouse simulate cluster {size} --seed {self.seed} --story"


@dataclass(frozen=True)
class ClusterOutcome:
    """What came of a run that broke no law; times are in the pretend world."""

    seed: int
    seconds: float
    events: int
    troubles: int
    elections: int
    versions: int
    leader_after_seconds: float
    units_after_seconds: float


class MakesNode(Protocol):
    """How a node is made; tests make broken ones."""

    def __call__(
        self,
        name: str,
        nodes: Iterable[str],
        timing: Timing,
        dice: Dice,
        now: Instant,
        memory: PersistentState | None = None,
    ) -> Node: ...


class Host:
    """A machine: its clock, its disk, its Spark, and the node on it, if it runs."""

    __slots__ = (
        "able", "acting", "disk", "doomed", "leaving", "led", "life", "name", "node", "offset",
        "rate", "sparks", "torn", "until", "wakes_at", "working",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.disk: PersistentState | None = None
        self.life = 0
        self.rate, self.offset = 1.0, 0.0
        self.until = 0.0
        self.torn = self.doomed = False
        self.wakes_at = inf
        self.able, self.sparks = True, 0
        self.working: set[str] = set()
        self.leaving: dict[str, int] = {}
        self.led = 0
        self.acting: ClusterState = EMPTY
