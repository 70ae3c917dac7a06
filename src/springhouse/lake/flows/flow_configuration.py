"""How do a project's flows run, as its `configuration:` and the properties of tables say?"""

from collections.abc import Mapping

from springhouse.flows.flow_settings import Settings
from springhouse.flows.policy_choice import PolicyName
from springhouse.project.declarations.declaration import Project, Table, View
from springhouse.project.settings import FLOW_PACK_BYTES, FLOW_POLICY, FLOW_QUEUE_PACKS


def flow_settings(project: Project, declared: Table | View) -> Settings:
    """How the flow of a table or view runs: as itself says, else as its project does."""
    return settings_from({**project.configuration, **declared.flow_settings})


def settings_from(configuration: Mapping[str, str]) -> Settings:
    """Policy, size of packs and length of queues; what is not said is as this machine suggests.

    >>> settings_from({"springhouse.flows.policy": "minimum-memory"}).policy.value
    'minimum memory'
    """
    return Settings(
        policy=PolicyName(FLOW_POLICY.read(configuration).replace("-", " ")),
        queue_packs=FLOW_QUEUE_PACKS.read(configuration),
        pack_bytes=FLOW_PACK_BYTES.find(configuration),
    )
