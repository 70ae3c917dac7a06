"""A complete warehouse in a bucket: Arrow, delta-rs and Spark all use the bucket."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import springhouse
from springhouse.planner import placement


def test_a_project_lives_in_a_bucket(
    bucket: str,
    s3_jars: str,
    project: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not s3_jars:
        pytest.skip("NOT TESTED: the jars of s3a can't be had (scripts/jars.sh)")
    folder = project(
        """
        CREATE STREAMING TABLE orders AS SELECT * FROM STREAM
          read_files('data', format => 'json', schema => 'id BIGINT, customer BIGINT');
        CREATE MATERIALIZED VIEW counts
          TBLPROPERTIES ('springhouse.sink.out' = 'avro',
                         'springhouse.sink.out.path' = '{bucket}/out')
          AS SELECT customer, count(*) AS orders FROM orders GROUP BY customer;
        """.replace("{bucket}", bucket)
    )
    settings = (folder / "spark-pipeline.yml").read_text()
    settings = settings.replace("storage: storage", f"storage: {bucket}/warehouse")
    (folder / "spark-pipeline.yml").write_text(settings)
    (folder / "data").mkdir()
    for number, small in enumerate((True, False)):
        # Spark itself writes the second range, through s3a.
        monkeypatch.setattr(placement, "INPUT_BYTES", 64 * 2**20 if small else 0)
        lines = [
            json.dumps({"id": n, "customer": n % 3}) for n in range(number * 9, number * 9 + 9)
        ]
        (folder / "data" / f"{number}.json").write_text("\n".join(lines))
        with springhouse.open(folder) as warehouse:
            assert not warehouse.refresh().failures
    with springhouse.open(folder) as warehouse:
        rows = warehouse.query("SELECT customer, orders FROM counts ORDER BY customer").collect()
        assert [tuple(row) for row in rows] == [(0, 6), (1, 6), (2, 6)]
        assert warehouse.internals.lake.tables() == ["counts", "orders"]
