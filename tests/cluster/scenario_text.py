"""Messages, orders and nodes as sentences, for the scenarios."""

from springhouse.cluster.messages import (
    Appended,
    AppendEntries,
    AskForVote,
    Introduce,
    Introduced,
    Vote,
)
from springhouse.cluster.raft_node import Role
from springhouse.cluster.state import ZERO


def version_text(version):
    return "nothing" if version == ZERO else f"version {version}"


def message_text(message):
    match message:
        case AskForVote(term, version, pre_vote):
            asked = "a pre-vote" if pre_vote else "the vote"
            return f"asks for {asked} of term {term}, keeps {version_text(version)}"
        case Vote():
            answer = "grants" if message.granted else "refuses"
            vote = "the pre-vote" if message.pre_vote else "the vote"
            own = "" if message.term <= message.requested_term else f", is in term {message.term}"
            return f"{answer} {vote} of term {message.requested_term}{own}"
        case AppendEntries():
            return _entries_text(message)
        case Appended():
            return _answer_text(message)
        case Introduce():
            return "asks who votes"
        case Introduced(_, _, voters):
            return "has an empty disk" if voters is None else f"knows the voters {' '.join(voters)}"


def _entries_text(message):
    said = [f"{version_text(message.version)}{_content_text(message)}"]
    if message.committed == message.version:
        said.append("committed")
    said.append("with a quorum" if message.has_quorum else "without a quorum")
    return ", ".join(said)


def _content_text(message):
    if message.force:
        return " as a whole state"
    changes = message.changes
    said = [
        f"{unit} is gone" if assignment is None else assignment_text(unit, assignment)
        for unit, assignment in changes.assignments.items()
    ]
    if changes.voters is not None:
        said.append(f"voters {' '.join(changes.voters)}")
    if changes.shares is not None:
        said += [f"share {share:.2f} for {node}" for node, share in sorted(changes.shares.items())]
    if said:
        return f" with ({'; '.join(said)})"
    return "" if message.previous == message.version else " without changes"


def assignment_text(unit, assignment):
    owner, heir, _, offset = assignment
    to = f"{owner} hands {unit} to {heir}" if heir else f"{owner} owns {unit}"
    return f"{to} from offset {offset}" if offset else to


def _answer_text(message):
    said = [f"keeps {version_text(message.version)}"]
    if not message.accepted:
        said = [f"can't accept that in term {message.term}", *said]
    said.append(f"acts on {version_text(message.applied)}")
    if not message.bound:
        said.append("is not bound")
    if message.released:
        said.append(f"has released {' '.join(message.released)}")
    said += [f"has reached offset {offset} of {unit}" for unit, offset in message.offsets]
    if not message.load.able:
        said.append("can't work")
    return ", ".join(said)


def memory_text(memory):
    vote = "no vote" if memory.vote is None else f"a vote for {memory.vote}"
    return f"term {memory.term}, {vote}, {version_text(memory.state.version)}"


def role_text(node):
    match node.role:
        case Role.LEADER:
            return f"{node.name} leads term {node.term}"
        case Role.CANDIDATE:
            return f"{node.name} is a candidate in term {node.term}"
    role = "synchronized" if node.role is Role.SYNCHRONIZED_FOLLOWER else "not synchronized yet"
    if node.leader is None:
        return f"{node.name} is in term {node.term} and knows no leader"
    return f"{node.name} follows {node.leader} in term {node.term}, {role}"
