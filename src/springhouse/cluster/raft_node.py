"""What does a node do when something happens?

    Follower --(first state that was not forced)--> SynchronizedFollower
        ^  \\                                             |
        |   +--(no leader for an election time-out)---> Candidate --(majority)--> Leader
        +----------------(a later term, or a leader)------+-------------------------+

This is 003 section 4.2 as one state machine. Events go into `step`, orders come out, and nothing
else happens. `step` never waits, never reads a clock, and uses only its own dice. So `run`, with
gRPC, timers and a disk, and a simulator, with pretend ones, run the very same decisions.

    node = Node("a", ["a", "b", "c"], Timing(), Dice(7), now, state_from_disk_or_None)
    for order in node.step(event, now): ...      # in this order; Persist is always the first
    sleep_until(node.wake_at)                    # or until an event, then node.step(Tick(), now)

`now` is the time of a clock that never goes back, and that runs on while the machine sleeps.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

from springhouse.cluster import election, follower
from springhouse.cluster.bootstrap import Bootstrap, draw_identifier
from springhouse.cluster.leader_state import LeaderState
from springhouse.cluster.messages import (
    Appended,
    AppendEntries,
    AskForVote,
    DrainAsked,
    Event,
    Introduce,
    Introduced,
    LoadMeasured,
    Message,
    Order,
    Persist,
    Progressed,
    Received,
    Released,
    Send,
    SendTime,
    Tick,
    UnitsDeclared,
    Vote,
)
from springhouse.cluster.node_load import IDLE, NodeLoad
from springhouse.cluster.processing import Processing
from springhouse.cluster.ring import ring_of
from springhouse.cluster.state import (
    EMPTY,
    Assignment,
    ClusterState,
    PersistentState,
    SnapshotVersion,
)
from springhouse.cluster.timing import Timing
from springhouse.units import Dice, Instant

_NEVER = Instant(float("-inf"))


class Role(Enum):
    """The role of a node in its cluster."""

    FOLLOWER = "Follower"
    SYNCHRONIZED_FOLLOWER = "SynchronizedFollower"
    CANDIDATE = "Candidate"
    LEADER = "Leader"


class Node:
    """One node. Others may read its state; only `step` changes it."""

    def __init__(
        self,
        name: str,
        nodes: Iterable[str],
        timing: Timing,
        dice: Dice,
        now: Instant,
        persistent_state: PersistentState | None = None,
    ) -> None:
        self.name = name
        self.timing = timing
        self.ring = ring_of(frozenset((name, *nodes)))
        self.peers = tuple(sorted(self.ring.nodes - {name}))
        self.role = Role.FOLLOWER
        self.leader: str | None = None
        self.leadership: LeaderState | None = None
        self.lease_until = _NEVER
        self.processing = Processing(name)
        self._dice = dice
        self._incarnation = draw_identifier(dice)
        self._persisted = persistent_state
        initial = persistent_state
        if initial is None:
            initial = PersistentState(draw_identifier(dice), 0, None, EMPTY)
        self.disk, self.term, self.vote = initial.disk, initial.term, initial.vote
        self.accepted = initial.state
        self.load = IDLE
        self._units: dict[str, float] | None = None
        self._drains: dict[str, bool] = {}
        self._bootstrap = Bootstrap(name, self.peers, timing)
        self._pre_vote = False
        self._votes: set[str] = set()
        # The node may have acknowledged a leader just before it started: it acts as if it had.
        self._acknowledged_at = now
        self._last_answer: Appended | None = None
        # The changes since the state that was applied; None: they are unknown.
        self._unapplied: dict[str, Assignment | None] | None = None
        self._timeout_at = now
        self._heartbeat_at = now
        self._wait_for_leader(now)
        self._orders: list[Order] = []

    # --- What others may read -------------------------------------------------------------------

    @property
    def applied(self) -> ClusterState:
        """The last state that this node knows to be committed."""
        return self.processing.applied

    @property
    def is_voter(self) -> bool:
        """Whether this node is one of the voters."""
        return election.is_voter(self.accepted, self.name, self.disk)

    def may_process(self, now: Instant) -> bool:
        """Whether this node had a quorum within the keep-alive time."""
        return now < self.lease_until

    @property
    def wake_at(self) -> Instant:
        """When a `Tick` is due at the latest."""
        at = self._heartbeat_at if self.role is Role.LEADER else self._timeout_at
        return min(at, self.lease_until) if self.processing.is_busy else at

    # --- Events ---------------------------------------------------------------------------------

    def step(self, event: Event, now: Instant) -> list[Order]:
        """The orders that follow from an event, to be carried out in this order."""
        orders = self._orders = []
        self._stop_in_time(event, now)
        match event:
            case Received(sender, message):
                self._receive(sender, message, now)
            case Tick():
                self._tick(now)
            case Released(units):
                self._receive_release(units, now)
            case Progressed(unit, offset):
                self.processing.record_progress(unit, offset)
            case LoadMeasured(load):
                self._record_load(load, now)
            case UnitsDeclared(units):
                self._declare(units)
            case DrainAsked(node, drained):
                if self.leadership is not None and node in self.ring.nodes:
                    self._drains[node] = drained
        self._reconcile(now)
        state = PersistentState(self.disk, self.term, self.vote, self.accepted)
        if self._must_persist(state):
            self._persisted = state
            orders.insert(0, Persist(state))
        return orders

    def _must_persist(self, state: PersistentState) -> bool:
        before = self._persisted
        # States are compared by identity: they are large, and a changed one is another object.
        return (
            before is None
            or before.state is not state.state
            or (before.term, before.vote, before.disk) != (state.term, state.vote, state.disk)
        )

    def _stop_in_time(self, event: Event, now: Instant) -> None:
        """Stop the work before anything else, if time has passed unnoticed."""
        if isinstance(event, Released):
            # Otherwise the node would order its worker to release units that it released already.
            # The worker would carry that out after it has got the units anew.
            self.processing.mark_released(event.units)
        if not self.may_process(now):
            self._reconcile(now)

    def _record_load(self, load: NodeLoad, now: Instant) -> None:
        self.load = load
        if self.leadership is not None:
            self.leadership.record_load(self.name, load, now)

    def _declare(self, units: Mapping[str, float]) -> None:
        self._units = dict(units)
        if self.leadership is not None:
            self.leadership.assigner.declare(self._units)

    def _receive(self, sender: str, message: Message, now: Instant) -> None:
        if sender not in self.ring.nodes or sender == self.name:
            return
        match message:
            case AppendEntries():
                self._receive_entries(sender, message, now)
            case Appended():
                self._receive_answer(sender, message, now)
            case AskForVote():
                self._receive_vote_request(sender, message, now)
            case Vote():
                self._receive_vote(sender, message, now)
            case Introduce():
                self._receive_introduction(sender, message)
            case Introduced():
                self._receive_introduction_answer(sender, message, now)

    def _tick(self, now: Instant) -> None:
        if self.leadership is not None:
            if now >= self._heartbeat_at:
                self._send_heartbeat(self.leadership, now)
        elif now >= self._timeout_at:
            if self.is_voter:
                self._start_election(now, pre_vote=True)
            else:
                self._wait_for_leader(now)
                if not self.accepted.voters:
                    sent = SendTime(self._incarnation, now)
                    self._bootstrap.ask(sent)
                    self._begin_with(self._bootstrap.founded_state(self.disk), now)
                    self._send_to_all(Introduce(sent))

    # --- Elections ------------------------------------------------------------------------------

    def _wait_for_leader(self, now: Instant) -> None:
        wait = self.timing.election_seconds
        self._timeout_at = Instant(now + self._dice.between(wait, 1.5 * wait))

    def _enter_term(self, term: int, now: Instant) -> None:
        """Enter a later term, in which this node has not voted yet."""
        if self.leadership is not None:
            # A leader is bound to its followers as they are to it.
            self._acknowledged_at = max(self._acknowledged_at, self.leadership.quorum_since(now))
        if self.role is Role.LEADER:
            self._wait_for_leader(now)
        self.term, self.vote = term, None
        self.role, self.leader, self.leadership = Role.FOLLOWER, None, None
        self._drains = {}
        self._last_answer = None

    def _start_election(self, now: Instant, *, pre_vote: bool) -> None:
        """Ask for votes, or for pre-votes first."""
        if not pre_vote:
            self.term, self.vote = self.term + 1, self.name
            self.leader = None
        self.role, self._pre_vote = Role.CANDIDATE, pre_vote
        self._votes = {self.name}
        wait = self.timing.election_seconds
        self._timeout_at = Instant(now + self._dice.between(0.3 * wait, 0.6 * wait))
        self._send_to_all(AskForVote(self._requested_term, self.accepted.version, pre_vote))
        self._count_votes(now)

    @property
    def _requested_term(self) -> int:
        """The term of the votes that this candidate asks for."""
        return self.term + 1 if self._pre_vote else self.term

    def _is_bound(self, now: Instant) -> bool:
        acknowledged_at = self._acknowledged_at
        if self.leadership is not None:
            acknowledged_at = max(acknowledged_at, self.leadership.quorum_since(now))
        return election.is_bound(acknowledged_at, now, self.timing.election_seconds)

    def _receive_vote_request(self, sender: str, message: AskForVote, now: Instant) -> None:
        acceptable = not self._is_bound(now) and election.is_up_to_date(
            message.version, self.accepted.version
        )
        if message.pre_vote:
            granted = acceptable and message.term > self.term
        else:
            granted = self._vote(sender, message.term, now, acceptable=acceptable)
        answer = Vote(self.term, message.term, granted, message.pre_vote, self.disk)
        self._orders.append(Send(sender, answer))

    def _vote(self, candidate: str, term: int, now: Instant, *, acceptable: bool) -> bool:
        """Vote for an acceptable candidate, if this node has not voted for another in that term."""
        if term > self.term and not self._is_bound(now):
            self._enter_term(term, now)
        if not acceptable or term < self.term or not election.may_vote_for(candidate, self.vote):
            return False
        self.vote = candidate
        self._wait_for_leader(now)
        return True

    def _receive_vote(self, sender: str, message: Vote, now: Instant) -> None:
        if message.term > self.term:
            self._enter_term(message.term, now)
        if self.role is not Role.CANDIDATE or message.pre_vote is not self._pre_vote:
            return
        if message.granted and message.requested_term == self._requested_term:
            if election.is_voter(self.accepted, sender, message.disk):
                self._votes.add(sender)
            self._count_votes(now)

    def _count_votes(self, now: Instant) -> None:
        if len(self._votes) < self.accepted.majority:
            return
        if self._pre_vote:
            self._start_election(now, pre_vote=False)
        else:
            self._become_leader(now)

    # --- Leading --------------------------------------------------------------------------------

    def _become_leader(self, now: Instant) -> None:
        self.role, self.leader = Role.LEADER, self.name
        units = self._units
        if units is None:
            units = dict.fromkeys(self.accepted.assignments, 1.0)
        self.leadership = LeaderState(
            self.name,
            self.term,
            self.accepted,
            self.ring,
            units,
            self.timing,
            self._incarnation,
            now,
        )
        # Units may move before the first heartbeat, and must not move to a leader that can't work.
        self.leadership.record_load(self.name, self.load, now)
        self._publish_version(self.leadership, now)

    def _publish_version(self, leadership: LeaderState, now: Instant) -> None:
        """Accept a new version of this leader, and send it to all."""
        self._accept(leadership.state, leadership.newest_changes.assignments)
        self._apply_committed(leadership.committed)
        self._send_entries_to_all(leadership, now)

    def _send_heartbeat(self, leadership: LeaderState, now: Instant) -> None:
        self._record_own_answer(leadership, now)
        self._renew_own_lease(leadership, now)
        if not self._propose(leadership, now):
            self._send_entries_to_all(leadership, now)

    def _propose(self, leadership: LeaderState, now: Instant) -> bool:
        if not leadership.propose(now, self._drains):
            return False
        self._drains = {}
        self._publish_version(leadership, now)
        return True

    def _record_own_answer(self, leadership: LeaderState, now: Instant) -> bool:
        """Record this node's own answer; return whether a handover can go on."""
        answer = self._make_answer(SendTime(self._incarnation, now), now, bound=True, accepted=True)
        return leadership.assigner.record_answer(self.name, answer, leadership.state.assignments)

    def _send_entries_to_all(self, leadership: LeaderState, now: Instant) -> None:
        self._heartbeat_at = Instant(now + self.timing.heartbeat_seconds)
        self._send_entries(leadership, self.peers, now)

    def _send_entries(self, leadership: LeaderState, to: Iterable[str], now: Instant) -> None:
        self._orders.extend(
            Send(name, message) for name, message in leadership.messages_to(to, now)
        )

    def _receive_answer(self, sender: str, message: Appended, now: Instant) -> None:
        if message.term > self.term:
            self._enter_term(message.term, now)
        leadership = self.leadership
        if leadership is None or message.term < self.term:
            return
        effect = leadership.receive_answer(sender, message, now)
        self._apply_committed(leadership.committed)
        has_new_lease = not self.may_process(now) and self._renew_own_lease(leadership, now)
        if (effect.released or has_new_lease) and self._propose(leadership, now):
            return
        # The followers do not know yet that there is a quorum, or that the version is committed.
        if has_new_lease or (effect.committed and leadership.newest_changes):
            self._send_entries_to_all(leadership, now)
        elif effect.waits:
            self._send_entries(leadership, (sender,), now)

    def _renew_own_lease(self, leadership: LeaderState, now: Instant) -> bool:
        """Process on while there is a quorum; return whether this node may process."""
        if self.applied.version >= leadership.first_version:
            until = leadership.quorum_since(now) + self.timing.keep_alive_seconds
            self.lease_until = max(self.lease_until, Instant(until))
        return self.may_process(now)

    # --- Following ------------------------------------------------------------------------------

    def _receive_entries(self, sender: str, message: AppendEntries, now: Instant) -> None:
        state = follower.accept_entries(self.term, self.accepted, message)
        if state is follower.OUTDATED:
            answer = self._make_answer(message.sent, now, bound=False, accepted=False)
            self._orders.append(Send(sender, answer))
            return
        if message.term > self.term:
            self._enter_term(message.term, now)
        if self.leadership is not None:
            # This node leads the term, so no other can: ignore the message.
            return
        bound = self._follow(sender, message, now)
        self._apply_committed(message.committed)
        accepted = isinstance(state, ClusterState)
        if isinstance(state, ClusterState) and state is not self.accepted:
            self._accept(state, None if message.force else message.changes.assignments)
            self._apply_committed(message.committed)
        if self.role is not Role.CANDIDATE:
            synchronized = accepted and not message.force
            self.role = Role.SYNCHRONIZED_FOLLOWER if synchronized else Role.FOLLOWER
        self._renew_lease(message)
        self._last_answer = self._make_answer(message.sent, now, bound=bound, accepted=accepted)
        self._orders.append(Send(sender, self._last_answer))

    def _follow(self, sender: str, message: AppendEntries, now: Instant) -> bool:
        """Follow this leader; return whether this node is bound to it."""
        echo = self._echo_at(message)
        bound = election.is_heard(echo, now, self.timing.election_seconds)
        if bound:
            self._acknowledged_at = now
        if bound or self.leader != sender:
            self.leader, self.role = sender, Role.FOLLOWER
            self._wait_for_leader(now)
        return bound

    def _accept(self, state: ClusterState, changes: Mapping[str, Assignment | None] | None) -> None:
        self.accepted = state
        if changes is None:
            self._unapplied = None
        elif self._unapplied is not None:
            self._unapplied.update(changes)

    def _apply_committed(self, committed: SnapshotVersion) -> None:
        """Apply the accepted state, if it is committed."""
        own = self.accepted.version
        if own != self.applied.version and follower.is_committed(own, committed):
            self.processing.apply(self.accepted, self._unapplied)
            self._unapplied = {}

    def _renew_lease(self, message: AppendEntries) -> None:
        """Process on, if there was a quorum lately: counted from the earliest possible moment."""
        if message.has_quorum and self.applied.version >= message.required:
            echo = self._echo_at(message)
            until = echo - message.quorum_age + self.timing.keep_alive_seconds
            self.lease_until = max(self.lease_until, Instant(until))

    def _echo_at(self, message: AppendEntries) -> Instant:
        """When this incarnation sent what its leader last heard; never, if an earlier one did."""
        echo = message.echo
        return echo.at if echo is not None and echo.incarnation == self._incarnation else _NEVER

    def _make_answer(
        self, answers: SendTime, now: Instant, *, bound: bool, accepted: bool
    ) -> Appended:
        processing = self.processing
        return Appended(
            self.term, self.disk, answers, SendTime(self._incarnation, now), bound, accepted,
            self.accepted.version, self.applied.version, processing.released_units,
            processing.new_offsets, self.load,
        )  # fmt: skip

    # --- Units ----------------------------------------------------------------------------------

    def _reconcile(self, now: Instant) -> None:
        self._orders.extend(self.processing.next_orders(self.may_process(now)))

    def _receive_release(self, units: tuple[str, ...], now: Instant) -> None:
        """Report released units at once, so that their heirs need not wait for a heartbeat."""
        self.processing.mark_released(units)
        last = self._last_answer
        if self.leadership is not None:
            if self._record_own_answer(self.leadership, now):
                self._propose(self.leadership, now)
        elif last is not None and self.leader is not None and self.processing.released_units:
            answer = self._make_answer(last.answers, now, bound=last.bound, accepted=last.accepted)
            self._orders.append(Send(self.leader, answer))

    # --- Beginnings -----------------------------------------------------------------------------

    def _receive_introduction(self, sender: str, message: Introduce) -> None:
        voters = self.accepted.voters or None
        self._orders.append(Send(sender, Introduced(message.sent, self.disk, voters)))

    def _receive_introduction_answer(self, sender: str, message: Introduced, now: Instant) -> None:
        if not self.accepted.voters:
            self._begin_with(self._bootstrap.receive_answer(sender, message, self.disk, now), now)

    def _begin_with(self, state: ClusterState | None, now: Instant) -> None:
        if state is not None:
            self._accept(state, None)
            self._wait_for_leader(now)

    def _send_to_all(self, message: Message) -> None:
        self._orders.extend(Send(peer, message) for peer in self.peers)
