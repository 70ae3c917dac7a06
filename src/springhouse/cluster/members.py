"""Who are the nodes of a cluster, where do they listen, and by what do they know each other?

Membership is configured, the same on every node: `a=host1:7100, b=host2:7100, c=host3:7100`. Nodes
trust each other by certificates: each has one that is signed by the cluster's authority and that
has the cluster's name among its DNS names. So the name of a cluster is proven, not only said, and
it does not matter at which address a node is reached. Without certificates a cluster stays on one
machine, and only if that was asked for.
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
    """What a node shows, and by whom what it is shown has to be signed; all in PEM."""

    certificate: bytes
    key: bytes
    authority: bytes


@dataclass(frozen=True)
class Members:
    """One node among all of its cluster; addresses are `host:port`. Without papers: no TLS."""

    cluster: str
    name: str
    listen: str
    peers: Mapping[str, str] = field(default_factory=dict)
    papers: Credentials | None = None

    def __post_init__(self) -> None:
        _prove_name("cluster", self.cluster)
        for name in (self.name, *self.peers):
            _prove_name("node", name)
        if self.name in self.peers:
            raise SpringhouseError(
                f'the node "{self.name}" is among its own peers',
                hint="Peers are the others; --listen is this node's own address.",
            )
        for address in (self.listen, *self.peers.values()):
            host = host_of(address)
            if self.papers is None and not _is_loopback(host):
                raise SpringhouseError(
                    f"without TLS, nodes talk only within one machine, and {address} is not in it",
                    hint="Give certificates: springhouse.cluster.tls.certificate, .key "
                    "and .authority.",
                )


def read_peers(text: str) -> dict[str, str]:
    """`name=host:port`, separated by commas.

    >>> read_peers("b=127.0.0.1:7101, c=127.0.0.1:7102")
    {'b': '127.0.0.1:7101', 'c': '127.0.0.1:7102'}
    """
    peers: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, address = part.partition("=")
        if not equals:
            raise SpringhouseError(
                f'"{part}" is not NAME=HOST:PORT', hint="Such as b=10.0.0.2:7100,c=10.0.0.3:7100."
            )
        if name in peers:
            raise SpringhouseError(f'the node "{name}" is named twice among the peers')
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
            f'"{address}" is not HOST:PORT', hint="Such as 10.0.0.2:7100 or [::1]:7100."
        )
    return host.removeprefix("[").removesuffix("]")


def cluster_name(project: str) -> str:
    """The name of a cluster that was given none: its project's, as a DNS name can be.

    >>> cluster_name("My shop!")
    'my-shop'
    """
    return re.sub(r"[^a-z0-9]+", "-", project.lower()).strip("-") or "springhouse"


def read_papers(certificate: Path, key: Path, authority: Path) -> Credentials:
    """The files of a node, once they are proven to be what they should be."""
    found = {}
    for what, path in (("certificate", certificate), ("key", key), ("authority", authority)):
        try:
            found[what] = path.read_bytes()
        except OSError as error:
            raise SpringhouseError(
                f"the {what} of this node can't be read: {error.strerror}",
                where=str(path),
                hint=f"springhouse.cluster.tls.{what} names the file.",
            ) from None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_verify_locations(authority)
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise SpringhouseError(
            f"these files are no certificate with its key, and authority: {error}",
            where=f"{certificate}, {key}, {authority}",
            hint="All three are PEM files; the key has no password.",
        ) from None
    return Credentials(found["certificate"], found["key"], found["authority"])


def _prove_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SpringhouseError(
            f'"{name}" can\'t be the name of a {what}',
            hint="Letters, digits, dots and dashes, at most 63 of them.",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
