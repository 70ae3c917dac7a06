"""From topic to topic, through processes that are killed: every message once, every change once.

A table reads 100,000 messages from 8 partitions, and another topic receives the changes of a view
over it. The test kills the process twice during this work.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

MESSAGES = 100_000
PARTITIONS = 8
CUSTOMERS = 50

SQL = """
CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_kafka('orders',
  bootstrapServers => '{address}', format => 'json', maxOffsetsPerPartition => '4000',
  schema => 'id BIGINT, customer BIGINT, amount DECIMAL(12,2)');

CREATE MATERIALIZED VIEW totals
  TBLPROPERTIES ('springhouse.sink.out' = 'kafka', 'springhouse.sink.out.topic' = 'totals',
                 'springhouse.sink.out.bootstrapServers' = '{address}',
                 'springhouse.sink.file' = 'positioned_file',
                 'springhouse.sink.file.path' = 'out/totals.jsonl')
  AS SELECT customer, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY customer;
"""


def order(number: int) -> str:
    return json.dumps({"id": number, "customer": number % CUSTOMERS, "amount": "1.50"})


def net(changes: list[dict[str, Any]]) -> Counter[tuple[int, int, float]]:
    """The rows that are left when all changes are applied."""
    rows: Counter[tuple[int, int, float]] = Counter()
    for change in changes:
        row = change["customer"], change["orders"], change["total"]
        rows[row] += {"insert": 1, "delete": -1}[change["_change_type"]]
    return Counter({row: count for row, count in rows.items() if count})


def test_a_killed_process_loses_nothing_and_doubles_nothing(
    kafka: Any,
    kafka_jars: str,
    start_worker: Callable[..., Any],
    write_project: Callable[..., Path],
    rows_of: Callable[..., list[dict[str, Any]]],
) -> None:
    kafka.make("orders", PARTITIONS)
    kafka.make("totals", 2)
    for partition in range(PARTITIONS):
        sent = (order(number) for number in range(partition, MESSAGES, PARTITIONS))
        kafka.send("orders", *sent, partition=partition)
    project = write_project(SQL.format(address=kafka.address), **{"spark.jars": kafka_jars})

    killed = start_worker(project)
    killed.say("refresh")
    killed.hear("finished", count=1)  # Some of the messages are in the table,
    killed.hear("writing", count=1)  # and the next are about to be.
    killed.kill()
    dying = start_worker(project, "commit:after:totals.out:die")
    dying.say("refresh")  # The process dies after it reported what it is going to send.
    dying.hear_the_end()
    last = start_worker(project)
    assert last.ask("refresh", "refreshed", seconds=300)["failures"] == {}

    assert sorted(row["id"] for row in rows_of(project, "orders")) == list(range(MESSAGES))
    view = {
        (row["customer"], row["orders"], float(row["total"])) for row in rows_of(project, "totals")
    }
    assert len(view) == CUSTOMERS
    received = [json.loads(message.value()) for message in kafka.received("totals")]
    written = [json.loads(line) for line in (project / "out" / "totals.jsonl").open()]
    for changes in (received, written):
        assert net(changes) == Counter(dict.fromkeys(view, 1))
    key = lambda change: json.dumps(change, sort_keys=True)  # noqa: E731
    assert sorted(received, key=key) == sorted(written, key=key), "both sinks got the same"
