"""Which options do the commands of a cluster share: the project, its nodes, and TLS?"""

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
    """A configured cluster, with the settings from the command line."""

    given: Mapping[str, str]


def read_cluster_options(
    project: Path | None, settings: Sequence[str] | None, *, without_tls: bool = False
) -> ClusterOptions:
    """The options of the project and the command line, without Spark or the project's code."""
    folder = project_folder(project).resolve()
    pipeline = read_pipeline_file(folder)
    given = parse_settings(settings)
    if without_tls:
        given[CLUSTER_TLS.key] = "off"
    configured = {key: value.value for key, value in pipeline.configuration.items()}
    return ClusterOptions(pipeline.name, folder, Configuration(configured | given, folder), given)
