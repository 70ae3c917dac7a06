"""The units of a project, and the share of a node in a table that several nodes share; no Spark."""

import pytest

from springhouse.lake.delta.commits import Change, create
from springhouse.lake.delta.note import FlowNote, Note
from springhouse.warehouse import Warehouse
from springhouse.warehouse.node.permits import Permits
from springhouse.warehouse.node.unit_survey import Survey

SQL = """
CREATE STREAMING TABLE clicks AS SELECT * FROM STREAM sample(rate => '10', partitions => '12');
CREATE STREAMING TABLE ticks AS SELECT * FROM STREAM sample(rate => '10');
CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('data/orders', format => 'json',
  schema => 'id BIGINT, amount BIGINT');
CREATE STREAMING TABLE large AS SELECT * FROM STREAM(orders) WHERE amount > 100;
CREATE STREAMING TABLE latest;
CREATE FLOW latest_in AS AUTO CDC INTO latest FROM STREAM(orders)
  KEYS (amount) SEQUENCE BY id STORED AS SCD TYPE 1;
CREATE MATERIALIZED VIEW visits AS SELECT count(*) AS visits FROM clicks;
"""


class Node:
    """A warehouse with permits, and a survey of it; the test sets its clock."""

    def __init__(self, folder, now):
        self.permits = Permits(everything=False)
        self.warehouse = Warehouse(folder, permits=self.permits, clock=lambda: now[0])
        self.survey = Survey(self.warehouse.internals.watch, self.permits)

    def take(self, *units):
        self.permits.take(tuple((unit, 0) for unit in units))

    def waiting(self, table):
        """The partitions of a table with waiting data."""
        (feed,) = self.warehouse.internals.watch.feeds(table)
        return {name.rpartition("/")[2] for name in feed.behind(None)}


@pytest.fixture
def now():
    return [1_800_000_000.0]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "all.sql").write_text(SQL)
    (tmp_path / "spark-pipeline.yml").write_text(
        "name: shop\nstorage: storage\nlibraries:\n  - glob:\n      include: transformations/**\n"
    )
    return tmp_path


@pytest.fixture
def node(project, now):
    return Node(project, now)


def test_partitions_are_units_where_they_are_independent(node):
    shared = {f"clicks/{number}" for number in range(12)}
    assert set(node.survey.units()) == {*shared, "ticks", "orders", "large", "latest", "visits"}


def test_units_are_told_when_they_change(node):
    assert node.survey.units() is not None
    assert node.survey.units() is None


def test_a_table_is_begun_by_one_node_and_then_shared(node, now):
    other = Node(node.warehouse.internals.lake.folder, now)
    node.take("clicks/0", "clicks/1")
    other.take("clicks/2")
    for each in (node, other):
        each.survey.units()
        each.waiting("clicks")
    now[0] += 10
    assert len(node.waiting("clicks")) == 12
    assert other.waiting("clicks") == set()

    begin_table(node, "clicks")
    for each in (node, other):
        each.survey.units()
    now[0] += 10
    assert node.waiting("clicks") == {"0", "1"}
    assert other.waiting("clicks") == {"2"}


def test_all_nodes_count_from_the_moment_that_the_first_commit_wrote_down(node, now):
    other = Node(node.warehouse.internals.lake.folder, now)
    node.take("clicks/0")
    other.take("clicks/2")
    node.survey.units()
    now[0] += 5
    other.survey.units()  # It opened the source later, and would count from here.
    begin_table(node, "clicks")
    other.survey.units()
    now[0] += 5
    (feed,) = other.warehouse.internals.watch.feeds("clicks")
    assert [given.end for given in feed.behind(None).values()] == [100]


def test_only_sources_of_owned_tables_are_asked(node, now):
    node.survey.units()
    node.take("ticks")
    now[0] += 10
    node.warehouse.internals.watch.observing.poll(now[0])
    assert [plan.table for plan in node.warehouse.internals.watch.plans(now[0])] == ["ticks"]


def test_what_was_seen_to_wait_is_forgotten_with_its_table(node, now):
    watch = watch_with_ticks(node, now)
    assert watch.planning.waits.waiting_since("ticks", now[0]) == [now[0]]
    node.permits.let_go(("ticks",), at_once=False)
    assert watch.planning.waits.waiting_since("ticks", now[0] + 60) == []


def test_what_came_during_a_refresh_waits_for_the_sources_period(node, now):
    watch = watch_with_ticks(node, now)
    begin_table(node, "ticks", loaded=True)
    now[0] += 0.2  # Two more records come.
    watch.ran("ticks", now[0], found_something=True)
    watch.observing.poll(now[0])
    assert watch.plans(now[0]) == []
    assert watch.observing.next_poll(now[0]) == pytest.approx(0.8)
    now[0] += 0.8
    watch.observing.poll(now[0])
    assert [plan.table for plan in watch.plans(now[0])] == ["ticks"]


def test_what_a_refresh_left_waits_for_nothing(node, now):
    watch = watch_with_ticks(node, now)
    begin_table(node, "ticks")
    now[0] += 0.2
    watch.ran("ticks", now[0], found_something=True)
    watch.observing.poll(now[0])
    assert [plan.table for plan in watch.plans(now[0])] == ["ticks"]


def test_a_table_of_the_warehouse_is_seen_to_move_at_once(node, now):
    watch = node.warehouse.internals.watch
    node.take("large")
    watch.observing.poll(now[0])
    assert watch.plans(now[0]) == []
    begin_table(node, "orders")  # By another node.
    watch.observing.poll(now[0] + 0.1)
    assert [plan.table for plan in watch.plans(now[0])] == ["large"]


def watch_with_ticks(node, now):
    """The watch of a node that owns `ticks` and has just seen ten seconds of it."""
    node.survey.units()
    node.take("ticks")
    now[0] += 10
    node.warehouse.internals.watch.observing.poll(now[0])
    return node.warehouse.internals.watch


def begin_table(node, table, *, loaded=False):
    """Commit as the first refresh of a table does: without rows, or as if it had loaded all."""
    from pyspark.sql.types import LongType, StructField, StructType

    (feed,) = node.warehouse.internals.watch.feeds(table)
    noted = FlowNote({}, feed.memory(), 0, 0)
    note = Note("append", node.warehouse.internals.lake.now(), flows={feed.flow.name: noted})
    ends = {each: given.end for each, given in feed.behind(None).items()} if loaded else {}
    schema = StructType([StructField("offset", LongType())])
    create(node.warehouse.internals.lake.place(table), schema, Change(note, transactions=ends))
