"""How do messages become bytes, and which bytes does a node refuse?

This module turns the values of `messages` into protobuf (`cluster.proto`) and back. Everything from
outside goes through `decode_message`. It refuses a sender that belongs to another cluster, speaks
another version of the protocol, or is not a configured peer, and bytes that are not a valid
message. The error, `MessageRefused`, has a sentence for the log. Nothing refused reaches the node.
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
    SendTime,
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
"""The version of the protocol; it goes up when older nodes would misunderstand a message."""


class MessageRefused(SpringhouseError):
    """A message is not for this node, or is not valid."""


# --- Envelopes ----------------------------------------------------------------------------------


def encode_message(cluster: str, sender: str, receiver: str, message: Message) -> bytes:
    """A message as bytes."""
    envelope = pb.Envelope(protocol=PROTOCOL, cluster=cluster, sender=sender, receiver=receiver)
    match message:
        case AskForVote(term, version, pre_vote):
            asked = pb.AskForVote(term=term, version=_encode_version(version), pre_vote=pre_vote)
            envelope.ask_for_vote.CopyFrom(asked)
        case Vote():
            vote = pb.Vote(
                term=message.term,
                requested_term=message.requested_term,
                granted=message.granted,
                pre_vote=message.pre_vote,
                disk=message.disk,
            )
            envelope.vote.CopyFrom(vote)
        case AppendEntries():
            envelope.append_entries.CopyFrom(_encode_append_entries(message))
        case Appended():
            envelope.appended.CopyFrom(_encode_appended(message))
        case Introduce(sent):
            envelope.introduce.CopyFrom(pb.Introduce(sent=_encode_send_time(sent)))
        case Introduced(answers, disk, voters):
            introduced = pb.Introduced(answers=_encode_send_time(answers), disk=disk)
            if voters is not None:
                introduced.voters.CopyFrom(pb.Voters(disks=voters))
            envelope.introduced.CopyFrom(introduced)
    return bytes(envelope.SerializeToString())


def decode_message(
    data: bytes, cluster: str, own: str, peers: Collection[str]
) -> tuple[str, Message]:
    """The sender and its message, if it is valid and for this node."""
    envelope = pb.Envelope()
    _parse(envelope, data)
    check_cluster(envelope.protocol, envelope.cluster, cluster)
    if envelope.sender not in peers:
        raise MessageRefused(
            f'"{envelope.sender}" is not a node of this cluster',
            hint=f"The configured nodes are: {', '.join(sorted((own, *peers)))}.",
        )
    if envelope.receiver != own:
        raise MessageRefused(
            f'a message from "{envelope.sender}" to "{envelope.receiver}" arrived at "{own}"',
            hint="Two nodes have the same address, or an address belongs to another node.",
        )
    try:
        return envelope.sender, _decode_content(envelope)
    except ValueError as error:
        raise MessageRefused(f'a message from "{envelope.sender}" is not valid: {error}') from None


def check_cluster(protocol: int, theirs: str, ours: str) -> None:
    """Refuse a sender that speaks another version of the protocol, or is of another cluster."""
    if protocol != PROTOCOL:
        raise MessageRefused(
            f"the sender speaks version {protocol} of the protocol, this node speaks {PROTOCOL}",
            hint="Run the same version of springhouse on all nodes.",
        )
    if theirs != ours:
        raise MessageRefused(
            f'the sender is of the cluster "{theirs}", this node is of the cluster "{ours}"',
            hint="springhouse.cluster.name sets the name of a node's cluster.",
        )


def _parse(into: object, data: bytes) -> None:
    try:
        into.ParseFromString(data)  # type: ignore[attr-defined]  # generated classes are untyped
    except (DecodeError, RecursionError):
        raise MessageRefused(f"{len(data)} bytes arrived that are not a message") from None


def _decode_content(envelope: pb.Envelope) -> Message:
    match envelope.WhichOneof("message"):
        case "ask_for_vote":
            asked = envelope.ask_for_vote
            return AskForVote(asked.term, _decode_version(asked.version), asked.pre_vote)
        case "vote":
            vote = envelope.vote
            return Vote(vote.term, vote.requested_term, vote.granted, vote.pre_vote, vote.disk)
        case "append_entries":
            return _decode_append_entries(envelope.append_entries)
        case "appended":
            return _decode_appended(envelope.appended)
        case "introduce":
            return Introduce(_decode_send_time(envelope.introduce.sent))
        case "introduced":
            encoded = envelope.introduced
            voters = dict(encoded.voters.disks) if encoded.HasField("voters") else None
            return Introduced(_decode_send_time(encoded.answers), encoded.disk, voters)
        case _:
            raise ValueError("it is empty")


# --- Messages -----------------------------------------------------------------------------------


def _encode_append_entries(message: AppendEntries) -> pb.AppendEntries:
    return pb.AppendEntries(
        term=message.term,
        sent=_encode_send_time(message.sent),
        echo=None if message.echo is None else _encode_send_time(message.echo),
        previous=_encode_version(message.previous),
        version=_encode_version(message.version),
        changes=_encode_changes(message.changes),
        state=None if message.state is None else _encode_state(message.state),
        committed=_encode_version(message.committed),
        required=_encode_version(message.required),
        has_quorum=message.has_quorum,
        # A leader without followers has an infinite quorum age, and receivers refuse infinite
        # numbers. So the age is sent only if there is a quorum.
        quorum_age=message.quorum_age if isfinite(message.quorum_age) else 0.0,
    )


def _decode_append_entries(encoded: pb.AppendEntries) -> AppendEntries:
    return AppendEntries(
        encoded.term,
        _decode_send_time(encoded.sent),
        _decode_send_time(encoded.echo) if encoded.HasField("echo") else None,
        _decode_version(encoded.previous),
        _decode_version(encoded.version),
        _decode_changes(encoded.changes),
        _decode_state(encoded.state) if encoded.HasField("state") else None,
        _decode_version(encoded.committed),
        _decode_version(encoded.required),
        encoded.has_quorum,
        Seconds(_check_finite(encoded.quorum_age) if encoded.has_quorum else float("inf")),
    )


def _encode_appended(message: Appended) -> pb.Appended:
    return pb.Appended(
        term=message.term,
        disk=message.disk,
        answers=_encode_send_time(message.answers),
        sent=_encode_send_time(message.sent),
        bound=message.bound,
        accepted=message.accepted,
        version=_encode_version(message.version),
        applied=_encode_version(message.applied),
        released=message.released,
        offsets=[pb.Progress(unit=unit, offset=offset) for unit, offset in message.offsets],
        load=_encode_load(message.load),
    )


def _decode_appended(encoded: pb.Appended) -> Appended:
    return Appended(
        encoded.term,
        encoded.disk,
        _decode_send_time(encoded.answers),
        _decode_send_time(encoded.sent),
        encoded.bound,
        encoded.accepted,
        _decode_version(encoded.version),
        _decode_version(encoded.applied),
        tuple(encoded.released),
        tuple((each.unit, each.offset) for each in encoded.offsets),
        _decode_load(encoded.load),
    )


# --- Their parts --------------------------------------------------------------------------------


def _check_finite(value: float) -> float:
    """Refuse NaN and infinity: comparisons with them could make a node do anything."""
    if not isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return value


def _encode_version(version: SnapshotVersion) -> pb.SnapshotVersion:
    return pb.SnapshotVersion(term=version.term, number=version.number)


def _decode_version(encoded: pb.SnapshotVersion) -> SnapshotVersion:
    return SnapshotVersion(encoded.term, encoded.number)


def _encode_send_time(sent: SendTime) -> pb.SendTime:
    return pb.SendTime(incarnation=sent.incarnation, at=sent.at)


def _decode_send_time(encoded: pb.SendTime) -> SendTime:
    return SendTime(encoded.incarnation, Instant(_check_finite(encoded.at)))


def _encode_load(load: NodeLoad) -> pb.Load:
    return pb.Load(
        cpu=load.cpu,
        memory=load.memory,
        tracks=load.tracks,
        backlog_seconds=load.backlog_seconds,
        able=load.able,
    )


def _decode_load(encoded: pb.Load) -> NodeLoad:
    return NodeLoad(
        _check_finite(encoded.cpu),
        _check_finite(encoded.memory),
        _check_finite(encoded.tracks),
        _check_finite(encoded.backlog_seconds),
        encoded.able,
    )


def _encode_assignments(assignments: Iterable[tuple[str, Assignment]]) -> list[pb.Assignment]:
    return [
        pb.Assignment(unit=unit, owner=of.owner, heir=of.heir, since=of.since, offset=of.offset)
        for unit, of in assignments
    ]


def _decode_assignments(encoded: Iterable[pb.Assignment]) -> dict[str, Assignment]:
    return {
        of.unit: Assignment(of.owner, of.heir if of.HasField("heir") else None, of.since, of.offset)
        for of in encoded
    }


def _encode_shares(shares: Mapping[str, float]) -> pb.Shares:
    return pb.Shares(of=shares)


def _decode_shares(encoded: pb.Shares) -> dict[str, float]:
    return {node: _check_finite(share) for node, share in sorted(encoded.of.items())}


def _encode_changes(changes: StateChanges) -> pb.Changes:
    here = ((unit, each) for unit, each in changes.assignments.items() if each is not None)
    return pb.Changes(
        assignments=_encode_assignments(here),
        gone=[unit for unit, each in changes.assignments.items() if each is None],
        voters=None if changes.voters is None else pb.Voters(disks=changes.voters),
        shares=None if changes.shares is None else _encode_shares(changes.shares),
    )


def _decode_changes(encoded: pb.Changes) -> StateChanges:
    changes = StateChanges(
        {**_decode_assignments(encoded.assignments), **dict.fromkeys(encoded.gone)},
        dict(sorted(encoded.voters.disks.items())) if encoded.HasField("voters") else None,
        _decode_shares(encoded.shares) if encoded.HasField("shares") else None,
    )
    return changes or NO_CHANGES


def _encode_state(state: ClusterState) -> pb.State:
    return pb.State(
        version=_encode_version(state.version),
        voters=pb.Voters(disks=state.voters),
        assignments=_encode_assignments(state.assignments.items()),
        shares=_encode_shares(state.shares),
    )


def _decode_state(encoded: pb.State) -> ClusterState:
    return ClusterState(
        _decode_version(encoded.version),
        dict(sorted(encoded.voters.disks.items())),
        _decode_assignments(encoded.assignments),
        _decode_shares(encoded.shares),
    )


# --- State on disk -------------------------------------------------------------------------------


def encode_persistent_state(cluster: str, node: str, state: PersistentState) -> bytes:
    """A node's state as the bytes of a file; equal states give equal bytes."""
    encoded = pb.PersistentState(
        cluster=cluster,
        node=node,
        disk=state.disk,
        term=state.term,
        vote=state.vote,
        state=_encode_state(state.state),
    )
    return bytes(encoded.SerializeToString(deterministic=True))


def decode_persistent_state(data: bytes) -> tuple[str, str, PersistentState]:
    """The cluster, the node and its state; `MessageRefused` if the bytes are not that."""
    encoded = pb.PersistentState()
    _parse(encoded, data)
    try:
        state = _decode_state(encoded.state)
    except ValueError as error:
        raise MessageRefused(str(error)) from None
    vote = encoded.vote if encoded.HasField("vote") else None
    return encoded.cluster, encoded.node, PersistentState(encoded.disk, encoded.term, vote, state)


# --- Reports ------------------------------------------------------------------------------------


def encode_question(cluster: str) -> bytes:
    """A request for the report of a node, or of the cluster."""
    return bytes(pb.Question(protocol=PROTOCOL, cluster=cluster).SerializeToString())


def check_question(data: bytes, cluster: str) -> None:
    """Refuse a request from another cluster."""
    asked = pb.Question()
    _parse(asked, data)
    check_cluster(asked.protocol, asked.cluster, cluster)


def encode_drain(cluster: str, node: str, drained: bool) -> bytes:
    """A request that a node should have no units, or have units again."""
    asked = pb.Drain(protocol=PROTOCOL, cluster=cluster, node=node, drained=drained)
    return bytes(asked.SerializeToString())


def decode_drain(data: bytes, cluster: str) -> tuple[str, bool]:
    """The node to drain, and whether it is to be drained or not any more."""
    asked = pb.Drain()
    _parse(asked, data)
    check_cluster(asked.protocol, asked.cluster, cluster)
    return asked.node, asked.drained


def encode_drain_taken(leader: str) -> bytes:
    """The answer to a drain request: this leader carries it out."""
    return bytes(pb.DrainTaken(leader=leader).SerializeToString())


def decode_drain_taken(data: bytes) -> str:
    """The leader that carries the drain out."""
    taken = pb.DrainTaken()
    _parse(taken, data)
    return str(taken.leader)


def encode_node_report(report: NodeReport) -> bytes:
    """The report of a node as bytes."""
    return bytes(_encode_node_report(report).SerializeToString())


def decode_node_report(data: bytes) -> NodeReport:
    """The report of a node."""
    encoded = pb.NodeReport()
    _parse(encoded, data)
    return _decode_node_report(encoded)


def encode_cluster_report(report: ClusterReport) -> bytes:
    """The report of the cluster as bytes."""
    encoded = pb.ClusterReport(
        asked=report.asked,
        nodes=[_encode_node_report(node) for node in report.nodes],
        problems=report.problems,
    )
    return bytes(encoded.SerializeToString())


def decode_cluster_report(data: bytes) -> ClusterReport:
    """The report of the cluster."""
    encoded = pb.ClusterReport()
    _parse(encoded, data)
    nodes = tuple(_decode_node_report(node) for node in encoded.nodes)
    return ClusterReport(encoded.asked, nodes, dict(sorted(encoded.problems.items())))


def _encode_node_report(report: NodeReport) -> pb.NodeReport:
    return pb.NodeReport(
        name=report.name,
        role=report.role,
        leader=report.leader or "",
        term=report.term,
        accepted=_encode_version(report.accepted),
        applied=_encode_version(report.applied),
        processing=report.processing,
        quorum_age=report.quorum_age,
        load=_encode_load(report.load),
        working=report.working,
        voter=report.voter,
        assignments=_encode_assignments(report.assignments.items()),
        shares=_encode_shares(report.shares),
    )


def _decode_node_report(encoded: pb.NodeReport) -> NodeReport:
    age = Seconds(encoded.quorum_age) if encoded.HasField("quorum_age") else None
    return NodeReport(
        encoded.name,
        encoded.role,
        encoded.leader or None,
        encoded.term,
        _decode_version(encoded.accepted),
        _decode_version(encoded.applied),
        encoded.processing,
        age,
        _decode_load(encoded.load),
        tuple(encoded.working),
        encoded.voter,
        _decode_assignments(encoded.assignments),
        _decode_shares(encoded.shares),
    )
