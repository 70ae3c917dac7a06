"""Which settings do `configuration:` and the tables' properties give to a project's flows?"""

from collections.abc import Mapping

from springhouse.flows.flow_settings import Settings
from springhouse.flows.policy_choice import PolicyName
from springhouse.project.declarations.declaration import Project, Table, View
from springhouse.project.settings import FLOW_PACK_BYTES, FLOW_POLICY, FLOW_QUEUE_PACKS


def flow_settings(project: Project, declared: Table | View) -> Settings:
    """The settings for the flow of a table or view. Its own properties precede the project's."""
    return settings_from({**project.configuration, **declared.flow_settings})


def settings_from(configuration: Mapping[str, str]) -> Settings:
    """The policy, the size of packs and the length of queues. The machine decides missing ones.

    >>> settings_from({"springhouse.flows.policy": "minimum-memory"}).policy.value
    'minimum memory'
    """
    return Settings(
        policy=PolicyName(FLOW_POLICY.read(configuration).replace("-", " ")),
        queue_packs=FLOW_QUEUE_PACKS.read(configuration),
        pack_bytes=FLOW_PACK_BYTES.find(configuration),
    )
