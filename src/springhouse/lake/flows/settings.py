"""How do a project's flows run, as its `configuration:` says?"""

from collections.abc import Mapping

from springhouse.flows.execution import PolicyName
from springhouse.flows.settings import QUEUE_PACKS, Settings

_PREFIX = "springhouse.flows."


def flow_settings(configuration: Mapping[str, str]) -> Settings:
    """Policy, size of packs and length of queues; what is not said is as this machine suggests.

    >>> flow_settings({"springhouse.flows.policy": "minimum-memory"}).policy.value
    'minimum memory'
    """
    default = Settings()
    policy = configuration.get(_PREFIX + "policy", default.policy.value)
    packs = configuration.get(_PREFIX + "queue-packs", str(QUEUE_PACKS))
    size = configuration.get(_PREFIX + "pack-bytes")
    return Settings(
        policy=PolicyName(policy.replace("-", " ")),
        queue_packs=int(packs),
        pack_bytes=None if size is None else int(size),
    )
