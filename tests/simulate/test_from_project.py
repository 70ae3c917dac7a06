"""A project as a workload."""

import pytest

from springhouse.project.load import load
from springhouse.simulate.from_project import PastRefresh, project_workload
from springhouse.units import Instant, RowCount, Seconds

FILES = {
    "spark-pipeline.yml": "name: shop\nstorage: storage\n"
    "libraries:\n  - glob:\n      include: transformations/**\n",
    "transformations/all.sql": """
CREATE STREAMING TABLE orders TBLPROPERTIES ('springhouse.period' = '5 seconds')
  AS SELECT * FROM STREAM read_files('data/orders', format => 'json', schema => 'id BIGINT');
CREATE STREAMING TABLE customers TBLPROPERTIES ('springhouse.period' = '1 minute')
  AS SELECT * FROM STREAM read_files('data/customers', format => 'json', schema => 'id BIGINT');
CREATE TEMPORARY VIEW both AS SELECT o.id FROM orders o JOIN customers c ON o.id = c.id;
CREATE MATERIALIZED VIEW counted
  TBLPROPERTIES ('springhouse.staleness' = '1 minute',
                 'springhouse.staleness.orders' = '30 seconds',
                 'springhouse.priority' = '10')
  AS SELECT count(*) AS n FROM both;
""",
}


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return load(tmp_path)


def refreshes(every, seconds, count=20, rows=100):
    return [
        PastRefresh(Instant(1e9 + every * k), Seconds(seconds), RowCount(rows))
        for k in range(count)
    ]


def tables(found):
    return {table.name: table for table in found.workload.tables}


def test_what_is_declared(project):
    found = project_workload(project, {})
    told = tables(found)
    assert list(told) == ["customers", "orders", "counted"]
    assert (told["orders"].period_seconds, told["customers"].period_seconds) == (5.0, 60.0)
    counted = told["counted"]
    assert {*counted.upstream} == {"orders", "customers"}
    assert (counted.priority, counted.promise_seconds, counted.period_seconds) == (10, 30, None)
    assert found.workload.periods["counted"] == 60.0


def test_costs_without_a_past_are_guesses(project):
    found = project_workload(project, {"orders": refreshes(5.0, 0.2, count=2)})
    assert {*found.guessed} == {"orders", "customers", "counted"}


def test_costs_are_learned(project):
    found = project_workload(project, {"orders": refreshes(5.0, 0.4)})
    assert {*found.guessed} == {"customers", "counted"}
    cost = tables(found)["orders"].cost
    assert cost is not None
    assert cost.seconds(5.0) == pytest.approx(0.4, rel=0.1)


def test_data_that_comes_more_seldom_than_it_is_asked_for(project):
    past = refreshes(300.0, 0.4)
    # A night in which nobody ran the House changes nothing.
    past += [PastRefresh(Instant(each.at + 86_400), each.seconds, each.rows) for each in past]
    assert tables(project_workload(project, {"orders": past}))["orders"].period_seconds == 300.0


def test_data_that_comes_as_often_as_it_is_asked_for(project):
    found = project_workload(project, {"orders": refreshes(0.5, 0.1)})
    assert tables(found)["orders"].period_seconds == 5.0
