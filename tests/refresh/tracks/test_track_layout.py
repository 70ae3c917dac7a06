"""On which track does a job start? Scenarios that read aloud."""

import pytest

from springhouse.refresh.tracks.edf_partitioned import edf_partitioned
from springhouse.refresh.tracks.proportional import proportional
from springhouse.refresh.tracks.track_layout import (
    Lane,
    TrackLayout,
    TrackLoad,
    one_lane,
)

FAST, SLOW = 1, 0


def layout(aggressive: bool, free: tuple[int, ...] = ()) -> TrackLayout:
    """Slow tables live on track 3, fast ones on 1 and 2 and may be promoted to 3."""
    lanes = (Lane((3,), (), 100.0), Lane((1, 2), (3,), 1.0))
    return TrackLayout(lanes, {"slow": SLOW, "fast": FAST}, free, aggressive)


SCENARIOS = [
    ("a home track first", True, (), {1, 2, 3}, [], 1),
    ("the next home track", True, (), {2, 3}, [], 2),
    ("a free track before a promotion", True, (4,), {3, 4}, [], 4),
    ("promoted, though a slow job waits", True, (), {3}, ["slow"], 3),
    ("polite: a slow job waits for its home", False, (), {3}, ["slow"], None),
    ("polite: nobody would use it", False, (), {3}, [], 3),
    ("nothing is available", True, (), set(), [], None),
]


@pytest.mark.parametrize(("name", "aggressive", "free", "available", "slow", "track"), SCENARIOS)
def test_a_fast_job(
    name: str,
    aggressive: bool,
    free: tuple[int, ...],
    available: set[int],
    slow: list[str],
    track: int | None,
) -> None:
    found = layout(aggressive, free).track_for(FAST, available, [slow, ["fast"]])
    assert found == track, name


def test_a_slow_job_is_not_promoted_to_a_fast_track() -> None:
    assert layout(aggressive=True).track_for(SLOW, {1, 2}, [["slow"], []]) is None


def test_a_newcomer_joins_those_of_similar_periods() -> None:
    assert layout(aggressive=True).nearest(3.0) == FAST
    assert layout(aggressive=True).nearest(5000.0) == SLOW


def test_global_scheduling_is_one_lane() -> None:
    assert one_lane([TrackLoad("t", 1.0, 0.1)], [1, 2]).lanes == (Lane((1, 2)),)


def test_when_tracks_run_out_the_least_used_one_takes_the_next() -> None:
    loads = [TrackLoad(f"t{i}", 10.0, 4.0) for i in range(4)]
    found = edf_partitioned(loads, [1, 2])
    homes = [found.lanes[found.lane_of[f"t{i}"]].homes for i in range(4)]
    assert homes == [(1,), (2,), (1,), (2,)]


def test_a_job_that_fits_nowhere_has_a_track_of_its_own() -> None:
    found = edf_partitioned([TrackLoad("huge", 10.0, 9.0), TrackLoad("small", 10.0, 0.1)], [1, 2])
    homes = {name: found.lanes[lane].homes for name, lane in found.lane_of.items()}
    assert homes["huge"] != homes["small"]


def test_shares_in_proportion_to_load_with_the_slowest_on_the_highest_track() -> None:
    loads = [
        TrackLoad("fast", 1.0, 0.5),
        TrackLoad("slow", 100.0, 50.0),
        TrackLoad("rare", 9000.0, 4500.0),
    ]
    found = proportional(loads, [1, 2, 3], k=10)
    homes = {name: found.lanes[lane].homes for name, lane in found.lane_of.items()}
    assert homes == {"fast": (1,), "slow": (2,), "rare": (3,)}
    promotions = {name: found.lanes[lane].promotions for name, lane in found.lane_of.items()}
    assert promotions == {"fast": (3, 2), "slow": (3,), "rare": ()}


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_track_of_a_proportional_layout_exists_and_all_are_used(count: int) -> None:
    tracks = range(1, count + 1)
    for overload in (0.01, 0.7, 5.0):
        loads = [TrackLoad(f"t{i}", 3.0**i, overload * 3.0**i / 9) for i in range(9)]
        found = proportional(loads, tracks, k=2)
        assert {track for lane in found.lanes for track in lane.homes} == {*tracks}
