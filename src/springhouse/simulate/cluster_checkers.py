"""Did the cluster keep its laws?

The checkers are apart from the system. They see what nodes write to their disks, which units they
start and stop, and which node says that it leads. They know the true clocks and links, which no
node does.

    one leader       a term has at most one leader
    nothing lost     a state on a majority of the voters' disks is committed; then every later
                     leader starts from it, and no other state ever has its version
    applied          a node applies only committed states
    one owner        at one version, at most one node starts a unit
    one at a time    at one moment, at most one node works on a unit (a stronger law)
    sound            no assertion of the system itself fails
    quorum           a keep-alive time after a majority was last in touch, no node works
    able             without trouble only nodes that can work have units, each a fair part (a
                     quarter more or less, in whole units), and no more units move than necessary;
                     with any trouble, a leader that can't work gives itself no unit
"""

from collections import Counter
from collections.abc import Collection, Mapping
from math import ceil, floor

from springhouse.cluster.messages import Assign
from springhouse.cluster.state import ZERO, ClusterState, PersistentState, SnapshotVersion

_MORE_OR_LESS = 0.25


class BrokenLaw(AssertionError):
    """Something happened that must not happen: the state machine has a bug."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(f"{law}: {what}")
        self.law = law
        self.what = what
        self.replay: str | None = None

    @staticmethod
    def replayed(broken: AssertionError, replay: str) -> "BrokenLaw":
        """The broken law with the command that replays it. Any failed assertion breaks a law."""
        law = BrokenLaw("sound", repr(broken))
        if isinstance(broken, BrokenLaw):
            law = BrokenLaw(broken.law, broken.what)
        law.replay = replay
        law.args = (f"{law.law}: {law.what}\nreplay: {replay}",)
        return law


class Checkers:
    """Check the laws during one run."""

    def __init__(self) -> None:
        self.committed: dict[int, ClusterState] = {}
        self.newest: ClusterState | None = None
        self.workers: dict[str, str] = {}
        self._leaders: dict[int, tuple[str, int]] = {}
        self._accepted_by: dict[SnapshotVersion, set[str]] = {}
        self._owners: dict[tuple[int, str], str] = {}

    @property
    def elections(self) -> int:
        """The number of terms that had a leader."""
        return len(self._leaders)

    def check_leader(self, name: str, disk: int, term: int, first_version: int) -> None:
        """A node leads a term, and made this version first."""
        leader = self._leaders.setdefault(term, (name, disk))
        if leader != (name, disk):
            raise BrokenLaw("one leader", f"{leader[0]} and {name} both lead in term {term}")
        # Votes may arrive so late that another node leads a later term already; that does no harm.
        newest = self.newest.version if self.newest is not None else ZERO
        if newest.term < term and first_version <= newest.number:
            raise BrokenLaw(
                "nothing lost",
                f"{name} leads in term {term} from version {first_version - 1}, "
                f"but version {newest} is committed",
            )

    def record_persisted(self, name: str, persistent_state: PersistentState) -> None:
        """A node wrote this to its disk."""
        state = persistent_state.state
        if state.voters.get(name) != persistent_state.disk:
            return
        nodes = self._accepted_by.setdefault(state.version, set())
        nodes.add(name)
        if len(nodes) == state.majority and state.version.term > 0:
            self._commit(state)

    def _commit(self, state: ClusterState) -> None:
        version, newest = state.version, self.newest
        before = self.committed.setdefault(version.number, state)
        if before.version != version:
            raise BrokenLaw(
                "nothing lost", f"version {before.version} was committed, and now {version} is"
            )
        if newest is None:
            self.newest = state
            return
        if (version.number > newest.version.number) != (version > newest.version):
            raise BrokenLaw("nothing lost", f"{newest.version} was committed before {version}")
        if version > newest.version:
            for unit, assignment in newest.assignments.items():
                later = state.assignments.get(unit)
                if later is not None and later.offset < assignment.offset:
                    raise BrokenLaw(
                        "nothing lost", f"{unit} went back from offset {assignment.offset}"
                    )
            self.newest = state

    def check_applied(self, name: str, state: ClusterState) -> None:
        """A node applies a state."""
        known = self.committed.get(state.version.number)
        if known is None or known.version != state.version:
            raise BrokenLaw("applied", f"{name} applies {state.version}, which is not committed")
        if known is not state and known != state:
            raise BrokenLaw("applied", f"{name} has another state {state.version} than others")

    def check_start(
        self, name: str, order: Assign, applied: ClusterState, asleep: frozenset[str]
    ) -> None:
        """A node begins to work on units; nodes that are asleep do not work."""
        version = applied.version.number
        for unit, _ in order.units:
            assignment = applied.assignments.get(unit)
            if assignment is None or assignment.owner != name:
                raise BrokenLaw("one owner", f"{name} starts {unit}, which it does not own")
            owner = self._owners.setdefault((version, unit), name)
            if owner != name:
                raise BrokenLaw("one owner", f"{owner} and {name} own {unit} at {version}")
            other = self.workers.get(unit)
            if other is not None and other != name and other not in asleep:
                raise BrokenLaw("one at a time", f"{name} starts {unit} while {other} works on it")
            self.workers[unit] = name

    def record_stop(self, name: str, unit: str) -> None:
        """A node stops its work on a unit."""
        if self.workers.get(unit) == name:
            del self.workers[unit]

    def check_without_quorum(self, working: dict[str, set[str]], seconds: float) -> None:
        """No majority has been in touch for longer than the keep-alive time."""
        for name, units in working.items():
            if units:
                raise BrokenLaw(
                    "quorum", f"{name} works on {min(units)} after {seconds:.2f} s without quorum"
                )

    def check_awake(self, name: str, units: set[str]) -> None:
        """A node has woken up and had time for one step, and still works on these units."""
        for unit in units:
            other = self.workers.get(unit)
            if other is not None and other != name:
                raise BrokenLaw("one at a time", f"{name} works on {unit}, which {other} has")
            self.workers[unit] = name

    # --- Nodes that can work --------------------------------------------------------------------

    @property
    def owners(self) -> dict[str, str]:
        """The present or next owner of each unit, in the newest committed state."""
        assignments = self.newest.assignments if self.newest is not None else {}
        return {unit: each.next_owner for unit, each in assignments.items()}

    def find_unfairness(self, workers: Collection[str]) -> str | None:
        """What is unfair about the way in which these nodes share all units, if anything is."""
        owners = self.owners
        stranded = [unit for unit, owner in owners.items() if owner not in workers]
        if stranded:
            return f"{min(stranded)} is with {owners[min(stranded)]}, which can't work"
        least, most = _fair_part(len(owners), len(workers))
        counts = Counter(owners.values())
        for name in workers:
            if not least <= counts[name] <= most:
                return f"{name} has {counts[name]} units, not {least} to {most}"
        return None

    def check_moves(self, before: Mapping[str, str], workers: Collection[str]) -> None:
        """Other nodes can work now than before; check that only the necessary units moved."""
        counts = Counter(before.values())
        least, most = _fair_part(len(before), len(workers))
        stranded = sum(owner not in workers for owner in before.values())
        necessary = stranded + sum(
            max(counts[name] - most, 0) + max(least - counts[name], 0) for name in workers
        )
        owners = self.owners
        changed = sum(owners.get(unit) != owner for unit, owner in before.items())
        if changed > necessary:
            raise BrokenLaw("able", f"{changed} units moved, and {necessary} had to")

    def check_unable_leader(self, name: str, before: ClusterState, after: ClusterState) -> None:
        """A node that knows that it can't work replaces its state with another."""
        if self._leaders.get(after.version.term, ("", 0))[0] != name:
            return
        for unit, assignment in after.assignments.items():
            was = before.assignments.get(unit)
            if assignment.next_owner == name and (was is None or was.next_owner != name):
                raise BrokenLaw("able", f"{name} leads, can't work, and gives itself {unit}")


def _fair_part(units: int, nodes: int) -> tuple[int, int]:
    """The least and the most units that each of so many nodes should have."""
    fair = units / nodes
    return floor(fair * (1 - _MORE_OR_LESS)), ceil(fair * (1 + _MORE_OR_LESS))
