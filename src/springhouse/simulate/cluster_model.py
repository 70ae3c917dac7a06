"""What is a pretend cluster made of?

A run has conditions and an outcome. A machine has a clock that drifts and starts anew with each
incarnation, a disk that may survive a crash or not, a node if it runs, and a Spark, without which
the node can't work.
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
"""The paper's time-outs with fewer heartbeats, which take most of the time of a run."""


@dataclass(frozen=True)
class ClusterConditions:
    """The size of a cluster, its time-outs, and the seed from which all events follow."""

    nodes: int = 5
    units: int = 10
    seed: int = 1
    timing: Timing = TIMING

    @property
    def replay(self) -> str:
        """The command that repeats the run and prints its story."""
        size = f"--nodes {self.nodes} --units {self.units}"
        return f"springhouse simulate cluster {size} --seed {self.seed} --story"


@dataclass(frozen=True)
class ClusterOutcome:
    """The outcome of a run that broke no law; times are those of the pretend world."""

    seed: int
    seconds: float
    events: int
    troubles: int
    elections: int
    versions: int
    leader_after_seconds: float
    units_after_seconds: float


class NodeFactory(Protocol):
    """Makes a node; tests make broken ones."""

    def __call__(
        self,
        name: str,
        nodes: Iterable[str],
        timing: Timing,
        dice: Dice,
        now: Instant,
        persistent_state: PersistentState | None = None,
    ) -> Node: ...


class Host:
    """A machine: its clock, its disk, its Spark, and its node, if it runs.

    It is paused until `paused_until`. A `torn` machine crashes in the middle of its next step, a
    `doomed` one after its next vote.
    """

    __slots__ = (
        "able",
        "applied",
        "disk",
        "doomed",
        "incarnation",
        "leaving",
        "led",
        "name",
        "node",
        "offset",
        "paused_until",
        "rate",
        "sparks",
        "torn",
        "wakes_at",
        "working",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.disk: PersistentState | None = None
        self.incarnation = 0
        self.rate, self.offset = 1.0, 0.0
        self.paused_until = 0.0
        self.torn = self.doomed = False
        self.wakes_at = inf
        self.able, self.sparks = True, 0
        self.working: set[str] = set()
        self.leaving: dict[str, int] = {}
        self.led = 0
        self.applied: ClusterState = EMPTY
