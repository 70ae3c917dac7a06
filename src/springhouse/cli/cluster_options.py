"""What do the commands of a cluster take: which project, whose nodes, with or without TLS?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from springhouse.cli.options import parse_settings, project_folder
from springhouse.project.declarations.secrets import Configuration
from springhouse.project.from_yaml import read_pipeline_file
from springhouse.project.settings import CLUSTER_TLS
from springhouse.warehouse.node.cluster_settings import Joining


@dataclass(frozen=True)
class ClusterOptions(Joining):
    """A cluster as configured, with the settings that were given on the command line."""

    given: Mapping[str, str]


def joining(
    project: Path | None, settings: Sequence[str] | None, *, without_tls: bool = False
) -> ClusterOptions:
    """What the project and the command line say; neither Spark nor the project's code is run."""
    folder = project_folder(project).resolve()
    pipeline = read_pipeline_file(folder)
    given = parse_settings(settings)
    if without_tls:
        given[CLUSTER_TLS.key] = "off"
    said = {key: value.value for key, value in pipeline.configuration.items()}
    return ClusterOptions(pipeline.name, folder, Configuration(said | given, folder), given)
