"""How do a project's flows run, as its `configuration:` and the properties of tables say?"""

from collections.abc import Mapping

from springhouse.flows.execution import PolicyName
from springhouse.flows.flow_settings import QUEUE_PACKS, Settings
from springhouse.project.declarations.declaration import Project, Table, View

_PREFIX = "springhouse.flows."


def flow_settings(project: Project, declared: Table | View) -> Settings:
    """How the flow of a table or view runs: as itself says, else as its project does."""
    return settings_from({**project.configuration, **declared.flow_settings})


def settings_from(configuration: Mapping[str, str]) -> Settings:
    """Policy, size of packs and length of queues; what is not said is as this machine suggests.

    >>> settings_from({"springhouse.flows.policy": "minimum-memory"}).policy.value
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
