from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SnapshotVersion(_message.Message):
    __slots__ = ("term", "number")
    TERM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    term: int
    number: int
    def __init__(self, term: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("unit", "owner", "heir", "since", "offset")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    HEIR_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    unit: str
    owner: str
    heir: str
    since: int
    offset: int
    def __init__(self, unit: _Optional[str] = ..., owner: _Optional[str] = ..., heir: _Optional[str] = ..., since: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class Voters(_message.Message):
    __slots__ = ("disks",)
    class DisksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    DISKS_FIELD_NUMBER: _ClassVar[int]
    disks: _containers.ScalarMap[str, int]
    def __init__(self, disks: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Shares(_message.Message):
    __slots__ = ("of",)
    class OfEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    OF_FIELD_NUMBER: _ClassVar[int]
    of: _containers.ScalarMap[str, float]
    def __init__(self, of: _Optional[_Mapping[str, float]] = ...) -> None: ...

class State(_message.Message):
    __slots__ = ("version", "voters", "assignments", "shares")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    version: SnapshotVersion
    voters: Voters
    assignments: _containers.RepeatedCompositeFieldContainer[Assignment]
    shares: Shares
    def __init__(self, version: _Optional[_Union[SnapshotVersion, _Mapping]] = ..., voters: _Optional[_Union[Voters, _Mapping]] = ..., assignments: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., shares: _Optional[_Union[Shares, _Mapping]] = ...) -> None: ...

class Changes(_message.Message):
    __slots__ = ("assignments", "gone", "voters", "shares")
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    assignments: _containers.RepeatedCompositeFieldContainer[Assignment]
    gone: _containers.RepeatedScalarFieldContainer[str]
    voters: Voters
    shares: Shares
    def __init__(self, assignments: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., gone: _Optional[_Iterable[str]] = ..., voters: _Optional[_Union[Voters, _Mapping]] = ..., shares: _Optional[_Union[Shares, _Mapping]] = ...) -> None: ...

class PersistentState(_message.Message):
    __slots__ = ("cluster", "node", "disk", "term", "vote", "state")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    DISK_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    VOTE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    node: str
    disk: int
    term: int
    vote: str
    state: State
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., disk: _Optional[int] = ..., term: _Optional[int] = ..., vote: _Optional[str] = ..., state: _Optional[_Union[State, _Mapping]] = ...) -> None: ...

class SendTime(_message.Message):
    __slots__ = ("incarnation", "at")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    at: float
    def __init__(self, incarnation: _Optional[int] = ..., at: _Optional[float] = ...) -> None: ...

class Load(_message.Message):
    __slots__ = ("cpu", "memory", "tracks", "backlog_seconds", "able")
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    TRACKS_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ABLE_FIELD_NUMBER: _ClassVar[int]
    cpu: float
    memory: float
    tracks: float
    backlog_seconds: float
    able: bool
    def __init__(self, cpu: _Optional[float] = ..., memory: _Optional[float] = ..., tracks: _Optional[float] = ..., backlog_seconds: _Optional[float] = ..., able: _Optional[bool] = ...) -> None: ...

class AskForVote(_message.Message):
    __slots__ = ("term", "version", "pre_vote")
    TERM_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PRE_VOTE_FIELD_NUMBER: _ClassVar[int]
    term: int
    version: SnapshotVersion
    pre_vote: bool
    def __init__(self, term: _Optional[int] = ..., version: _Optional[_Union[SnapshotVersion, _Mapping]] = ..., pre_vote: _Optional[bool] = ...) -> None: ...

class Vote(_message.Message):
    __slots__ = ("term", "requested_term", "granted", "pre_vote", "disk")
    TERM_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_TERM_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    PRE_VOTE_FIELD_NUMBER: _ClassVar[int]
    DISK_FIELD_NUMBER: _ClassVar[int]
    term: int
    requested_term: int
    granted: bool
    pre_vote: bool
    disk: int
    def __init__(self, term: _Optional[int] = ..., requested_term: _Optional[int] = ..., granted: _Optional[bool] = ..., pre_vote: _Optional[bool] = ..., disk: _Optional[int] = ...) -> None: ...

class AppendEntries(_message.Message):
    __slots__ = ("term", "sent", "echo", "previous", "version", "changes", "state", "committed", "required", "has_quorum", "quorum_age")
    TERM_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    ECHO_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    HAS_QUORUM_FIELD_NUMBER: _ClassVar[int]
    QUORUM_AGE_FIELD_NUMBER: _ClassVar[int]
    term: int
    sent: SendTime
    echo: SendTime
    previous: SnapshotVersion
    version: SnapshotVersion
    changes: Changes
    state: State
    committed: SnapshotVersion
    required: SnapshotVersion
    has_quorum: bool
    quorum_age: float
    def __init__(self, term: _Optional[int] = ..., sent: _Optional[_Union[SendTime, _Mapping]] = ..., echo: _Optional[_Union[SendTime, _Mapping]] = ..., previous: _Optional[_Union[SnapshotVersion, _Mapping]] = ..., version: _Optional[_Union[SnapshotVersion, _Mapping]] = ..., changes: _Optional[_Union[Changes, _Mapping]] = ..., state: _Optional[_Union[State, _Mapping]] = ..., committed: _Optional[_Union[SnapshotVersion, _Mapping]] = ..., required: _Optional[_Union[SnapshotVersion, _Mapping]] = ..., has_quorum: _Optional[bool] = ..., quorum_age: _Optional[float] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("unit", "offset")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    unit: str
    offset: int
    def __init__(self, unit: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class Appended(_message.Message):
    __slots__ = ("term", "disk", "answers", "sent", "bound", "accepted", "version", "applied", "released", "offsets", "load")
    TERM_FIELD_NUMBER: _ClassVar[int]
    DISK_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    term: int
    disk: int
    answers: SendTime
    sent: SendTime
    bound: bool
    accepted: bool
    version: SnapshotVersion
    applied: SnapshotVersion
    released: _containers.RepeatedScalarFieldContainer[str]
    offsets: _containers.RepeatedCompositeFieldContainer[Progress]
    load: Load
    def __init__(self, term: _Optional[int] = ..., disk: _Optional[int] = ..., answers: _Optional[_Union[SendTime, _Mapping]] = ..., sent: _Optional[_Union[SendTime, _Mapping]] = ..., bound: _Optional[bool] = ..., accepted: _Optional[bool] = ..., version: _Optional[_Union[SnapshotVersion, _Mapping]] = ..., applied: _Optional[_Union[SnapshotVersion, _Mapping]] = ..., released: _Optional[_Iterable[str]] = ..., offsets: _Optional[_Iterable[_Union[Progress, _Mapping]]] = ..., load: _Optional[_Union[Load, _Mapping]] = ...) -> None: ...

class Introduce(_message.Message):
    __slots__ = ("sent",)
    SENT_FIELD_NUMBER: _ClassVar[int]
    sent: SendTime
    def __init__(self, sent: _Optional[_Union[SendTime, _Mapping]] = ...) -> None: ...

class Introduced(_message.Message):
    __slots__ = ("answers", "disk", "voters")
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    DISK_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    answers: SendTime
    disk: int
    voters: Voters
    def __init__(self, answers: _Optional[_Union[SendTime, _Mapping]] = ..., disk: _Optional[int] = ..., voters: _Optional[_Union[Voters, _Mapping]] = ...) -> None: ...

class Envelope(_message.Message):
    __slots__ = ("protocol", "cluster", "sender", "receiver", "ask_for_vote", "vote", "append_entries", "appended", "introduce", "introduced")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    ASK_FOR_VOTE_FIELD_NUMBER: _ClassVar[int]
    VOTE_FIELD_NUMBER: _ClassVar[int]
    APPEND_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    APPENDED_FIELD_NUMBER: _ClassVar[int]
    INTRODUCE_FIELD_NUMBER: _ClassVar[int]
    INTRODUCED_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    cluster: str
    sender: str
    receiver: str
    ask_for_vote: AskForVote
    vote: Vote
    append_entries: AppendEntries
    appended: Appended
    introduce: Introduce
    introduced: Introduced
    def __init__(self, protocol: _Optional[int] = ..., cluster: _Optional[str] = ..., sender: _Optional[str] = ..., receiver: _Optional[str] = ..., ask_for_vote: _Optional[_Union[AskForVote, _Mapping]] = ..., vote: _Optional[_Union[Vote, _Mapping]] = ..., append_entries: _Optional[_Union[AppendEntries, _Mapping]] = ..., appended: _Optional[_Union[Appended, _Mapping]] = ..., introduce: _Optional[_Union[Introduce, _Mapping]] = ..., introduced: _Optional[_Union[Introduced, _Mapping]] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Question(_message.Message):
    __slots__ = ("protocol", "cluster")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    cluster: str
    def __init__(self, protocol: _Optional[int] = ..., cluster: _Optional[str] = ...) -> None: ...

class NodeReport(_message.Message):
    __slots__ = ("name", "role", "leader", "term", "accepted", "applied", "processing", "quorum_age", "load", "working", "voter", "assignments", "shares")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    PROCESSING_FIELD_NUMBER: _ClassVar[int]
    QUORUM_AGE_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    WORKING_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: str
    leader: str
    term: int
    accepted: SnapshotVersion
    applied: SnapshotVersion
    processing: bool
    quorum_age: float
    load: Load
    working: _containers.RepeatedScalarFieldContainer[str]
    voter: bool
    assignments: _containers.RepeatedCompositeFieldContainer[Assignment]
    shares: Shares
    def __init__(self, name: _Optional[str] = ..., role: _Optional[str] = ..., leader: _Optional[str] = ..., term: _Optional[int] = ..., accepted: _Optional[_Union[SnapshotVersion, _Mapping]] = ..., applied: _Optional[_Union[SnapshotVersion, _Mapping]] = ..., processing: _Optional[bool] = ..., quorum_age: _Optional[float] = ..., load: _Optional[_Union[Load, _Mapping]] = ..., working: _Optional[_Iterable[str]] = ..., voter: _Optional[bool] = ..., assignments: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., shares: _Optional[_Union[Shares, _Mapping]] = ...) -> None: ...

class ClusterReport(_message.Message):
    __slots__ = ("asked", "nodes", "problems")
    class ProblemsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ASKED_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    asked: str
    nodes: _containers.RepeatedCompositeFieldContainer[NodeReport]
    problems: _containers.ScalarMap[str, str]
    def __init__(self, asked: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[NodeReport, _Mapping]]] = ..., problems: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("protocol", "cluster", "node", "drained")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    cluster: str
    node: str
    drained: bool
    def __init__(self, protocol: _Optional[int] = ..., cluster: _Optional[str] = ..., node: _Optional[str] = ..., drained: _Optional[bool] = ...) -> None: ...

class DrainTaken(_message.Message):
    __slots__ = ("leader",)
    LEADER_FIELD_NUMBER: _ClassVar[int]
    leader: str
    def __init__(self, leader: _Optional[str] = ...) -> None: ...
