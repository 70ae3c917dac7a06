"""What does a message look like between two machines, and which ones are not even read?

The values of `messages` as protobuf (`cluster.proto`) and back. Everything that comes from outside
goes through `opened`: who is not of this cluster, speaks another protocol, is not a configured peer
or sends what can't be a message is `MessageRefused`, with a sentence for the log, before anything
of it reaches the node.
"""

from collections.abc import Collection, Iterable, Mapping
from math import isfinite

from google.protobuf.message import DecodeError

from springhouse.cluster import cluster_pb2 as pb
from springhouse.cluster.cluster_report import ClusterReport, NodeReport
from springhouse.cluster.messages import (
    Appended,
    AppendEntries,
    AskForVote,
    Introduce,
    Introduced,
    Message,
    Sent,
    Vote,
)
from springhouse.cluster.node_load import NodeLoad
from springhouse.cluster.state import (
    NO_CHANGES,
    Assignment,
    ClusterState,
    PersistentState,
    SnapshotVersion,
    StateChanges,
)
from springhouse.errors import SpringhouseError
from springhouse.units import Instant, Seconds

PROTOCOL = 1
"""Raised when nodes of the version before would misunderstand what is said."""


class MessageRefused(SpringhouseError):
    """What came is not for this node, or can't be what it says it is."""


# --- Envelopes ----------------------------------------------------------------------------------


def sealed(cluster: str, sender: str, receiver: str, message: Message) -> bytes:
    """A message, ready to be sent."""
    envelope = pb.Envelope(protocol=PROTOCOL, cluster=cluster, sender=sender, receiver=receiver)
    match message:
        case AskForVote(term, stamp, canvass):
            asked = pb.AskForVote(term=term, stamp=_stamp(stamp), canvass=canvass)
            envelope.ask_for_vote.CopyFrom(asked)
        case Vote(term, asked_for, granted, canvass, disk):
            vote = pb.Vote(term=term, asked=asked_for, granted=granted, canvass=canvass, disk=disk)
            envelope.vote.CopyFrom(vote)
        case AppendEntries():
            envelope.append_entries.CopyFrom(_append_entries(message))
        case Appended():
            envelope.appended.CopyFrom(_appended(message))
        case Introduce(sent):
            envelope.introduce.CopyFrom(pb.Introduce(sent=_sent(sent)))
        case Introduced(answers, disk, voters):
            introduced = pb.Introduced(answers=_sent(answers), disk=disk)
            if voters is not None:
                introduced.voters.CopyFrom(pb.Voters(disks=voters))
            envelope.introduced.CopyFrom(introduced)
    return bytes(envelope.SerializeToString())


def opened(data: bytes, cluster: str, own: str, peers: Collection[str]) -> tuple[str, Message]:
    """Who sent what, if it is meant for this node and can be understood."""
    envelope = pb.Envelope()
    _parse(envelope, data)
    prove_kin(envelope.protocol, envelope.cluster, cluster)
    if envelope.sender not in peers:
        raise MessageRefused(
            f'"{envelope.sender}" is not one of this cluster\'s nodes',
            hint=f"Its nodes are configured: {', '.join(sorted((own, *peers)))}.",
        )
    if envelope.receiver != own:
        raise MessageRefused(
            f'a message of "{envelope.sender}" for "{envelope.receiver}" came to "{own}"',
            hint="Two nodes have the same address, or an address belongs to another node.",
        )
    try:
        return envelope.sender, _message(envelope)
    except ValueError as error:
        raise MessageRefused(f'a message of "{envelope.sender}" makes no sense: {error}') from None


def prove_kin(protocol: int, theirs: str, ours: str) -> None:
    """Refuse who speaks another protocol or is of another cluster."""
    if protocol != PROTOCOL:
        raise MessageRefused(
            f"it speaks version {protocol} of the protocol, this node speaks version {PROTOCOL}",
            hint="Run the same version of springhouse on all nodes.",
        )
    if theirs != ours:
        raise MessageRefused(
            f'it is of the cluster "{theirs}", this node is of the cluster "{ours}"',
            hint="springhouse.cluster.name tells clusters apart.",
        )


def _parse(into: object, data: bytes) -> None:
    try:
        into.ParseFromString(data)  # type: ignore[attr-defined]  # generated classes are untyped
    except (DecodeError, RecursionError):
        raise MessageRefused(f"{len(data)} bytes came that are no message") from None


def _message(envelope: pb.Envelope) -> Message:
    match envelope.WhichOneof("message"):
        case "ask_for_vote":
            asked = envelope.ask_for_vote
            return AskForVote(asked.term, _to_stamp(asked.stamp), asked.canvass)
        case "vote":
            vote = envelope.vote
            return Vote(vote.term, vote.asked, vote.granted, vote.canvass, vote.disk)
        case "append_entries":
            return _to_append_entries(envelope.append_entries)
        case "appended":
            return _to_appended(envelope.appended)
        case "introduce":
            return Introduce(_to_sent(envelope.introduce.sent))
        case "introduced":
            told = envelope.introduced
            voters = dict(told.voters.disks) if told.HasField("voters") else None
            return Introduced(_to_sent(told.answers), told.disk, voters)
        case _:
            raise ValueError("it says nothing")


# --- Messages -----------------------------------------------------------------------------------


def _append_entries(message: AppendEntries) -> pb.AppendEntries:
    return pb.AppendEntries(
        term=message.term,
        sent=_sent(message.sent),
        echo=None if message.echo is None else _sent(message.echo),
        previous=_stamp(message.previous),
        stamp=_stamp(message.stamp),
        changes=_changes(message.changes),
        state=None if message.state is None else _state(message.state),
        committed=_stamp(message.committed),
        required=_stamp(message.required),
        has_quorum=message.has_quorum,
        # A leader that nobody follows yet has a quorum that is infinitely old. Only finite numbers
        # are let in, so it says how old only if there is one.
        quorum_age=message.quorum_age if isfinite(message.quorum_age) else 0.0,
    )


def _to_append_entries(told: pb.AppendEntries) -> AppendEntries:
    return AppendEntries(
        told.term,
        _to_sent(told.sent),
        _to_sent(told.echo) if told.HasField("echo") else None,
        _to_stamp(told.previous),
        _to_stamp(told.stamp),
        _to_changes(told.changes),
        _to_state(told.state) if told.HasField("state") else None,
        _to_stamp(told.committed),
        _to_stamp(told.required),
        told.has_quorum,
        Seconds(_number(told.quorum_age) if told.has_quorum else float("inf")),
    )


def _appended(message: Appended) -> pb.Appended:
    return pb.Appended(
        term=message.term,
        disk=message.disk,
        answers=_sent(message.answers),
        sent=_sent(message.sent),
        bound=message.bound,
        taken=message.taken,
        stamp=_stamp(message.stamp),
        acting=_stamp(message.acting),
        released=message.released,
        offsets=[pb.Progress(unit=unit, offset=offset) for unit, offset in message.offsets],
        load=_load(message.load),
    )


def _to_appended(told: pb.Appended) -> Appended:
    return Appended(
        told.term,
        told.disk,
        _to_sent(told.answers),
        _to_sent(told.sent),
        told.bound,
        told.taken,
        _to_stamp(told.stamp),
        _to_stamp(told.acting),
        tuple(told.released),
        tuple((each.unit, each.offset) for each in told.offsets),
        _to_load(told.load),
    )


# --- Their parts --------------------------------------------------------------------------------


def _number(value: float) -> float:
    """Comparisons with what is not a number are all false: such a message could do anything."""
    if not isfinite(value):
        raise ValueError(f"{value} is no moment and no amount")
    return value


def _stamp(stamp: SnapshotVersion) -> pb.Stamp:
    return pb.Stamp(term=stamp.term, version=stamp.version)


def _to_stamp(told: pb.Stamp) -> SnapshotVersion:
    return SnapshotVersion(told.term, told.version)


def _sent(sent: Sent) -> pb.Sent:
    return pb.Sent(life=sent.life, at=sent.at)


def _to_sent(told: pb.Sent) -> Sent:
    return Sent(told.life, Instant(_number(told.at)))


def _load(load: NodeLoad) -> pb.Load:
    return pb.Load(
        cpu=load.cpu,
        memory=load.memory,
        tracks=load.tracks,
        backlog_seconds=load.backlog_seconds,
        able=load.able,
    )


def _to_load(told: pb.Load) -> NodeLoad:
    return NodeLoad(
        _number(told.cpu),
        _number(told.memory),
        _number(told.tracks),
        _number(told.backlog_seconds),
        told.able,
    )


def _holdings(holdings: Iterable[tuple[str, Assignment]]) -> list[pb.Holding]:
    return [
        pb.Holding(unit=unit, owner=of.owner, heir=of.heir, since=of.since, offset=of.offset)
        for unit, of in holdings
    ]


def _to_holdings(told: Iterable[pb.Holding]) -> dict[str, Assignment]:
    return {
        of.unit: Assignment(of.owner, of.heir if of.HasField("heir") else None, of.since, of.offset)
        for of in told
    }


def _shares(shares: Mapping[str, float]) -> pb.Shares:
    return pb.Shares(of=shares)


def _to_shares(told: pb.Shares) -> dict[str, float]:
    return {node: _number(share) for node, share in sorted(told.of.items())}


def _changes(changes: StateChanges) -> pb.Changes:
    here = ((unit, each) for unit, each in changes.holdings.items() if each is not None)
    return pb.Changes(
        holdings=_holdings(here),
        gone=[unit for unit, each in changes.holdings.items() if each is None],
        voters=None if changes.voters is None else pb.Voters(disks=changes.voters),
        shares=None if changes.shares is None else _shares(changes.shares),
    )


def _to_changes(told: pb.Changes) -> StateChanges:
    changes = StateChanges(
        {**_to_holdings(told.holdings), **dict.fromkeys(told.gone)},
        dict(sorted(told.voters.disks.items())) if told.HasField("voters") else None,
        _to_shares(told.shares) if told.HasField("shares") else None,
    )
    return changes or NO_CHANGES


def _state(state: ClusterState) -> pb.State:
    return pb.State(
        stamp=_stamp(state.stamp),
        voters=pb.Voters(disks=state.voters),
        holdings=_holdings(state.holdings.items()),
        shares=_shares(state.shares),
    )


def _to_state(told: pb.State) -> ClusterState:
    return ClusterState(
        _to_stamp(told.stamp),
        dict(sorted(told.voters.disks.items())),
        _to_holdings(told.holdings),
        _to_shares(told.shares),
    )


# --- Memory -------------------------------------------------------------------------------------


def remembered(cluster: str, node: str, memory: PersistentState) -> bytes:
    """A memory as the bytes of a file; the same memory is always the same bytes."""
    kept = pb.Memory(
        cluster=cluster,
        node=node,
        disk=memory.disk,
        term=memory.term,
        vote=memory.vote,
        state=_state(memory.state),
    )
    return bytes(kept.SerializeToString(deterministic=True))


def recalled(data: bytes) -> tuple[str, str, PersistentState]:
    """Of which cluster and node, and the memory; `MessageRefused` if the bytes are no memory."""
    kept = pb.Memory()
    _parse(kept, data)
    try:
        state = _to_state(kept.state)
    except ValueError as error:
        raise MessageRefused(str(error)) from None
    vote = kept.vote if kept.HasField("vote") else None
    return kept.cluster, kept.node, PersistentState(kept.disk, kept.term, vote, state)


# --- Reports ------------------------------------------------------------------------------------


def question(cluster: str) -> bytes:
    """Asks a node how it is, or how all are."""
    return bytes(pb.Question(protocol=PROTOCOL, cluster=cluster).SerializeToString())


def understood(data: bytes, cluster: str) -> None:
    """Refuse a question that is not of this cluster."""
    asked = pb.Question()
    _parse(asked, data)
    prove_kin(asked.protocol, asked.cluster, cluster)


def drain(cluster: str, node: str, drained: bool) -> bytes:
    """Asks that a node is to have no units, or to have them again."""
    asked = pb.Drain(protocol=PROTOCOL, cluster=cluster, node=node, drained=drained)
    return bytes(asked.SerializeToString())


def to_drain(data: bytes, cluster: str) -> tuple[str, bool]:
    """Which node is to be drained, or not any more."""
    asked = pb.Drain()
    _parse(asked, data)
    prove_kin(asked.protocol, asked.cluster, cluster)
    return asked.node, asked.drained


def drain_taken(leader: str) -> bytes:
    """The answer to `drain`: this leader sees to it."""
    return bytes(pb.DrainTaken(leader=leader).SerializeToString())


def to_drain_taken(data: bytes) -> str:
    """Which leader sees to it."""
    taken = pb.DrainTaken()
    _parse(taken, data)
    return str(taken.leader)


def node_report(report: NodeReport) -> bytes:
    """How one node is."""
    return bytes(_node_report(report).SerializeToString())


def to_node_report(data: bytes) -> NodeReport:
    """How one node is, as it told."""
    told = pb.NodeReport()
    _parse(told, data)
    return _to_node_report(told)


def cluster_report(report: ClusterReport) -> bytes:
    """How all nodes are."""
    told = pb.ClusterReport(
        asked=report.asked,
        nodes=[_node_report(each) for each in report.nodes],
        problems=report.problems,
    )
    return bytes(told.SerializeToString())


def to_cluster_report(data: bytes) -> ClusterReport:
    """How all nodes are, as one of them told."""
    told = pb.ClusterReport()
    _parse(told, data)
    nodes = tuple(_to_node_report(each) for each in told.nodes)
    return ClusterReport(told.asked, nodes, dict(sorted(told.problems.items())))


def _node_report(report: NodeReport) -> pb.NodeReport:
    return pb.NodeReport(
        name=report.name,
        role=report.role,
        leader=report.leader or "",
        term=report.term,
        kept=_stamp(report.kept),
        acting=_stamp(report.acting),
        processing=report.processing,
        quorum_age=report.quorum_age,
        load=_load(report.load),
        working=report.working,
        voter=report.voter,
        holdings=_holdings(report.holdings.items()),
        shares=_shares(report.shares),
    )


def _to_node_report(told: pb.NodeReport) -> NodeReport:
    age = Seconds(told.quorum_age) if told.HasField("quorum_age") else None
    return NodeReport(
        told.name,
        told.role,
        told.leader or None,
        told.term,
        _to_stamp(told.kept),
        _to_stamp(told.acting),
        told.processing,
        age,
        _to_load(told.load),
        tuple(told.working),
        told.voter,
        _to_holdings(told.holdings),
        _to_shares(told.shares),
    )
