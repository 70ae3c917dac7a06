"""What does a node do when something happens?

    Follower --(first state that was not forced)--> SynchronizedFollower
        ^  \\                                             |
        |   +--(no leader for an election time-out)---> Candidate --(majority)--> Leader
        +----------------(a later term, or a leader)------+-------------------------+

003 section 4.2, as one state machine: events go into `step`, orders come out, and nothing else
happens. `step` never waits, never reads a clock and never rolls other dice than its own, so a shell
with gRPC, timers and a disk and a simulator with pretend ones run the very same decisions.

    node = Node("a", ["a", "b", "c"], Timing(), Dice(7), now, memory_from_disk_or_None)
    for order in node.step(event, now): ...      # in this order; Persist is always the first
    sleep_until(node.wake_at)                    # or until something comes, then node.step(Tick())

`step` is told the time of a clock that never goes back, and that runs on when the process sleeps.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

from springhouse.cluster import election, following
from springhouse.cluster.founding import Bootstrap, new_number
from springhouse.cluster.leading import LeaderState
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
    Sent,
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
    """What a node is to the others."""

    FOLLOWER = "Follower"
    SYNCHRONIZED_FOLLOWER = "SynchronizedFollower"
    CANDIDATE = "Candidate"
    LEADER = "Leader"


class Node:
    """One node. What it is can be read; it changes only in `step`."""

    def __init__(
        self,
        name: str,
        nodes: Iterable[str],
        timing: Timing,
        dice: Dice,
        now: Instant,
        memory: PersistentState | None = None,
    ) -> None:
        self.name = name
        self.timing = timing
        self.ring = ring_of(frozenset((name, *nodes)))
        self.peers = tuple(sorted(self.ring.nodes - {name}))
        self.role = Role.FOLLOWER
        self.leader: str | None = None
        self.office: LeaderState | None = None
        self.lease_until = _NEVER
        self.processing = Processing(name)
        self._dice = dice
        self._life = new_number(dice)
        self._kept = memory
        if memory is None:
            memory = PersistentState(new_number(dice), 0, None, EMPTY)
        self.disk, self.term, self.vote = memory.disk, memory.term, memory.vote
        self.accepted = memory.state
        self.load = IDLE
        self._units: dict[str, float] | None = None
        self._drains: dict[str, bool] = {}
        self._founding = Bootstrap(name, self.peers, timing)
        self._canvass = False
        self._votes: set[str] = set()
        # Who starts may have acknowledged a leader a moment ago: it is bound, as if it had.
        self._heard = now
        self._answer: Appended | None = None
        # What changed since the state that is acted on; None: too much to tell.
        self._news: dict[str, Assignment | None] | None = None
        self._timeout_at = now
        self._heartbeat_at = now
        self._wait_for_leader(now)
        self._orders: list[Order] = []

    # --- What can be read -----------------------------------------------------------------------

    @property
    def acting(self) -> ClusterState:
        """The last state that is known to be committed."""
        return self.processing.acting

    @property
    def is_voter(self) -> bool:
        """Whether this node takes part in decisions."""
        return election.is_voter(self.accepted, self.name, self.disk)

    def may_process(self, now: Instant) -> bool:
        """Whether a quorum was heard of within the keep-alive time."""
        return now < self.lease_until

    @property
    def wake_at(self) -> Instant:
        """When to `Tick` at the latest."""
        at = self._heartbeat_at if self.role is Role.LEADER else self._timeout_at
        return min(at, self.lease_until) if self.processing.under_way else at

    # --- What happens ---------------------------------------------------------------------------

    def step(self, event: Event, now: Instant) -> list[Order]:
        """What is to be done, in this order, now that this happened."""
        orders = self._orders = []
        self._stop_in_time(event, now)
        match event:
            case Received(sender, message):
                self._receive(sender, message, now)
            case Tick():
                self._tick(now)
            case Released(units):
                self._released(units, now)
            case Progressed(unit, offset):
                self.processing.progressed(unit, offset)
            case LoadMeasured(load):
                self._measured(load, now)
            case UnitsDeclared(units):
                self._units = dict(units)
                if self.office is not None:
                    self.office.assigner.declare(self._units)
            case DrainAsked(node, drained):
                if self.office is not None and node in self.ring.nodes:
                    self._drains[node] = drained
        self._reconcile(now)
        kept = self._kept
        if (
            kept is None
            or kept.state is not self.accepted
            or (kept.term, kept.vote, kept.disk) != (self.term, self.vote, self.disk)
        ):
            self._kept = PersistentState(self.disk, self.term, self.vote, self.accepted)
            orders.insert(0, Persist(self._kept))
        return orders

    def _stop_in_time(self, event: Event, now: Instant) -> None:
        """Before anything else: time may have passed unnoticed."""
        if isinstance(event, Released):
            # Told to let go again of what it has let go of, its hands would do so after it took
            # that anew.
            self.processing.let_go(event.units)
        if not self.may_process(now):
            self._reconcile(now)

    def _measured(self, load: NodeLoad, now: Instant) -> None:
        self.load = load
        if self.office is not None:
            self.office.reported(self.name, load, now)

    def _receive(self, sender: str, message: Message, now: Instant) -> None:
        if sender not in self.ring.nodes or sender == self.name:
            return
        match message:
            case AppendEntries():
                self._append(sender, message, now)
            case Appended():
                self._appended(sender, message, now)
            case AskForVote():
                self._asked(sender, message, now)
            case Vote():
                self._voted(sender, message, now)
            case Introduce():
                self._introduced_by(sender, message)
            case Introduced():
                self._introduced_to(sender, message, now)

    def _tick(self, now: Instant) -> None:
        if self.office is not None:
            if now >= self._heartbeat_at:
                self._heartbeat(self.office, now)
        elif now >= self._timeout_at:
            if self.is_voter:
                self._stand(now, canvass=True)
            else:
                self._wait_for_leader(now)
                if not self.accepted.voters:
                    sent = Sent(self._life, now)
                    self._founding.asks(sent)
                    self._found(self._founding.complete(self.disk), now)
                    self._send_all(Introduce(sent))

    # --- Elections ------------------------------------------------------------------------------

    def _wait_for_leader(self, now: Instant) -> None:
        wait = self.timing.election_seconds
        self._timeout_at = Instant(now + self._dice.between(wait, 1.5 * wait))

    def _enter(self, term: int, now: Instant) -> None:
        """A later term is known, in which nobody has our vote yet."""
        if self.office is not None:
            # A leader is bound by its followers as they are by it.
            self._heard = max(self._heard, self.office.quorum_since(now))
        if self.role is Role.LEADER:
            self._wait_for_leader(now)
        self.term, self.vote = term, None
        self.role, self.leader, self.office = Role.FOLLOWER, None, None
        self._drains = {}
        self._answer = None

    def _stand(self, now: Instant, *, canvass: bool) -> None:
        """Ask for votes, or first what they would be."""
        if not canvass:
            self.term, self.vote = self.term + 1, self.name
            self.leader = None
        self.role, self._canvass = Role.CANDIDATE, canvass
        self._votes = {self.name}
        wait = self.timing.election_seconds
        self._timeout_at = Instant(now + self._dice.between(0.3 * wait, 0.6 * wait))
        asked = self.term + 1 if canvass else self.term
        self._send_all(AskForVote(asked, self.accepted.stamp, canvass))
        self._count_votes(now)

    def _is_bound(self, now: Instant) -> bool:
        heard = self._heard
        if self.office is not None:
            heard = max(heard, self.office.quorum_since(now))
        return election.is_bound(heard, now, self.timing.election_seconds)

    def _asked(self, sender: str, message: AskForVote, now: Instant) -> None:
        granted = (
            message.term >= self.term
            and not self._is_bound(now)
            and election.up_to_date(message.stamp, self.accepted.stamp)
        )
        if message.canvass:
            granted = granted and message.term > self.term
        else:
            if message.term > self.term and not self._is_bound(now):
                self._enter(message.term, now)
            granted = granted and election.may_vote_for(sender, self.vote)
            if granted:
                self.vote = sender
                self._wait_for_leader(now)
        answer = Vote(self.term, message.term, granted, message.canvass, self.disk)
        self._orders.append(Send(sender, answer))

    def _voted(self, sender: str, message: Vote, now: Instant) -> None:
        if message.term > self.term:
            self._enter(message.term, now)
        if self.role is not Role.CANDIDATE or message.canvass is not self._canvass:
            return
        asked = self.term + 1 if self._canvass else self.term
        if message.granted and message.asked == asked:
            if election.is_voter(self.accepted, sender, message.disk):
                self._votes.add(sender)
            self._count_votes(now)

    def _count_votes(self, now: Instant) -> None:
        if len(self._votes) < self.accepted.majority:
            return
        if self._canvass:
            self._stand(now, canvass=False)
        else:
            self._lead(now)

    # --- Leading --------------------------------------------------------------------------------

    def _lead(self, now: Instant) -> None:
        self.role, self.leader = Role.LEADER, self.name
        units = self._units
        if units is None:
            units = dict.fromkeys(self.accepted.holdings, 1.0)
        self.office = LeaderState(
            self.name, self.term, self.accepted, self.ring, units, self.timing, self._life, now
        )
        # Units may be handed on before the first heartbeat, and not to a leader that can't work.
        self.office.reported(self.name, self.load, now)
        self._made(self.office, now)

    def _made(self, office: LeaderState, now: Instant) -> None:
        """There is a new version: keep it, and send it to all."""
        self._keep(office.state, office.newest.holdings)
        self._act(office.committed)
        self._tell_all(office, now)

    def _heartbeat(self, office: LeaderState, now: Instant) -> None:
        self._report_own(office, now)
        self._renew_own(office, now)
        if not self._proposed(office, now):
            self._tell_all(office, now)

    def _proposed(self, office: LeaderState, now: Instant) -> bool:
        if not office.propose(now, self._drains):
            return False
        self._drains = {}
        self._made(office, now)
        return True

    def _report_own(self, office: LeaderState, now: Instant) -> bool:
        """What a follower would answer, said to oneself."""
        answer = self._answered(Sent(self._life, now), now, bound=True, taken=True)
        return office.assigner.reported(self.name, answer, office.state.holdings)

    def _tell_all(self, office: LeaderState, now: Instant) -> None:
        self._heartbeat_at = Instant(now + self.timing.heartbeat_seconds)
        self._tell(office, self.peers, now)

    def _tell(self, office: LeaderState, to: Iterable[str], now: Instant) -> None:
        self._orders.extend(Send(name, message) for name, message in office.messages(to, now))

    def _appended(self, sender: str, message: Appended, now: Instant) -> None:
        if message.term > self.term:
            self._enter(message.term, now)
        office = self.office
        if office is None or message.term < self.term:
            return
        committed, released, waits = office.answered(sender, message, now)
        self._act(office.committed)
        goes_on = False
        if not self.may_process(now):
            self._renew_own(office, now)
            goes_on = self.may_process(now)
        if (released or goes_on) and self._proposed(office, now):
            return
        # That there is a quorum is news to all of them, too.
        if goes_on or (committed and office.newest):
            self._tell_all(office, now)
        elif waits:
            self._tell(office, (sender,), now)

    def _renew_own(self, office: LeaderState, now: Instant) -> None:
        if self.acting.stamp >= office.first:
            until = office.quorum_since(now) + self.timing.keep_alive_seconds
            self.lease_until = max(self.lease_until, Instant(until))

    # --- Following ------------------------------------------------------------------------------

    def _append(self, sender: str, message: AppendEntries, now: Instant) -> None:
        found = following.verdict(self.term, self.accepted, message)
        if found is following.OUTDATED:
            answer = self._answered(message.sent, now, bound=False, taken=False)
            self._orders.append(Send(sender, answer))
            return
        if message.term > self.term:
            self._enter(message.term, now)
        if self.office is not None:
            # Nobody else leads in this term; whoever says so is not believed.
            return
        bound = self._heard_of(sender, message, now)
        self._act(message.committed)
        taken = isinstance(found, ClusterState)
        if isinstance(found, ClusterState) and found is not self.accepted:
            self._keep(found, None if message.force else message.changes.holdings)
            self._act(message.committed)
        if self.role is not Role.CANDIDATE:
            synchronized = taken and not message.force
            self.role = Role.SYNCHRONIZED_FOLLOWER if synchronized else Role.FOLLOWER
        self._renew(message)
        self._answer = self._answered(message.sent, now, bound=bound, taken=taken)
        self._orders.append(Send(sender, self._answer))

    def _heard_of(self, sender: str, message: AppendEntries, now: Instant) -> bool:
        """The leader is there; whether this node is bound to it."""
        echo = self._own_echo(message)
        bound = election.is_heard(echo, now, self.timing.election_seconds)
        if bound:
            self._heard = now
        if bound or self.leader != sender:
            self.leader, self.role = sender, Role.FOLLOWER
            self._wait_for_leader(now)
        return bound

    def _keep(self, state: ClusterState, changes: Mapping[str, Assignment | None] | None) -> None:
        self.accepted = state
        if changes is None:
            self._news = None
        elif self._news is not None:
            self._news.update(changes)

    def _act(self, committed: SnapshotVersion) -> None:
        """Act on what is kept, if it is committed."""
        own = self.accepted.stamp
        if own != self.acting.stamp and following.is_committed(own, committed):
            self.processing.act_on(self.accepted, self._news)
            self._news = {}

    def _renew(self, message: AppendEntries) -> None:
        """Process on, if there was a quorum not long ago: counted from the oldest it can be."""
        if message.has_quorum and self.acting.stamp >= message.required:
            echo = self._own_echo(message)
            until = echo - message.quorum_age + self.timing.keep_alive_seconds
            self.lease_until = max(self.lease_until, Instant(until))

    def _own_echo(self, message: AppendEntries) -> Instant:
        """When this node sent what its leader last heard; never, if that was in another life."""
        echo = message.echo
        return echo.at if echo is not None and echo.life == self._life else _NEVER

    def _answered(self, answers: Sent, now: Instant, *, bound: bool, taken: bool) -> Appended:
        hands = self.processing
        return Appended(
            self.term, self.disk, answers, Sent(self._life, now), bound, taken, self.accepted.stamp,
            self.acting.stamp, hands.released, hands.offsets, self.load,
        )  # fmt: skip

    # --- Units ----------------------------------------------------------------------------------

    def _reconcile(self, now: Instant) -> None:
        self._orders.extend(self.processing.orders(self.may_process(now)))

    def _released(self, units: tuple[str, ...], now: Instant) -> None:
        """Say at once that units are free, so that their heirs need not wait for a heartbeat."""
        self.processing.let_go(units)
        if self.office is not None:
            if self._report_own(self.office, now):
                self._proposed(self.office, now)
        elif self._answer is not None and self.leader is not None and self.processing.released:
            before = self._answer
            answer = self._answered(before.answers, now, bound=before.bound, taken=before.taken)
            self._orders.append(Send(self.leader, answer))

    # --- Beginnings -----------------------------------------------------------------------------

    def _introduced_by(self, sender: str, message: Introduce) -> None:
        voters = self.accepted.voters or None
        self._orders.append(Send(sender, Introduced(message.sent, self.disk, voters)))

    def _introduced_to(self, sender: str, message: Introduced, now: Instant) -> None:
        if not self.accepted.voters:
            self._found(self._founding.answered(sender, message, self.disk, now), now)

    def _found(self, state: ClusterState | None, now: Instant) -> None:
        if state is not None:
            self._keep(state, None)
            self._wait_for_leader(now)

    def _send_all(self, message: Message) -> None:
        self._orders.extend(Send(peer, message) for peer in self.peers)
