"""Who are the nodes of a cluster, where do they listen, and how do they recognise each other?

Membership is configured, the same on every node: `a=host1:7100, b=host2:7100, c=host3:7100`. Nodes
trust each other by certificates. Each node has a certificate that the cluster's authority signed
and that has the cluster's name among its DNS names. So a node proves to which cluster it belongs,
and its address does not matter. Without certificates a cluster stays on one machine, and only if
the configuration says so.
"""

import ipaddress
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from springhouse.errors import SpringhouseError

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class Credentials:
    """A node's certificate and key, and the authority that signs those of all nodes; all PEM."""

    certificate: bytes
    key: bytes
    authority: bytes


@dataclass(frozen=True)
class Members:
    """One node and its peers; addresses are `host:port`. Without credentials there is no TLS."""

    cluster: str
    name: str
    listen: str
    peers: Mapping[str, str] = field(default_factory=dict)
    credentials: Credentials | None = None

    def __post_init__(self) -> None:
        _validate_name("cluster", self.cluster)
        for name in (self.name, *self.peers):
            _validate_name("node", name)
        if self.name in self.peers:
            raise SpringhouseError(
                f'the node "{self.name}" is among its own peers',
                hint="Peers are the others; --listen is this node's own address.",
            )
        for address in (self.listen, *self.peers.values()):
            host = host_of(address)
            if self.credentials is None and not _is_loopback(host):
                raise SpringhouseError(
                    f"without TLS, nodes talk only within one machine, but {address} is elsewhere",
                    hint="Configure certificates: springhouse.cluster.tls.certificate, .key "
                    "and .authority.",
                )


def parse_peers(text: str) -> dict[str, str]:
    """The address of each peer in a text such as `name=host:port, name=host:port`.

    >>> parse_peers("b=127.0.0.1:7101, c=127.0.0.1:7102")
    {'b': '127.0.0.1:7101', 'c': '127.0.0.1:7102'}
    """
    peers: dict[str, str] = {}
    for part in filter(None, (entry.strip() for entry in text.split(","))):
        name, equals, address = part.partition("=")
        if not equals:
            raise SpringhouseError(
                f'"{part}" is not NAME=HOST:PORT',
                hint="An example: b=10.0.0.2:7100,c=10.0.0.3:7100.",
            )
        if name in peers:
            raise SpringhouseError(f'the peers name the node "{name}" twice')
        host_of(address)
        peers[name] = address
    return peers


def host_of(address: str) -> str:
    """The host in `host:port`.

    >>> host_of("10.0.0.2:7100"), host_of("[::1]:7100")
    ('10.0.0.2', '::1')
    """
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 65536):
        raise SpringhouseError(
            f'"{address}" is not HOST:PORT', hint="Examples: 10.0.0.2:7100 or [::1]:7100."
        )
    return host.removeprefix("[").removesuffix("]")


def default_cluster_name(project: str) -> str:
    """The name of a cluster without a configured one: its project's name, as a DNS name.

    >>> default_cluster_name("My shop!")
    'my-shop'
    """
    return re.sub(r"[^a-z0-9]+", "-", project.lower()).strip("-") or "springhouse"


def read_credentials(certificate: Path, key: Path, authority: Path) -> Credentials:
    """The certificate, key and authority of a node, after a check that they fit together."""
    contents = {}
    for kind, path in (("certificate", certificate), ("key", key), ("authority", authority)):
        try:
            contents[kind] = path.read_bytes()
        except OSError as error:
            raise SpringhouseError(
                f"the {kind} of this node can't be read: {error.strerror}",
                where=str(path),
                hint=f"springhouse.cluster.tls.{kind} names the file.",
            ) from None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_verify_locations(authority)
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise SpringhouseError(
            f"these files are not a certificate, its key and its authority: {error}",
            where=f"{certificate}, {key}, {authority}",
            hint="All three must be PEM files, and the key must have no password.",
        ) from None
    return Credentials(contents["certificate"], contents["key"], contents["authority"])


def _validate_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SpringhouseError(
            f'"{name}" can\'t be the name of a {kind}',
            hint="A name has letters, digits, dots, dashes and underscores, at most 63 of them.",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
