"""A Kafka broker of one node on this machine, for tests and benchmarks.

    python scripts/kafka_broker.py FOLDER

It keeps its data in FOLDER, prints the address to connect to as soon as it answers, and ends when
its standard input does: so it never outlives the program that started it. The jars are fetched by
`jars.sh`; if they can't be had, it says so and ends with the code 3.
"""

import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).parent
NO_JARS = 3
SECONDS_TO_START = 300.0

PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{inside}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:{outside},CONTROLLER://127.0.0.1:{inside}
advertised.listeners=PLAINTEXT://127.0.0.1:{outside}
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
CLUSTER_ID = "c3ByaW5naG91c2UtdGVzdA"


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    fetched = subprocess.run(
        ["sh", HERE / "jars.sh", "broker"], capture_output=True, text=True, check=False
    )
    if fetched.returncode:
        print(fetched.stderr.strip(), file=sys.stderr)
        return NO_JARS
    home = subprocess.run(
        ["sh", HERE / "java.sh"], capture_output=True, text=True, check=True
    ).stdout.strip()
    java = [f"{home}/bin/java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", fetched.stdout.strip()]
    outside, inside = free_ports(2)
    properties = folder / "server.properties"
    properties.write_text(PROPERTIES.format(outside=outside, inside=inside, folder=folder))
    with (folder / "log.txt").open("a") as log:
        tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", CLUSTER_ID]
        subprocess.run([*java, *tool, "-c", properties], stdout=log, stderr=log, check=True)
        broker = subprocess.Popen(
            [*java, "kafka.Kafka", properties], stdout=log, stderr=log, cwd=folder
        )
    try:
        await_port(outside, broker)
        print(f"127.0.0.1:{outside}", flush=True)
        sys.stdin.read()
    finally:
        broker.kill()
        broker.wait(timeout=20)
    return 0


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def await_port(port: int, broker: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            if broker.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the broker does not start; see log.txt in its folder") from None
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
