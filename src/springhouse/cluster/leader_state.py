"""What does a leader know of the other nodes, and what does it send them?

One version is in progress at a time. The leader sends it to all nodes. When a majority of the
voters has accepted it, it is committed, and only then the leader makes the next version, of all
changes that have come together meanwhile. A follower gets the changes since the version that it is
known to have, or the complete state (`force`) if that version is too old. The first version of a
term changes nothing. It gives the leader's state a version of its own term, without which it could
not be committed (Raft, section 5.4.2).

Voters change one at a time, so that any majority before and any majority after the change have a
node in common (Ongaro's thesis, section 4.1). A node that lost its disk is first removed from the
voters, then added.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from springhouse.cluster.assigner import Assigner, Presence
from springhouse.cluster.election import find_voter_without_memory, is_voter, quorum_since
from springhouse.cluster.messages import Appended, AppendEntries, SendTime
from springhouse.cluster.node_load import LoadWatch, NodeLoad
from springhouse.cluster.ring import Ring
from springhouse.cluster.state import NO_CHANGES, ZERO, ClusterState, SnapshotVersion, StateChanges
from springhouse.cluster.timing import Timing
from springhouse.units import Instant, Seconds

_RECENT_VERSIONS = 16
"""A follower that is at most so many versions behind gets changes, another the complete state."""

_NEVER = Instant(float("-inf"))


class AnswerEffect(NamedTuple):
    """What an answer brought about: a commit, a release, a follower that waits for a message."""

    committed: bool
    released: bool
    waits: bool


_NO_EFFECT = AnswerEffect(committed=False, released=False, waits=False)


class Peer:
    """What a leader knows of another node.

    `heard_at` is when the node's last answer arrived, `answered` when the leader sent what that
    answered, and `echo` when the node sent it.
    """

    __slots__ = ("answered", "disk", "echo", "heard_at", "present", "required", "version")

    def __init__(
        self, version: SnapshotVersion, required: SnapshotVersion, heard_at: Instant
    ) -> None:
        self.version = version
        self.required = required
        self.heard_at = heard_at
        self.present = False
        self.answered = _NEVER
        self.echo: SendTime | None = None
        self.disk = 0


class LeaderState:
    """One leader in one term."""

    def __init__(
        self,
        name: str,
        term: int,
        state: ClusterState,
        ring: Ring,
        units: Mapping[str, float],
        timing: Timing,
        incarnation: int,
        now: Instant,
    ) -> None:
        self.name = name
        self._incarnation = incarnation
        self._elected_at = now
        self.term = term
        self.state = state
        self.committed = ZERO
        self.newest_changes = NO_CHANGES
        self.first_version = SnapshotVersion(term, state.version.number + 1)
        self.load_watch = LoadWatch()
        self.assigner = Assigner(ring, state, units)
        self._timing = timing
        self._changes: dict[SnapshotVersion, tuple[SnapshotVersion, StateChanges]] = {}
        self._accepted_by: set[str] = set()
        self._version_made_at = now
        self._acknowledged: dict[str, Instant] = {}
        self._unable: set[str] = set()
        # Set so far in the past that all leases of a former leader are over after settling.
        heard_at = Instant(now + timing.settling_seconds - timing.patience_seconds)
        self.peers = {
            node: Peer(state.version, self.first_version, heard_at)
            for node in ring.nodes
            if node != name
        }
        self._make_version(NO_CHANGES, now)

    # --- Versions -------------------------------------------------------------------------------

    @property
    def is_committing(self) -> bool:
        """Whether the newest version is not committed yet."""
        return self.committed != self.state.version

    def _make_version(self, changes: StateChanges, now: Instant) -> None:
        before = self.state.version
        version = SnapshotVersion(self.term, before.number + 1)
        self.state = self.state.apply(version, changes)
        self.newest_changes = changes
        self._changes[before] = (version, changes)
        if len(self._changes) > _RECENT_VERSIONS:
            del self._changes[next(iter(self._changes))]
        self._accepted_by = {self.name}
        self._version_made_at = now
        if changes.voters is not None:
            self._acknowledged = {
                node: moment
                for node, moment in self._acknowledged.items()
                if is_voter(self.state, node, self.peers[node].disk)
            }
        self._try_commit()

    def _try_commit(self) -> bool:
        if len(self._accepted_by) < self.state.majority or not self.is_committing:
            return False
        self.committed = self.state.version
        return True

    def propose(self, now: Instant, drains: Mapping[str, bool]) -> bool:
        """Make the next version, if there are changes and it is time; return whether it was."""
        if self.is_committing or not self.has_quorum(now):
            return False
        voters = self._next_voters()
        if voters is not None:
            self._make_version(StateChanges(voters=voters), now)
            return True
        presence = self.presence(now)
        shares = self._next_shares(presence, drains, now)
        state = self.state
        if shares is not None:
            state = state.apply(state.version, StateChanges(shares=shares))
        number = state.version.number + 1
        assignments, fenced = self.assigner.next_changes(state, number, presence)
        changes = StateChanges(assignments, None, shares)
        if not changes:
            return False
        self._make_version(changes, now)
        for node in fenced:
            self.peers[node].required = self.state.version
        return True

    def _next_voters(self) -> dict[str, int] | None:
        voters = self.state.voters
        disks = [(name, peer.disk) for name, peer in self.peers.items() if peer.present]
        lost = find_voter_without_memory(voters, disks)
        if lost is not None:
            return {name: disk for name, disk in voters.items() if name != lost}
        for name, disk in disks:
            if name not in voters and self.peers[name].version == self.state.version:
                return dict(sorted({**voters, name: disk}.items()))
        return None

    def _next_shares(
        self, presence: Presence, drains: Mapping[str, bool], now: Instant
    ) -> dict[str, float] | None:
        shares = dict(self.state.shares)
        for node, drained in drains.items():
            if drained:
                shares[node] = 0.0
            elif shares.get(node) == 0.0:
                del shares[node]
        whole = sum(shares.get(node, 1.0) for node in presence.present)
        by_load = self.load_watch.next_shares(
            presence.present, shares, lambda node: self.assigner.limiting_share(node, whole), now
        )
        shares = shares if by_load is None else by_load
        return shares if shares != self.state.shares else None

    # --- The other nodes ------------------------------------------------------------------------

    def record_load(self, node: str, load: NodeLoad, now: Instant) -> None:
        """A node reported its load, and whether it can work at all."""
        self.load_watch.record(node, load, now)
        if load.able:
            self._unable.discard(node)
        else:
            self._unable.add(node)

    def presence(self, now: Instant) -> Presence:
        """The nodes that can work and those that are gone; one that can't work is neither."""
        present, gone, unsure = [self.name], set(), False
        patience = self._timing.patience_seconds
        for name, peer in self.peers.items():
            if now > peer.heard_at + patience:
                gone.add(name)
                peer.present = False
                self.load_watch.forget(name)
            elif peer.present:
                present.append(name)
            else:
                unsure = True
        return Presence(sorted(set(present) - self._unable), gone, unsure)

    def quorum_since(self, now: Instant) -> Instant:
        """The latest moment at which a majority was with this leader for certain."""
        return quorum_since(self._acknowledged, self.state.voters, self.name, now)

    def has_quorum(self, now: Instant) -> bool:
        """Whether that moment is less than the keep-alive time ago."""
        return now < self.quorum_since(now) + self._timing.keep_alive_seconds

    def receive_answer(self, sender: str, answer: Appended, now: Instant) -> AnswerEffect:
        """Record the answer of a follower."""
        peer = self.peers.get(sender)
        incarnation, sent = answer.answers
        # An answer to an earlier incarnation, or to an earlier term, says nothing about this one.
        if peer is None or incarnation != self._incarnation:
            return _NO_EFFECT
        if sent < max(peer.answered, self._elected_at):
            return _NO_EFFECT
        is_new = sent > peer.answered
        self._update_peer(peer, answer, now)
        committed = self._count_acceptance(sender, answer)
        self.record_load(sender, answer.load, now)
        released = self.assigner.record_answer(sender, answer, self.state.assignments)
        is_behind = answer.version != self.state.version and sent >= self._version_made_at
        # A follower that is not bound does not know yet that the leader hears it. If it learns that
        # at once, a new leader has its quorum a heartbeat sooner, and a node that came back works
        # a heartbeat sooner.
        return AnswerEffect(committed, released, is_new and (is_behind or not answer.bound))

    def _update_peer(self, peer: Peer, answer: Appended, now: Instant) -> None:
        peer.answered = answer.answers.at
        peer.heard_at = now
        peer.present = True
        peer.echo = answer.sent
        if peer.disk not in (0, answer.disk):
            # The node lost its disk, and forgot which units it released. An old state that arrives
            # late would say that it still owns them, so it must apply at least this version.
            peer.required = self.state.version
        peer.disk = answer.disk
        peer.version = answer.version

    def _count_acceptance(self, sender: str, answer: Appended) -> bool:
        """Count what a voter acknowledged and accepted; return whether that committed a version."""
        if not is_voter(self.state, sender, answer.disk):
            self._acknowledged.pop(sender, None)
            return False
        if answer.bound:
            self._acknowledged[sender] = answer.answers.at
        if answer.version == self.state.version and answer.accepted:
            self._accepted_by.add(sender)
            return self._try_commit()
        return False

    def messages_to(
        self, nodes: Iterable[str], now: Instant
    ) -> Iterable[tuple[str, AppendEntries]]:
        """The messages that these nodes get now."""
        since = self.quorum_since(now)
        age = Seconds(now - since)
        has_quorum = age < self._timing.keep_alive_seconds
        version = self.state.version
        gone = now - self._timing.patience_seconds
        for name in nodes:
            peer = self.peers[name]
            previous, changes, state = peer.version, NO_CHANGES, None
            if not peer.present and peer.heard_at < gone:
                # Nobody knows which version it has, or whether it listens: its answer will show.
                previous = version
            elif previous != version:
                recent = self._changes_since(previous)
                changes, state = (NO_CHANGES, self.state) if recent is None else (recent, None)
            yield name, AppendEntries(
                self.term, SendTime(self._incarnation, now), peer.echo, previous, version, changes,
                state, self.committed, peer.required, has_quorum, age,
            )  # fmt: skip

    def _changes_since(self, version: SnapshotVersion) -> StateChanges | None:
        """All changes since a version, if the leader still has them."""
        step = self._changes.get(version)
        if step is None:
            return None
        version, changes = step
        while version != self.state.version:
            version, more = self._changes[version]
            changes = changes.then(more)
        return changes
