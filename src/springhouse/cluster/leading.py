"""What does a leader know of the others, and what does it tell them?

One version is under way at a time: it is sent to all, it is committed when a majority of the voters
keeps it, and only then the next one is made, of all that has come together meanwhile. A follower
gets the changes since what it is known to keep, or the whole state (`force`) if that is too long
ago. The first version of a term changes nothing; it makes what the leader keeps one of its own
term, without which it could not be committed (Raft, section 5.4.2).

Voters change one at a time, so that any majority before and any majority after have a node in
common (Ongaro's thesis, section 4.1): a node that lost its disk is first removed, then added.
"""

from collections.abc import Iterable, Mapping

from springhouse.cluster.assigning import Assigner, Presence
from springhouse.cluster.election import is_voter, quorum_since, without_memory
from springhouse.cluster.messages import Appended, AppendEntries, Sent
from springhouse.cluster.node_load import LoadWatch, NodeLoad
from springhouse.cluster.ring import Ring
from springhouse.cluster.state import NO_CHANGES, ZERO, ClusterState, SnapshotVersion, StateChanges
from springhouse.cluster.timing import Timing
from springhouse.units import Instant, Seconds

_TAIL = 16
"""So many versions back, changes are sent; what is further back gets the whole state."""

_NEVER = Instant(float("-inf"))


class Peer:
    """What a leader knows of one of the others."""

    __slots__ = ("answered", "disk", "echo", "heard", "here", "required", "stamp")

    def __init__(self, stamp: SnapshotVersion, required: SnapshotVersion, heard: Instant) -> None:
        self.stamp = stamp
        self.required = required
        self.heard = heard
        self.here = False
        self.answered = _NEVER
        self.echo: Sent | None = None
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
        life: int,
        now: Instant,
    ) -> None:
        self.name = name
        self._life = life
        self._began = now
        self.term = term
        self.state = state
        self.committed = ZERO
        self.newest = NO_CHANGES
        self.first = SnapshotVersion(term, state.stamp.version + 1)
        self.watch = LoadWatch()
        self.assigner = Assigner(ring, state, units)
        self._timing = timing
        self._changes: dict[SnapshotVersion, tuple[SnapshotVersion, StateChanges]] = {}
        self._kept_by: set[str] = set()
        self._made_at = now
        self._bound: dict[str, Instant] = {}
        self._unable: set[str] = set()
        # As if heard of so long ago that what a former leader granted is over after settling.
        heard = Instant(now + timing.settling_seconds - timing.patience_seconds)
        self.peers = {
            each: Peer(state.stamp, self.first, heard) for each in ring.nodes if each != name
        }
        self._make(NO_CHANGES, now)

    # --- Versions -------------------------------------------------------------------------------

    @property
    def under_way(self) -> bool:
        """Whether the newest version is not committed yet."""
        return self.committed != self.state.stamp

    def _make(self, changes: StateChanges, now: Instant) -> None:
        before = self.state.stamp
        stamp = SnapshotVersion(self.term, before.version + 1)
        self.state = self.state.changed(stamp, changes)
        self.newest = changes
        self._changes[before] = (stamp, changes)
        if len(self._changes) > _TAIL:
            del self._changes[next(iter(self._changes))]
        self._kept_by = {self.name}
        self._made_at = now
        if changes.voters is not None:
            self._bound = {
                each: moment
                for each, moment in self._bound.items()
                if is_voter(self.state, each, self.peers[each].disk)
            }
        self._count()

    def _count(self) -> bool:
        if len(self._kept_by) < self.state.majority or not self.under_way:
            return False
        self.committed = self.state.stamp
        return True

    def propose(self, now: Instant, drains: Mapping[str, bool]) -> bool:
        """Make the next version of all that has come together, if it is time; whether it was."""
        if self.under_way or not self.has_quorum(now):
            return False
        voters = self._next_voters()
        if voters is not None:
            self._make(StateChanges(voters=voters), now)
            return True
        presence = self.presence(now)
        shares = self._next_shares(presence, drains, now)
        state = self.state
        if shares is not None:
            state = state.changed(state.stamp, StateChanges(shares=shares))
        version = state.stamp.version + 1
        holdings, expelled = self.assigner.changes(state, version, presence)
        changes = StateChanges(holdings, None, shares)
        if not changes:
            return False
        self._make(changes, now)
        for each in expelled:
            self.peers[each].required = self.state.stamp
        return True

    def _next_voters(self) -> dict[str, int] | None:
        voters = self.state.voters
        known = [(name, peer.disk) for name, peer in self.peers.items() if peer.here]
        forgot = without_memory(voters, known)
        if forgot is not None:
            return {name: disk for name, disk in voters.items() if name != forgot}
        for name, disk in known:
            if name not in voters and self.peers[name].stamp == self.state.stamp:
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
        whole = sum(shares.get(node, 1.0) for node in presence.here)
        watched = self.watch.shares(
            presence.here, shares, lambda node: self.assigner.bounding_share(node, whole), now
        )
        shares = shares if watched is None else watched
        return shares if shares != self.state.shares else None

    # --- The others -----------------------------------------------------------------------------

    def reported(self, node: str, load: NodeLoad, now: Instant) -> None:
        """A node told its load, and whether it can work at all."""
        self.watch.reported(node, load, now)
        if load.able:
            self._unable.discard(node)
        else:
            self._unable.add(node)

    def presence(self, now: Instant) -> Presence:
        """Who is here to work and who is gone; who is here and can't work is neither."""
        here, gone, unsure = [self.name], set(), False
        patience = self._timing.patience_seconds
        for name, peer in self.peers.items():
            if now > peer.heard + patience:
                gone.add(name)
                peer.here = False
                self.watch.forget(name)
            elif peer.here:
                here.append(name)
            else:
                unsure = True
        return Presence(sorted(set(here) - self._unable), gone, unsure)

    def quorum_since(self, now: Instant) -> Instant:
        """The latest moment at which a majority was with this leader for certain."""
        return quorum_since(self._bound, self.state.voters, self.name, now)

    def has_quorum(self, now: Instant) -> bool:
        """Whether that moment is less than the keep-alive time ago."""
        return now < self.quorum_since(now) + self._timing.keep_alive_seconds

    def answered(self, sender: str, answer: Appended, now: Instant) -> tuple[bool, bool, bool]:
        """Take in an answer: was a version committed, a unit released, does it wait for a word?"""
        peer = self.peers.get(sender)
        life, sent = answer.answers
        # What answers an earlier life, or an earlier term, says nothing about this one.
        if peer is None or life != self._life or sent < max(peer.answered, self._began):
            return False, False, False
        news = sent > peer.answered
        peer.answered = sent
        peer.heard = now
        peer.here = True
        peer.echo = answer.sent
        if peer.disk not in (0, answer.disk):
            # It forgot what it let go of in its former life. A state of then that comes late would
            # tell it that it still owns that, so none that is older than this one will do.
            peer.required = self.state.stamp
        peer.disk = answer.disk
        peer.stamp = answer.stamp
        committed = False
        if is_voter(self.state, sender, answer.disk):
            if answer.bound:
                self._bound[sender] = sent
            if answer.stamp == self.state.stamp and answer.taken:
                self._kept_by.add(sender)
                committed = self._count()
        else:
            self._bound.pop(sender, None)
        self.reported(sender, answer.load, now)
        released = self.assigner.reported(sender, answer, self.state.holdings)
        behind = answer.stamp != self.state.stamp and sent >= self._made_at
        # Who is not bound has not heard yet that it is heard. Told at once, a new leader has its
        # quorum, and a node that came back its permission, a heartbeat sooner.
        return committed, released, news and (behind or not answer.bound)

    def messages(self, to: Iterable[str], now: Instant) -> Iterable[tuple[str, AppendEntries]]:
        """What each of these is told now."""
        since = self.quorum_since(now)
        age = Seconds(now - since)
        has_quorum = age < self._timing.keep_alive_seconds
        stamp = self.state.stamp
        gone = now - self._timing.patience_seconds
        for name in to:
            peer = self.peers[name]
            previous, changes, state = peer.stamp, NO_CHANGES, None
            if not peer.here and peer.heard < gone:
                # Nobody knows what it keeps, or whether it listens: its answer will tell.
                previous = stamp
            elif previous != stamp:
                found = self._since(previous)
                changes, state = (found, None) if found is not None else (NO_CHANGES, self.state)
            yield name, AppendEntries(
                self.term, Sent(self._life, now), peer.echo, previous, stamp, changes, state,
                self.committed, peer.required, has_quorum, age,
            )  # fmt: skip

    def _since(self, stamp: SnapshotVersion) -> StateChanges | None:
        """All changes since a version, if they are still known."""
        step = self._changes.get(stamp)
        if step is None:
            return None
        stamp, changes = step
        while stamp != self.state.stamp:
            stamp, more = self._changes[stamp]
            changes = changes.then(more)
        return changes
