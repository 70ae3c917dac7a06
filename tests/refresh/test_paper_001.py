"""The worked examples of 001, with its own numbers; each test names its section."""

from dataclasses import replace

import pytest
from edges import leading_edge, safe_freshness

from springhouse.refresh.foresight.lookahead import Prospect, look_ahead
from springhouse.refresh.policy import PAPER, Global
from springhouse.refresh.ranking.basic import Basic
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.staleness import StalenessOverTime, trailing_edge
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.refresh.tracks.edf_partitioned import edf_partitioned
from springhouse.refresh.tracks.proportional import clusters, proportional
from springhouse.refresh.tracks.track_layout import TrackLoad
from springhouse.units import Instant, Seconds

ZERO = Instant(0.0)


def clock(hours: int, minutes: int) -> Instant:
    return Instant(hours * 3600.0 + minutes * 60.0)


class TestSection2:
    def test_2_2_edges_of_two_tables(self) -> None:
        loaded = [clock(10, 0), clock(10, 5)]
        assert leading_edge(loaded) == clock(10, 5)
        assert trailing_edge(loaded) == clock(10, 0)

    def test_2_2_the_safe_trailing_edge_with_punctuations(self) -> None:
        safe = [
            safe_freshness(clock(10, 0), lateness=Seconds(3600.0), punctuation=clock(9, 58)),
            safe_freshness(clock(10, 5), lateness=Seconds(3600.0), punctuation=clock(10, 1)),
        ]
        assert trailing_edge(safe) == clock(9, 58)

    def test_2_3_the_curve_of_figure_2(self) -> None:
        table = StalenessOverTime(freshness=ZERO, since=ZERO)
        assert table.at(Instant(4.0)) == 4.0
        assert table.at(Instant(5.0)) == 5.0
        table.refreshed(Instant(5.0), freshness=Instant(3.0))
        assert table.at(Instant(5.0)) == 2.0
        assert table.at(Instant(11.0)) == 8.0
        table.refreshed(Instant(11.0), freshness=Instant(9.0))
        assert table.at(Instant(11.0)) == 2.0
        # A triangle from 0 to 5, and a trapezium from 2 to 8 above the six units after it.
        assert table.area(Instant(11.0)) == 5 * 5 / 2 + 6 * (2 + 8) / 2

    def test_2_4_figure_2_as_the_scheduler_sees_it(self) -> None:
        scheduler = Scheduler(tracks=1)
        scheduler.declare(TableProfile("t", period_seconds=Seconds(3.0)), freshness=ZERO)
        scheduler.arrived("t", Instant(4.0), freshness=Instant(3.0))
        assert [s.until for s in scheduler.starts([1], Instant(4.0))] == [3.0]
        scheduler.finished("t", Instant(5.0))
        scheduler.arrived("t", Instant(7.0), freshness=Instant(7.0))
        (waiting,) = scheduler.order(Instant(7.0))
        assert waiting.freshness_delta == 4.0
        # The system is too busy; the third batch comes, and both batches become one job.
        scheduler.arrived("t", Instant(9.0), freshness=Instant(9.0))
        (waiting,) = scheduler.order(Instant(9.0))
        assert (waiting.freshness_delta, waiting.since) == (6.0, 7.0)
        (start,) = scheduler.starts([1], Instant(9.0))
        assert start.until == 9.0
        scheduler.finished("t", Instant(11.0))
        assert scheduler.order(Instant(11.0)) == []

    def test_2_4_a_derived_table_has_the_longest_period_of_its_ancestors(self) -> None:
        scheduler = Scheduler(tracks=1)
        scheduler.declare(TableProfile("t1", period_seconds=Seconds(60.0)))
        scheduler.declare(TableProfile("t2", period_seconds=Seconds(300.0)))
        scheduler.declare(TableProfile("t3", ("t1",)))
        scheduler.declare(TableProfile("t4", ("t3", "t2")))
        known = {name: scheduler.known(name, ZERO) for name in ("t3", "t4")}
        assert {n: k and k.period_seconds for n, k in known.items()} == {"t3": 60.0, "t4": 300.0}


def job_1_and_2(basic: Basic) -> Scheduler:
    """Section 3.1: E1 = 3, E2 = 2, ΔF1 = 10, ΔF2 = 5, both of priority 1."""
    scheduler = Scheduler(1, replace(PAPER, basic=basic, tracks=Global(), chopping=None))
    for name, seconds, delta in (("j1", 3.0, 10.0), ("j2", 2.0, 5.0)):
        table = TableProfile(name, period_seconds=Seconds(delta), cost=LoadCost(seconds, 0.0))
        scheduler.declare(table, freshness=ZERO)
        scheduler.arrived(name, Instant(10.0), freshness=Instant(delta))
    return scheduler


def total_staleness(order: list[str]) -> float:
    """From τ to τ + 5, when the jobs of section 3.1 run in this order."""
    tables = {
        "j1": StalenessOverTime(Instant(-10.0), ZERO),
        "j2": StalenessOverTime(Instant(-5.0), ZERO),
    }
    seconds = {"j1": 3.0, "j2": 2.0}
    now = 0.0
    for name in order:
        now += seconds[name]
        tables[name].refreshed(Instant(now), freshness=ZERO)
    return sum(table.area(Instant(5.0)) for table in tables.values())


class TestSection3Point1:
    def test_max_benefit_starts_j1(self) -> None:
        (start,) = job_1_and_2(Basic.MAX_BENEFIT).starts([1], Instant(10.0))
        assert (start.table, start.why) == ("j1", "benefit per second")
        assert start.number == pytest.approx(10 / 3)

    def test_total_weighted_staleness_is_80_and_would_be_85(self) -> None:
        assert total_staleness(["j1", "j2"]) == 80.0
        assert total_staleness(["j2", "j1"]) == 85.0

    def test_lookahead_starts_j2_because_b_of_s_is_101(self) -> None:
        j1, j2 = Prospect(10.0, 3.0), Prospect(5.0, 2.0)
        j3 = Prospect(10.0 * 50.0, 3.0, release=1.0)
        assert look_ahead([j1, j2], [j3], now=0.0) == (1, 505 / 5)
        assert look_ahead([j1, j2], [], now=0.0) == (0, pytest.approx(10 / 3))

    @pytest.mark.parametrize(
        ("basic", "first"), [(Basic.LOOKAHEAD, "j2"), (Basic.MAX_BENEFIT, "j1")]
    )
    def test_the_scheduler_looks_ahead_to_j3(self, basic: Basic, first: str) -> None:
        scheduler = job_1_and_2(basic)
        j3 = TableProfile(
            "j3", period_seconds=Seconds(50.0), priority=10.0, cost=LoadCost(3.0, 0.0)
        )
        scheduler.declare(j3, freshness=Instant(-89.0))
        # The data came at -39 and was loaded at once: the next is due at 11, one after τ = 10.
        scheduler.arrived("j3", Instant(-39.0), freshness=Instant(-39.0))
        starts = {s.table: s for s in scheduler.starts([1], Instant(-39.0))}
        assert [*starts] == ["j3"]
        scheduler.finished("j3", Instant(-36.0))
        (start,) = scheduler.starts([1], Instant(10.0))
        assert start.table == first


JOBS = [
    TrackLoad("J1", 4, 1),
    TrackLoad("J2", 4, 1),
    TrackLoad("J3", 8, 2),
    TrackLoad("J4", 10, 1.25),
]


class TestSection3Point2Point4:
    def test_utilisations(self) -> None:
        assert [job.utilisation for job in JOBS] == [0.25, 0.25, 0.25, 0.125]

    def test_edf_partitioning_puts_two_on_each_track(self) -> None:
        layout = edf_partitioned(JOBS, [1, 2])
        homes = {job: layout.lanes[lane].homes for job, lane in layout.lane_of.items()}
        assert homes == {"J1": (1,), "J2": (1,), "J3": (2,), "J4": (2,)}
        assert layout.free == ()

    def test_only_j4_can_be_promoted(self) -> None:
        layout = edf_partitioned(JOBS, [1, 2])
        promotions = {job: layout.lanes[lane].promotions for job, lane in layout.lane_of.items()}
        assert promotions == {"J1": (), "J2": (), "J3": (), "J4": (1,)}

    def test_a_third_track_is_free(self) -> None:
        assert edf_partitioned(JOBS, [1, 2, 3]).free == (3,)

    def test_proportional_makes_two_clusters(self) -> None:
        found = [{load.table for load in cluster} for cluster in clusters(JOBS, k=2)]
        assert found == [{"J1", "J2"}, {"J3", "J4"}]

    def test_proportional_gives_c0_both_tracks_and_c1_the_second(self) -> None:
        layout = proportional(JOBS, [1, 2], k=2)
        homes = {job: {*layout.lanes[lane].homes} for job, lane in layout.lane_of.items()}
        assert homes == {"J1": {1, 2}, "J2": {1, 2}, "J3": {2}, "J4": {2}}
        # C0 tries its own track before the track that it shares.
        assert layout.lanes[layout.lane_of["J1"]].homes == (1, 2)


class TestSection3Point2Point3:
    def test_k_10_tells_minutes_hours_and_days_apart(self) -> None:
        loads = [
            TrackLoad(f"{name}{i}", period, period / 20)
            for name, period in (("minutes", 300.0), ("hour", 3600.0), ("day", 86400.0))
            for i in range(3)
        ]
        assert [len(cluster) for cluster in clusters(loads, k=10)] == [3, 3, 3]
        assert [len(cluster) for cluster in clusters(loads, k=20)] == [6, 3]

    def test_uniform_jobs_are_one_cluster_but_several_partitions_without_promotion(self) -> None:
        # Section 4.3: near full load thirty uniform jobs fit into five tracks, not into four.
        loads = [TrackLoad(f"t{i}", 100.0, 14.0) for i in range(30)]
        assert len(clusters(loads, k=1)) == 1
        layout = edf_partitioned(loads, [1, 2, 3, 4, 5])
        assert {lane.homes for lane in layout.lanes} == {(1,), (2,), (3,), (4,), (5,)}
        assert all(lane.promotions == () for lane in layout.lanes)
        first = [job for job, lane in layout.lane_of.items() if layout.lanes[lane].homes == (1,)]
        assert len(first) == 6

    def test_m_from_as_few_tracks_as_will_do_to_all(self) -> None:
        few = proportional(JOBS, [1, 2, 3], allotted=0, k=2)
        assert (few.free, {t for lane in few.lanes for t in lane.homes}) == ((2, 1), {3})
        assert proportional(JOBS, [1, 2, 3], allotted=2, k=2).free == (1,)
        assert proportional(JOBS, [1, 2, 3], k=2).free == ()
