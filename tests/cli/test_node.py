"""A node that can't work reports this, and still belongs to the cluster."""

import os
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from socket import socket

from patience import patience
from springhouse.cluster import wire
from springhouse.cluster.network import PeerChannel


def free_addresses(count: int) -> list[str]:
    with ExitStack() as stack:
        found = [stack.enter_context(socket()) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in found]


def test_a_node_votes_before_it_has_loaded_what_it_works_with() -> None:
    code = (
        "import sys; import springhouse.cli.app, springhouse.cli.cluster_options;"
        "import springhouse.warehouse.node.cluster_member;"
        "print({'pyspark', 'pyarrow', 'deltalake', 'pandas', 'sqlglot'} & set(sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"


def test_a_node_whose_spark_does_not_start_gets_no_units(idle_shop: Path, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o700)
    own, other = free_addresses(2)
    node = subprocess.Popen(
        [
            *(sys.executable, "-m", "springhouse", "node", "--project", str(idle_shop)),
            *("--name", "a", "--listen", own, "--peers", f"b={other}", "--without-tls"),
            *("--for", "60s"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
    )
    with node:
        assert node.stderr is not None
        told = next((line for line in node.stderr if "Spark does not start" in line), "nothing")
        assert "this node gets no units until it does" in told
        with closing(PeerChannel("shop", own, None)) as line:
            answer = line.call("Status", wire.encode_question("shop"), 20.0)
        (report,) = wire.decode_cluster_report(answer).nodes
        assert not report.load.able
        node.terminate()
        node.communicate(timeout=patience(60))
    assert node.returncode == 0
