"""The members of a cluster, and the way in which they recognize each other."""

import pytest

from springhouse.cluster.members import Members, parse_peers, read_credentials
from springhouse.errors import SpringhouseError


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("b", '"b" is not NAME=HOST:PORT'),
        ("b=somewhere", '"somewhere" is not HOST:PORT'),
        ("b=:7100", '":7100" is not HOST:PORT'),
        ("b=host:99999", '"host:99999" is not HOST:PORT'),
        ("b=host:1,b=host:2", 'the peers name the node "b" twice'),
    ],
)
def test_peers_that_are_none(text, problem):
    with pytest.raises(SpringhouseError, match=problem):
        parse_peers(text)


def test_without_tls_nodes_stay_on_one_machine():
    Members("shop", "a", "127.0.0.1:7100", {"b": "localhost:7101", "c": "[::1]:7102"})
    for listen, peer in (("0.0.0.0:1", "127.0.0.1:2"), ("127.0.0.1:1", "10.0.0.2:2")):
        with pytest.raises(SpringhouseError, match="without TLS, nodes talk only within one"):
            Members("shop", "a", listen, {"b": peer})


def test_names_are_such_that_a_certificate_can_have_them():
    with pytest.raises(SpringhouseError, match='"my shop" can\'t be the name of a cluster'):
        Members("my shop", "a", "127.0.0.1:7100")
    with pytest.raises(SpringhouseError, match='"a b" can\'t be the name of a node'):
        Members("shop", "a", "127.0.0.1:7100", {"a b": "127.0.0.1:7101"})
    with pytest.raises(SpringhouseError, match='"a" is among its own peers'):
        Members("shop", "a", "127.0.0.1:7100", {"a": "127.0.0.1:7101"})


def test_credentials_are_checked_before_a_node_starts(authority_class, tmp_path):
    certificate, key, authority = authority_class(tmp_path / "one").sign("shop")
    _, another_key, _ = authority_class(tmp_path / "two").sign("shop")
    assert read_credentials(certificate, key, authority).key == key.read_bytes()
    with pytest.raises(SpringhouseError, match="the key of this node can't be read") as missing:
        read_credentials(certificate, tmp_path / "nowhere", authority)
    assert missing.value.hint == "springhouse.cluster.tls.key names the file."
    with pytest.raises(SpringhouseError, match="not a certificate, its key"):
        read_credentials(certificate, another_key, authority)
    with pytest.raises(SpringhouseError, match="not a certificate, its key"):
        read_credentials(certificate, key, key)
