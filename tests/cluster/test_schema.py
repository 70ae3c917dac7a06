"""The committed code matches the schema."""

from pathlib import Path

from grpc_tools import protoc

import springhouse.cluster

FOLDER = Path(springhouse.cluster.__file__).parent


def test_make_proto_would_change_nothing(tmp_path):
    schema = "springhouse/cluster/cluster.proto"
    arguments = ["protoc", f"-I{FOLDER.parents[1]}", f"--python_out={tmp_path}", schema]
    assert protoc.main(arguments) == 0
    made = tmp_path / "springhouse" / "cluster" / "cluster_pb2.py"
    assert made.read_text() == (FOLDER / "cluster_pb2.py").read_text(), "run `make proto`"
