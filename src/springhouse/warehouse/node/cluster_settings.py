"""Which cluster does a node belong to, by its configuration and its command line?

The settings are those under `springhouse.cluster.` in `project.settings`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from springhouse.cluster.members import (
    Credentials,
    Members,
    default_cluster_name,
    parse_peers,
    read_credentials,
)
from springhouse.cluster.timing import Timing
from springhouse.errors import SpringhouseError
from springhouse.project.settings import (
    CLUSTER_AUTHORITY,
    CLUSTER_CERTIFICATE,
    CLUSTER_KEY,
    CLUSTER_MEMORY,
    CLUSTER_NAME,
    CLUSTER_NODES,
    CLUSTER_TLS,
    ELECTION_SECONDS,
    HEARTBEAT_SECONDS,
    KEEP_ALIVE_SECONDS,
)
from springhouse.units import Seconds

_FILES = (CLUSTER_CERTIFICATE, CLUSTER_KEY, CLUSTER_AUTHORITY)


@dataclass(frozen=True)
class Joining:
    """The cluster that a configuration describes; relative paths start at the project."""

    project: str
    folder: Path
    configuration: Mapping[str, str]

    @property
    def cluster(self) -> str:
        """The name of the cluster."""
        return CLUSTER_NAME.find(self.configuration) or default_cluster_name(self.project)

    @property
    def nodes(self) -> dict[str, str]:
        """The address of each configured node."""
        return parse_peers(CLUSTER_NODES.find(self.configuration) or "")

    @property
    def credentials(self) -> Credentials | None:
        """The certificate, key and authority of this node; None without TLS."""
        if CLUSTER_TLS.find(self.configuration) == "off":
            return None
        files = [setting.find(self.configuration) for setting in _FILES]
        missing = [s.key for s, file in zip(_FILES, files, strict=True) if file is None]
        if missing:
            raise SpringhouseError(
                f"nodes need certificates, and {', '.join(missing)} is not set",
                hint="docs/cluster.md shows how to make certificates. On one machine, "
                f"-c {CLUSTER_TLS.key}=off does without.",
            )
        return read_credentials(*(self.folder / str(file) for file in files))

    @property
    def timing(self) -> Timing:
        """The time-outs, which are the same on every node."""
        return Timing(
            Seconds(HEARTBEAT_SECONDS.read(self.configuration)),
            Seconds(ELECTION_SECONDS.read(self.configuration)),
            Seconds(KEEP_ALIVE_SECONDS.read(self.configuration)),
        )

    def members(self, name: str, listen: str | None, peers: str | None) -> Members:
        """One node among all; an address that is not given comes from the configuration."""
        nodes = self.nodes
        own = listen or nodes.get(name)
        if own is None:
            known = f"Configured are: {', '.join(nodes)}." if nodes else "No nodes are configured."
            raise SpringhouseError(
                f'no address for node "{name}": add it to {CLUSTER_NODES.key}',
                hint=f"Or give it as --listen HOST:PORT. {known}",
            )
        others = {each: at for each, at in nodes.items() if each != name}
        return Members(
            self.cluster,
            name,
            own,
            others if peers is None else parse_peers(peers),
            self.credentials,
        )

    def memory(self, name: str) -> Path:
        """The folder in which a node keeps its term, its vote and its state."""
        return self.folder / CLUSTER_MEMORY.read(self.configuration) / name
