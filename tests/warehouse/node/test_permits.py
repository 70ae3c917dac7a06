"""Permits: the tables that a node may refresh, and the moment when it has released them."""

import pytest

from springhouse.cluster.messages import Progressed, Released
from springhouse.errors import NotOwned
from springhouse.warehouse.node.permits import Permits


class Cluster:
    """Receives the reports of a warehouse, and says whether the cluster has a quorum."""

    def __init__(self):
        self.told, self.quorum = [], True
        self.permits = Permits(everything=False)
        self.permits.report_to(self.told.append, lambda: self.quorum)

    def take(self, *units):
        self.permits.take(tuple((unit, 0) for unit in units))

    def let_go(self, *units, at_once=False):
        self.permits.let_go(units, at_once=at_once)


@pytest.fixture
def cluster():
    return Cluster()


def test_a_warehouse_alone_may_do_everything():
    alone = Permits()
    assert alone.owns("orders")
    assert alone.owns_partition("clicks", "3")
    alone.begin("orders").prove()


def test_a_node_may_do_what_it_has_taken(cluster):
    cluster.take("orders", "clicks/1")
    assert [cluster.permits.owns(each) for each in ("orders", "clicks", "sales")] == [1, 1, 0]
    assert cluster.permits.owns_partition("orders", "0")
    assert cluster.permits.owns_partition("clicks", "1")
    assert not cluster.permits.owns_partition("clicks", "2")


def test_what_does_not_run_is_released_at_once(cluster):
    cluster.take("orders", "sales")
    cluster.let_go("orders")
    assert cluster.told == [Released(("orders",))]
    assert not cluster.permits.owns("orders")
    assert cluster.permits.owns("sales")


def test_a_running_refresh_is_finished_before_its_unit_is_released(cluster):
    cluster.take("orders")
    permit = cluster.permits.begin("orders")
    cluster.let_go("orders")
    assert cluster.told == []
    permit.prove()
    cluster.permits.ended("orders")
    assert cluster.told == [Released(("orders",))]


def test_without_time_a_running_refresh_is_given_up(cluster):
    cluster.take("orders")
    permit = cluster.permits.begin("orders")
    cluster.let_go("orders", at_once=True)
    assert cluster.told == [Released(("orders",))]
    with pytest.raises(NotOwned, match="orders belongs to another node by now"):
        permit.prove()
    cluster.permits.ended("orders")
    assert cluster.told == [Released(("orders",))]


def test_time_may_run_out_while_a_unit_is_let_go(cluster):
    cluster.take("orders")
    permit = cluster.permits.begin("orders")
    cluster.let_go("orders")
    cluster.let_go("orders", at_once=True)
    with pytest.raises(NotOwned):
        permit.prove()
    cluster.permits.ended("orders")
    assert cluster.told == [Released(("orders",))]


def test_a_permit_that_was_taken_back_stays_so_when_the_unit_comes_back(cluster):
    cluster.take("orders")
    late = cluster.permits.begin("orders")
    cluster.let_go("orders", at_once=True)
    cluster.take("orders")
    with pytest.raises(NotOwned):
        late.prove()
    cluster.permits.ended("orders")
    cluster.permits.begin("orders").prove()


def test_without_quorum_nothing_is_committed_even_before_anybody_says_so(cluster):
    cluster.take("orders")
    permit = cluster.permits.begin("orders")
    cluster.quorum = False
    with pytest.raises(NotOwned):
        permit.prove()


def test_a_refresh_that_starts_a_moment_too_late_can_not_commit(cluster):
    with pytest.raises(NotOwned):
        cluster.permits.begin("orders").prove()


def test_a_table_is_begun_by_who_owns_its_first_partition(cluster):
    other = Cluster()
    cluster.take("clicks/0")
    other.take("clicks/1")
    for each in (cluster, other):
        each.permits.surveyed({"clicks": "0"}, begun=[])
    assert all(cluster.permits.owns_partition("clicks", p) for p in ("0", "1"))
    assert not any(other.permits.owns_partition("clicks", p) for p in ("0", "1"))
    for each in (cluster, other):
        each.permits.surveyed({"clicks": "0"}, begun=["clicks"])
    assert [cluster.permits.owns_partition("clicks", p) for p in ("0", "1")] == [True, False]
    assert [other.permits.owns_partition("clicks", p) for p in ("0", "1")] == [False, True]


def test_what_was_taken_is_told_once(cluster):
    cluster.take("clicks/0", "clicks/1", "orders")
    assert cluster.permits.newly_taken() == {"clicks", "orders"}
    assert cluster.permits.newly_taken() == set()


def test_progress_is_told_to_the_cluster(cluster):
    cluster.permits.progressed({"orders": 7})
    assert cluster.told == [Progressed("orders", 7)]
