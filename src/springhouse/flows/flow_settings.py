"""How does a flow run: under which policy, on how many threads, in packs of which size?"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from springhouse.flows.flow_graph import FlowError
from springhouse.flows.policies.minimum_memory import SLOT_SECONDS
from springhouse.flows.policy_choice import THETA, PolicyName
from springhouse.flows.topology import Topology, one_node, read_topology

QUEUE_PACKS = 30
"""The largest number of row packs on an edge: 000 found 30 to 150 to be good (Table 3).

This is the least of these numbers: packs are large here, and full queues must fit into memory.
"""

_POLICIES = f"There are {', '.join(name.value for name in PolicyName)}."


@dataclass(frozen=True)
class Settings:
    """How flows run. None stands for the default of this machine."""

    policy: PolicyName = PolicyName.LOCALITY
    threads: int | None = 1
    queue_packs: int = QUEUE_PACKS
    pack_bytes: int | None = None
    theta: int = THETA
    slot_seconds: float = SLOT_SECONDS

    def __post_init__(self) -> None:
        for word in ("threads", "queue_packs", "pack_bytes"):
            value = getattr(self, word)
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int) or value < 1
            ):
                raise FlowError(
                    f"a flow can't run with {word}={value!r}",
                    hint=f"{word} is a whole number, 1 or more.",
                )
        self._prove_policy(self.policy, self.theta, self.slot_seconds)

    def _prove_policy(self, policy: object, theta: object, slot: object) -> None:
        if not isinstance(policy, PolicyName):
            raise FlowError(f"there is no policy {policy!r}", hint=_POLICIES)
        if isinstance(theta, bool) or not isinstance(theta, int) or theta < 0:
            raise FlowError(
                f"a flow can't run with theta={theta!r}", hint="theta is a whole number, 0 or more."
            )
        if isinstance(slot, bool) or not isinstance(slot, int | float) or not slot > 0:
            raise FlowError(
                f"a flow can't run with slot_seconds={slot!r}",
                hint="slot_seconds is a number of seconds, more than 0.",
            )

    def topology(self) -> Topology:
        """The topology of the threads: `threads` many, or one per processor of this machine."""
        machine = read_topology()
        return machine if self.threads is None else one_node(self.threads, machine.l2_bytes)


def settings_of(options: Mapping[str, object]) -> Settings:
    """Settings from a user's options, which name the policy.

    >>> settings_of({"policy": "minimum-memory", "queue_packs": 5}).policy.value
    'minimum memory'
    """
    known = {field.name for field in fields(Settings)}
    for word in options:
        if word not in known:
            raise FlowError(
                f'a flow has no setting "{word}"', hint=f"There are {', '.join(sorted(known))}."
            )
    chosen = dict(options)
    policy = chosen.get("policy")
    if isinstance(policy, str):
        names = {name.value: name for name in PolicyName}
        if policy.replace("-", " ") not in names:
            raise FlowError(f'there is no policy "{policy}"', hint=_POLICIES)
        chosen["policy"] = names[policy.replace("-", " ")]
    return Settings(**chosen)  # type: ignore[arg-type]  # checked above, and by use
