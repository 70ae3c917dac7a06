"""What does exactly once cost on the way from a topic into a table, and is it kept?

Bare Spark and a warehouse both read the same topic (100,000 messages of JSON in 8 partitions) and
write it to a table. Bare Spark keeps no offsets and does not separate bad records; the warehouse
writes a new table. Both run in turns in one warm Spark, and the program compares the medians. Goal:
at least 80 % of the rows per second.

Then three nodes, each with a Spark of its own, share the partitions of such a topic. One of them is
killed (SIGKILL, with its JVM) during the work and started again. Every message must be in the table
once, for any reader of Delta.

Run: `python bench/kafka.py [--messages 100000] [--rounds 8] [--only rates|kill]`; about four
minutes. With an even number of rounds, each side begins as often as the other.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from _nodes import Nodes, waited
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

HERE = Path(__file__).parent
SCRIPTS = HERE.parent / "scripts"
PARTITIONS = 8
SCHEMA = "id BIGINT, customer BIGINT, country STRING, amount DECIMAL(12,2), placed_at TIMESTAMP"
PROJECT = """
name: bench
storage: storage
libraries:
  - glob:
      include: transformations/**
"""
SQL = """
CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_kafka('{topic}',
  bootstrapServers => '{address}', format => 'json', schema => '{schema}'{more});
"""
NODES = ("a", "b", "c")
SMALL = ", maxOffsetsPerPartition => '500'"
"""So small that a table is not whole before a node can be killed."""

SETTINGS = {
    "springhouse.spark.master": "local[2]",
    "spark.driver.memory": "1g",
    # A node does not live long enough here for compilers to pay off.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", choices=("rates", "kill"))
    given = parser.parse_args()
    fetched = subprocess.run(
        ["sh", SCRIPTS / "jars.sh", "kafka"], capture_output=True, text=True, check=False
    )
    if fetched.returncode:
        sys.exit(f"there are no jars of Spark's connector: {fetched.stderr.strip()}")
    jars = fetched.stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        broker = subprocess.Popen(
            [sys.executable, SCRIPTS / "kafka_broker.py", Path(folder) / "broker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            # The broker gave up and printed the reason, so there is no line.
            address = broker.stdout.readline().strip()
            if not address:
                sys.exit("the broker does not start")
            if given.only != "kill":
                make(address, "orders")
                fill(address, "orders", given.messages)
                compare(Path(folder), address, jars, given.messages, given.rounds)
            if given.only != "rates":
                kill(Path(folder), address, jars, given.messages)
        finally:
            broker.stdin.close()
            broker.wait(timeout=60)


def make(address: str, topic: str) -> None:
    """Create an empty topic."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for made in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        made.result(timeout=30)


def fill(address: str, topic: str, messages: int) -> None:
    """Send all messages."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "log_level": 0})
    for number in range(messages):
        order = {
            "id": number,
            "customer": number % 1000,
            "country": ("NO", "SE", "DK", "FI")[number % 4],
            "amount": f"{number % 10_000 / 100:.2f}",
            "placed_at": "2026-01-31T12:00:00Z",
        }
        producer.produce(topic, json.dumps(order).encode(), partition=number % PARTITIONS)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def made(project: Path, address: str, topic: str, more: str = "") -> Path:
    """A project that reads a topic."""
    (project / "transformations").mkdir(parents=True)
    (project / "spark-pipeline.yml").write_text(PROJECT)
    sql = SQL.format(address=address, topic=topic, schema=SCHEMA, more=more)
    (project / "transformations" / "orders.sql").write_text(sql)
    return project


def compare(folder: Path, address: str, jars: str, messages: int, rounds: int) -> None:
    import springhouse
    from springhouse.lake.spark.session import Spark

    project = made(folder / "project", address, "orders")

    session = Spark({"spark.jars": jars}, "bench").session()  # warehouses of this process share it.
    seconds: dict[str, list[float]] = {"bare Spark": [], "Springhouse": []}
    works = [("bare Spark", bare), ("Springhouse", warehouse)]
    for number in range(-2, rounds):  # Two rounds warm it up.
        works.reverse()  # The second one finds everything warmer.
        for name, work in works:
            shutil.rmtree(project / "storage", ignore_errors=True)
            shutil.rmtree(folder / "bare", ignore_errors=True)
            began = time.monotonic()
            rows = work(session, folder, address, springhouse)
            took = time.monotonic() - began
            assert rows == messages, f"{name} has {rows} rows of {messages}"
            if number >= 0:
                seconds[name].append(took)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    print(f"{messages:,} messages in {PARTITIONS} partitions, {rounds} rounds, medians\n")
    print("| | seconds | rows per second | least and most |\n|---|---|---|---|")
    for name, median in medians.items():
        spread = f"{min(seconds[name]):.2f} to {max(seconds[name]):.2f} s"
        print(f"| {name} | {median:.2f} | {messages / median:,.0f} | {spread} |")
    share = medians["bare Spark"] / medians["Springhouse"]
    print(f"\nSpringhouse reaches {share:.0%} of bare Spark (goal: 80 %)")


def bare(session: SparkSession, folder: Path, address: str, _: object) -> int:
    read = (
        session.read.format("kafka")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    parsed = read.select(sf.from_json(sf.col("value").cast("string"), SCHEMA).alias("r"))
    parsed.select("r.*").write.parquet(str(folder / "bare"))
    return count(folder / "bare")


def warehouse(session: SparkSession, folder: Path, address: str, springhouse: object) -> int:
    with springhouse.open(folder / "project") as decode_message:  # type: ignore[attr-defined]
        assert not decode_message.refresh().failures
    return count(folder / "project" / "storage" / "tables" / "orders")


def kill(folder: Path, address: str, jars: str, messages: int) -> None:
    """Let three nodes read a topic, and kill one of them."""
    make(address, "shared")
    project = made(folder / "shared", address, "shared", SMALL)
    table = project / "storage" / "tables" / "orders"
    nodes = Nodes("bench", NODES, project)
    given = SETTINGS | {
        "spark.jars": jars,
        "springhouse.cluster.nodes": ",".join(f"{n}={at}" for n, at in nodes.addresses.items()),
    }
    options = [part for key, value in given.items() for part in ("-c", f"{key}={value}")]

    def start(name: str) -> None:
        words = ("-m", "springhouse", "node", "--name", name, "--project", str(project))
        nodes.start(name, *words, "--without-tls", *options)

    def owners() -> Counter[str]:
        """The number of partitions of each node; empty until all partitions have an owner."""
        report = nodes.report()
        units = {} if report is None else report.newest.assignments
        found = Counter(of.owner for unit, of in units.items() if unit.startswith("orders/"))
        return found if found.total() == PARTITIONS else Counter()

    try:
        for name in NODES:
            start(name)
        waited(lambda: len(owners()) == len(NODES), "partition with each node", 240.0)
        # Not earlier: the first node would read everything alone.
        fill(address, "shared", messages)
        waited(lambda: committed(table) >= messages // 4, "quarter of the messages", 240.0, 0.05)
        shared = owners()
        victim = shared.most_common(1)[0][0]
        there = committed(table)
        nodes.kill(victim)
        killed_at = time.time()
        assert there < messages, "all messages were in the table before anybody was killed"
        start(victim)
        waited(lambda: committed(table) >= messages, "message in the table", 240.0)
        ended_at = time.time()
        codes = nodes.leave(*NODES)
    except BaseException:
        print(nodes.last_words(), file=sys.stderr)
        raise
    finally:
        nodes.end()
    ids = sorted(DeltaTable(str(table)).to_pyarrow_table(columns=["id"])["id"].to_pylist())
    once = ids == list(range(messages))
    commits = sorted(each["timestamp"] / 1000 for each in DeltaTable(str(table)).history())
    after = [killed_at, *(at for at in commits if killed_at < at <= ended_at)]
    print(f"\n{', '.join(f'{name} has {n} partitions' for name, n in sorted(shared.items()))}")
    print(f"{victim} was killed when {there:,} of {messages:,} messages were in the table")
    print(f"the rest took {ended_at - killed_at:.1f} s; longest pause between two commits", end=" ")
    print(f"{max(later - earlier for earlier, later in pairwise(after)):.1f} s")
    print("every message once" if once else f"{len(ids):,} rows, {len(set(ids)):,} different")
    sys.exit(not once or any(codes))


def committed(table: Path) -> int:
    """How many rows a Delta table has, by its log."""
    if not DeltaTable.is_deltatable(str(table)):
        return 0
    actions = pa.table(DeltaTable(str(table)).get_add_actions(flatten=True))
    return sum(actions["num_records"].to_pylist())


def count(folder: Path) -> int:
    """The number of rows in a folder, by the footers of the files."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))


if __name__ == "__main__":
    main()
