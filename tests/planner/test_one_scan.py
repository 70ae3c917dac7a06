"""Which refreshes form one job, because they read the same change? 001 section 2.1."""

from collections.abc import Mapping
from dataclasses import replace

from springhouse.planner.one_scan import TableChange, from_one_scan
from springhouse.planner.placement import CHANGE_ROWS
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.simulate.pretend_logs import PretendLogs, PretendNote
from springhouse.units import Instant, Seconds

LARGE = 10 * CHANGE_ROWS


class Warehouse:
    """A table `orders` with changes of these sizes, and views that have read some of them."""

    def __init__(self, *changes: int, kind: str = "merge") -> None:
        self.logs = PretendLogs()
        for rows in (1, *changes):
            self.commit("orders", kind, rows=rows)

    def commit(self, table: str, kind: str, rows: int = 0, read: Mapping[str, int] = {}) -> None:
        note = PretendNote(kind, "append", read=read, rows_added=rows)
        self.logs.log(table).commit(Instant(0.0), note, is_channel=not read)

    def plan(self, view: str, since: int, until: int, seconds: float = 1.0) -> RefreshPlan:
        self.commit(view, "merge", read={"orders": since})
        way, expected = "incremental", Seconds(seconds)
        return RefreshPlan(view, "test", Instant(0.0), {"orders": until}, way, seconds=expected)

    def job(self, lead: RefreshPlan, *others: RefreshPlan) -> list[str]:
        """The tables of the job, if there is more than one."""
        found = from_one_scan(self.logs, lead, others)
        if len(found) == 1:
            assert found == [lead]
            return []
        scan = found[0].scan
        assert scan is not None
        assert {each.scan for each in found} == {scan}
        assert scan.views == tuple(each.table for each in found)
        return list(scan.views)


def test_views_that_read_the_same_large_change_are_one_job() -> None:
    warehouse = Warehouse(LARGE, LARGE)
    plans = [warehouse.plan(view, 0, 2) for view in ("by_day", "by_hour", "by_customer")]
    assert warehouse.job(*plans) == ["by_day", "by_hour", "by_customer"]


def test_a_view_that_stands_elsewhere_or_goes_elsewhere_stays_out() -> None:
    warehouse = Warehouse(LARGE, LARGE, LARGE)
    a, b = warehouse.plan("a", 0, 2), warehouse.plan("b", 0, 2)
    behind, ahead = warehouse.plan("behind", 1, 2), warehouse.plan("ahead", 0, 3)
    assert warehouse.job(a, behind, ahead, b) == ["a", "b"]
    assert warehouse.job(behind, a, b) == []


def test_one_that_takes_no_change_in_stays_out() -> None:
    warehouse = Warehouse(LARGE, LARGE)
    a, b, c = (warehouse.plan(view, 0, 2) for view in "abc")
    full, unit = replace(b, way="full"), replace(b, first=(c,))
    driven = replace(b, way="asynchronous", driver="customers")
    unmade = replace(b, table="unmade")
    for other in (full, unit, driven, unmade):
        assert warehouse.job(a, other) == []
        assert warehouse.job(other, a) == []
        assert warehouse.job(a, other, c) == ["a", "c"]
    assert warehouse.job(a, replace(b, way="asynchronous", driver="orders")) == ["a", "b"]


def test_a_small_change_is_remembered_by_the_process_anyway() -> None:
    warehouse = Warehouse(40_000, 40_000)
    assert warehouse.job(*(warehouse.plan(view, 0, 2) for view in "abcdefgh")) == []


def test_a_change_that_the_process_reads_is_shared_where_it_has_to_be_netted() -> None:
    half = CHANGE_ROWS // 2
    for kind, shared in (("merge", list("abcd")), ("append", [])):
        warehouse = Warehouse(half, half, kind=kind)
        assert warehouse.job(*(warehouse.plan(view, 0, 2) for view in "abcd")) == shared


def test_spark_reads_new_rows_as_quickly_as_it_keeps_them() -> None:
    warehouse = Warehouse(LARGE, LARGE, kind="append")
    assert warehouse.job(*(warehouse.plan(view, 0, 2, 30.0) for view in "abcdefgh")) == []
    # The change of one commit has no rows that cancel each other.
    warehouse = Warehouse(LARGE)
    assert warehouse.job(*(warehouse.plan(view, 0, 1, 30.0) for view in "abcdefgh")) == []


def test_it_has_to_save_a_good_part_of_what_the_refreshes_take() -> None:
    warehouse = Warehouse(LARGE, LARGE)
    assert warehouse.job(warehouse.plan("a", 0, 2), warehouse.plan("b", 0, 2)) == ["a", "b"]
    assert warehouse.job(warehouse.plan("c", 0, 2, 1e3), warehouse.plan("d", 0, 2, 1e3)) == []


def test_it_never_saves_more_than_what_reading_can_be_of_a_refresh() -> None:
    warehouse = Warehouse(LARGE, LARGE)
    plans = from_one_scan(warehouse.logs, warehouse.plan("a", 0, 2), [warehouse.plan("b", 0, 2)])
    assert [each.scan is not None and each.scan.saved_by_each <= 0.5 for each in plans] == [1, 1]


def test_it_pays_more_the_larger_the_change_and_the_more_views_read_it() -> None:
    def saved(rows: int, views: int) -> float:
        return TableChange("orders", 0, 2, rows, netted=True).saved(views)

    assert saved(LARGE, 1) < 0
    assert saved(LARGE, 4) < saved(LARGE, 8) < saved(2 * LARGE, 8)


def test_nothing_is_shared_where_the_log_does_not_tell_the_whole_change() -> None:
    warehouse = Warehouse(LARGE)
    assert warehouse.job(warehouse.plan("a", 0, 5), warehouse.plan("b", 0, 5)) == []
