"""Did the cluster keep its laws?

Apart from the system: the checkers see what is written to disks, what nodes take and let go, and
who calls itself a leader; they know the truth about clocks and links, which no node does.

    one leader       at most one per term
    nothing lost     what a majority of the voters' disks has is committed; then every later leader
                     starts from it, and no other state ever has its version
    acting           a node acts only on committed states
    one owner        at one version, a unit is taken by at most one node
    one at a time    at one moment, a unit is worked on by at most one node (a stronger law)
    sound            no assertion of the system itself fails
    quorum           a keep-alive time after a majority was last in touch, nothing is worked on
    able             in good weather only those who can work have units, each a fair part (a quarter
                     more or less, in whole units), and no more change hands than that demands;
                     in any weather, a leader that can't work gives itself none
"""

from collections import Counter
from collections.abc import Collection, Mapping
from math import ceil, floor

from springhouse.cluster.messages import Assign
from springhouse.cluster.state import ZERO, ClusterState, PersistentState, SnapshotVersion

_MORE_OR_LESS = 0.25


class BrokenLaw(AssertionError):
    """What must not happen happened: a bug of the state machine."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(f"{law}: {what}")
        self.law = law
        self.what = what
        self.replay: str | None = None

    @staticmethod
    def replayed(broken: AssertionError, replay: str) -> "BrokenLaw":
        """What is broken, and how to see it again; a node that fails by itself breaks a law too."""
        made = BrokenLaw("sound", repr(broken))
        if isinstance(broken, BrokenLaw):
            made = BrokenLaw(broken.law, broken.what)
        made.replay = replay
        made.args = (f"{made.law}: {made.what}\nreplay: {replay}",)
        return made


class Checkers:
    """Watch one run."""

    def __init__(self) -> None:
        self.committed: dict[int, ClusterState] = {}
        self.newest: ClusterState | None = None
        self.hands: dict[str, str] = {}
        self._leaders: dict[int, tuple[str, int]] = {}
        self._kept: dict[SnapshotVersion, set[str]] = {}
        self._owners: dict[tuple[int, str], str] = {}

    @property
    def elections(self) -> int:
        """How many terms had a leader."""
        return len(self._leaders)

    def leads(self, name: str, disk: int, term: int, first_version: int) -> None:
        """A node calls itself the leader of a term, and made this version."""
        leader = self._leaders.setdefault(term, (name, disk))
        if leader != (name, disk):
            raise BrokenLaw("one leader", f"{leader[0]} and {name} both lead in term {term}")
        # Votes may come so late that another leads in a later term already; that does no harm.
        newest = self.newest.stamp if self.newest is not None else ZERO
        if newest.term < term and first_version <= newest.version:
            raise BrokenLaw(
                "nothing lost",
                f"{name} leads in term {term} from version {first_version - 1}, "
                f"but version {newest} is committed",
            )

    def written(self, name: str, memory: PersistentState) -> None:
        """This is on a node's disk from now on."""
        state = memory.state
        if state.voters.get(name) != memory.disk:
            return
        kept = self._kept.setdefault(state.stamp, set())
        kept.add(name)
        if len(kept) == state.majority and state.stamp.term > 0:
            self._commit(state)

    def _commit(self, state: ClusterState) -> None:
        stamp, newest = state.stamp, self.newest
        before = self.committed.setdefault(stamp.version, state)
        if before.stamp != stamp:
            raise BrokenLaw(
                "nothing lost", f"version {before.stamp} was committed, and now {stamp} is"
            )
        if newest is None:
            self.newest = state
            return
        if (stamp.version > newest.stamp.version) != (stamp > newest.stamp):
            raise BrokenLaw("nothing lost", f"{newest.stamp} was committed before {stamp}")
        if stamp > newest.stamp:
            for unit, holding in newest.holdings.items():
                later = state.holdings.get(unit)
                if later is not None and later.offset < holding.offset:
                    raise BrokenLaw(
                        "nothing lost", f"{unit} went back from offset {holding.offset}"
                    )
            self.newest = state

    def acts_on(self, name: str, state: ClusterState) -> None:
        """A node takes a state for committed."""
        known = self.committed.get(state.stamp.version)
        if known is None or known.stamp != state.stamp:
            raise BrokenLaw("acting", f"{name} acts on {state.stamp}, which is not committed")
        if known is not state and known != state:
            raise BrokenLaw("acting", f"{name} has another state {state.stamp} than others")

    def takes(self, name: str, order: Assign, acting: ClusterState, asleep: frozenset[str]) -> None:
        """A node begins to work on units; those who are asleep work on nothing."""
        version = acting.stamp.version
        for unit, _ in order.units:
            holding = acting.holdings.get(unit)
            if holding is None or holding.owner != name:
                raise BrokenLaw("one owner", f"{name} takes {unit}, which is not its own")
            owner = self._owners.setdefault((version, unit), name)
            if owner != name:
                raise BrokenLaw("one owner", f"{owner} and {name} own {unit} at {version}")
            other = self.hands.get(unit)
            if other is not None and other != name and other not in asleep:
                raise BrokenLaw("one at a time", f"{name} takes {unit} while {other} works on it")
            self.hands[unit] = name

    def lets_go(self, name: str, unit: str) -> None:
        """A node works on a unit no more."""
        if self.hands.get(unit) == name:
            del self.hands[unit]

    def without_quorum(self, working: dict[str, set[str]], seconds: float) -> None:
        """For longer than the keep-alive time no majority has been in touch."""
        for name, units in working.items():
            if units:
                raise BrokenLaw(
                    "quorum", f"{name} works on {min(units)} after {seconds:.2f} s without quorum"
                )

    def awoke(self, name: str, units: set[str]) -> None:
        """A node that was asleep had its first moment, and still works on these."""
        for unit in units:
            other = self.hands.get(unit)
            if other is not None and other != name:
                raise BrokenLaw("one at a time", f"{name} works on {unit}, which {other} has")
            self.hands[unit] = name

    # --- Who can work ---------------------------------------------------------------------------

    @property
    def owners(self) -> dict[str, str]:
        """Who has what, or gets it next, in the newest committed state."""
        holdings = self.newest.holdings if self.newest is not None else {}
        return {unit: each.next_owner for unit, each in holdings.items()}

    def unfair(self, workers: Collection[str]) -> str | None:
        """What is wrong with how these share all units, if anything is."""
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

    def moved(self, before: Mapping[str, str], workers: Collection[str]) -> None:
        """Others can work now than before: only what had to did change hands."""
        counts = Counter(before.values())
        least, most = _fair_part(len(before), len(workers))
        stranded = sum(owner not in workers for owner in before.values())
        demanded = stranded + sum(
            max(counts[name] - most, 0) + max(least - counts[name], 0) for name in workers
        )
        owners = self.owners
        changed = sum(owners.get(unit) != owner for unit, owner in before.items())
        if changed > demanded:
            raise BrokenLaw("able", f"{changed} units changed hands, and {demanded} had to")

    def kept_unable(self, name: str, before: ClusterState, after: ClusterState) -> None:
        """A node that knows that it can't work writes this down in place of that."""
        if self._leaders.get(after.stamp.term, ("", 0))[0] != name:
            return
        for unit, holding in after.holdings.items():
            was = before.holdings.get(unit)
            if holding.next_owner == name and (was is None or was.next_owner != name):
                raise BrokenLaw("able", f"{name} leads, can't work, and gives itself {unit}")


def _fair_part(units: int, nodes: int) -> tuple[int, int]:
    """The least and the most that each of so many nodes should have."""
    fair = units / nodes
    return floor(fair * (1 - _MORE_OR_LESS)), ceil(fair * (1 + _MORE_OR_LESS))
