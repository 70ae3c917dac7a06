"""What does exactly once cost, on the way from a topic into a table?

The same topic (100,000 messages of JSON in 8 partitions) is read and written by bare Spark, with no
offsets kept and nobody to tell bad records from good ones, and by a House into a new table. Both
run in one Spark that is warm, in turns; the medians are compared. Goal: at least 80 % of the rows
per second.

Run: `python bench/kafka.py [--messages 100000] [--rounds 8]`; about two minutes. An even number of
rounds lets each begin as often as the other. That no message is lost or doubled when a process is
killed in the midst of it is a test (`tests/system/test_kafka.py`).
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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
CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_kafka('orders',
  bootstrapServers => '{address}', format => 'json', schema => '{schema}');
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=8)
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
            # It gives up by itself, says why, and then there is no line.
            address = broker.stdout.readline().strip()
            if not address:
                sys.exit("the broker does not start")
            fill(address, given.messages)
            compare(Path(folder), address, jars, given.messages, given.rounds)
        finally:
            broker.stdin.close()
            broker.wait(timeout=60)


def fill(address: str, messages: int) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for made in admin.create_topics([NewTopic("orders", PARTITIONS, 1)]).values():
        made.result(timeout=30)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "log_level": 0})
    for number in range(messages):
        order = {
            "id": number,
            "customer": number % 1000,
            "country": ("NO", "SE", "DK", "FI")[number % 4],
            "amount": f"{number % 10_000 / 100:.2f}",
            "placed_at": "2026-01-31T12:00:00Z",
        }
        producer.produce("orders", json.dumps(order).encode(), partition=number % PARTITIONS)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def compare(folder: Path, address: str, jars: str, messages: int, rounds: int) -> None:
    import springhouse

    project = folder / "project"
    (project / "transformations").mkdir(parents=True)
    (project / "spark-pipeline.yml").write_text(PROJECT)
    sql = SQL.format(address=address, schema=SCHEMA)
    (project / "transformations" / "orders.sql").write_text(sql)
    from springhouse.lake.session import Spark

    session = Spark({"spark.jars": jars}, "bench").session()  # Houses of this process share it.
    seconds: dict[str, list[float]] = {"bare Spark": [], "Springhouse": []}
    works = [("bare Spark", bare), ("Springhouse", house)]
    for number in range(-2, rounds):  # Two rounds warm it up.
        works.reverse()  # Who comes second finds everything warmer.
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


def house(session: SparkSession, folder: Path, address: str, springhouse: object) -> int:
    with springhouse.open(folder / "project") as opened:  # type: ignore[attr-defined]
        assert not opened.refresh().failures
    return count(folder / "project" / "storage" / "tables" / "orders")


def count(folder: Path) -> int:
    """How many rows lie there, by the footers of the files."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))


if __name__ == "__main__":
    main()
