"""How long does a node wait, and what may it conclude from having waited?

Nodes never compare their clocks. They only assume that the clocks run at the same speed, up to
`drift`. Then the passing of time proves that a node far away has stopped. With K the keep-alive
time and T the election time-out:

    a node processes only until K after the last moment at which it had a quorum (its clock)
    a node that acknowledged a leader gives no vote to another node for T (its clock)
    so `patience_seconds` after a leader last heard of a node, that node has stopped;
    and `settling_seconds` after an election, every node has stopped that only the former leader
    knew of

The defaults are those of 003 section 5.1.
"""

from dataclasses import dataclass

from springhouse.errors import SpringhouseError
from springhouse.units import Seconds


@dataclass(frozen=True)
class Timing:
    """The time-outs of a cluster, the same on every node."""

    heartbeat_seconds: Seconds = Seconds(0.3)
    election_seconds: Seconds = Seconds(3.0)
    keep_alive_seconds: Seconds = Seconds(3.0)
    drift: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < 2 * self.heartbeat_seconds <= self.election_seconds:
            raise SpringhouseError(
                f"a heartbeat every {self.heartbeat_seconds:g} s is too slow for an election "
                f"time-out of {self.election_seconds:g} s",
                hint="A leader needs two heartbeats, better ten, within an election time-out.",
            )
        if self.keep_alive_seconds < 2 * self.heartbeat_seconds:
            raise SpringhouseError(
                f"a keep-alive time of {self.keep_alive_seconds:g} s is too short for a heartbeat "
                f"every {self.heartbeat_seconds:g} s",
                hint="Nodes would stop between two heartbeats; make it at least twice as long.",
            )
        if not 0 <= self.drift < 0.5:
            raise SpringhouseError(
                f"clocks whose speeds differ by {self.drift:.0%} can't prove anything",
                hint="Real clocks differ by less than 0.1 %; 5 % is a generous bound.",
            )

    @property
    def patience_seconds(self) -> Seconds:
        """How long a leader waits, on its clock, until a silent node's keep-alive time is over."""
        return Seconds(self.keep_alive_seconds * (1 + self.drift) / (1 - self.drift))

    @property
    def settling_seconds(self) -> Seconds:
        """How long a new leader waits until all leases of its predecessor are over."""
        granted = self.keep_alive_seconds / (1 - self.drift)
        waited = self.election_seconds / (1 + self.drift)
        return Seconds(max(granted - waited, 0.0) * (1 + self.drift))
