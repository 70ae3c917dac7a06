"""Of which cluster is a node, by its project's configuration and by what it was told?

springhouse.cluster.nodes             a=10.0.0.1:7100, b=10.0.0.2:7100, c=10.0.0.3:7100
springhouse.cluster.name              its name; else the project's
springhouse.cluster.tls.certificate   PEM files: this node's certificate, its key, and the
                   .key, .authority   authority that signs those of all nodes
springhouse.cluster.tls               off: no TLS, on loopback only
springhouse.cluster.memory            the folder for what a node must not forget: a local disk
springhouse.cluster.heartbeat.seconds, .election.seconds, .keep-alive.seconds
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
from springhouse.units import Seconds

WORD = "springhouse.cluster."
_FILES = ("certificate", "key", "authority")


@dataclass(frozen=True)
class Joining:
    """What a project's configuration says of its cluster; relative paths are the project's."""

    project: str
    folder: Path
    configuration: Mapping[str, str]

    @property
    def cluster(self) -> str:
        """The cluster's name."""
        return self._said("name") or default_cluster_name(self.project)

    @property
    def nodes(self) -> dict[str, str]:
        """The address of each configured node."""
        return parse_peers(self._said("nodes") or "")

    @property
    def credentials(self) -> Credentials | None:
        """The certificate of this node; None without TLS, which has to be configured."""
        if self._said("tls") == "off":
            return None
        files = [self._said(f"tls.{what}") for what in _FILES]
        if not all(files):
            missing = [f"{WORD}tls.{w}" for w, f in zip(_FILES, files, strict=True) if not f]
            raise SpringhouseError(
                f"nodes need certificates, and {', '.join(missing)} is not set",
                hint=f"docs/cluster.md shows how to make certificates. On one machine you can run "
                f"without: -c {WORD}tls=off",
            )
        return read_credentials(*(self.folder / str(file) for file in files))

    @property
    def timing(self) -> Timing:
        """The time-outs, the same on every node."""
        default = Timing()

        def seconds(what: str, usual: Seconds) -> Seconds:
            return Seconds(float(self._said(f"{what}.seconds") or usual))

        return Timing(
            seconds("heartbeat", default.heartbeat_seconds),
            seconds("election", default.election_seconds),
            seconds("keep-alive", default.keep_alive_seconds),
        )

    def members(self, name: str, listen: str | None, peers: str | None) -> Members:
        """One node among all; an address that is not given is the configured one."""
        nodes = self.nodes
        own = listen or nodes.get(name)
        if own is None:
            known = f"Its nodes are: {', '.join(nodes)}." if nodes else "It names no nodes now."
            raise SpringhouseError(
                f'no address for node "{name}"',
                hint=f"Add it to {WORD}nodes, or give --listen HOST:PORT. {known}",
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
        """The folder of a node's memory."""
        return self.folder / (self._said("memory") or ".springhouse") / name

    def _said(self, key: str) -> str | None:
        return self.configuration.get(WORD + key)
