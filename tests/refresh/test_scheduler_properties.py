"""Invariants of every policy, in random pretend warehouses. A tiny event loop, and checkers."""

import random
from dataclasses import dataclass, field
from heapq import heappop, heappush

from edges import Edges
from hypothesis import given, settings
from hypothesis import strategies as st

from springhouse.refresh.inheritance.priority import Inheritance, Rule
from springhouse.refresh.job import Start
from springhouse.refresh.policy import EdfPartitioned, Global, Policy, Proportional
from springhouse.refresh.ranking.basic import Basic
from springhouse.refresh.ranking.chopping import Chopping
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.units import Dice, Instant, Seconds

POLICIES = st.builds(
    Policy,
    basic=st.sampled_from(Basic),
    tracks=st.one_of(
        st.just(Global()),
        st.builds(EdfPartitioned, aggressive=st.booleans()),
        st.builds(
            Proportional,
            allotted=st.sampled_from([None, 0, 2]),
            aggressive=st.booleans(),
            k=st.sampled_from([1.0, 2.0, 10.0]),
        ),
    ),
    inheritance=st.builds(Inheritance, rule=st.sampled_from(Rule)),
    chopping=st.sampled_from([None, Chopping(1.0, fixed=True), Chopping(3.0)]),
    heed_promises=st.booleans(),
    weigh_last_track=st.booleans(),
)


@dataclass
class World:
    """Tables whose data arrives by their periods, and a scheduler that decides at every event."""

    tables: list[TableProfile]
    tracks: int
    policy: Policy
    seed: int
    failures: float = 0.0
    now: Instant = Instant(0.0)
    running: dict[str, Start] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    reached: dict[str, Instant] = field(default_factory=dict)
    waits: dict[str, Instant] = field(default_factory=dict)
    longest_wait: float = 0.0
    events: list[tuple[float, int, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.scheduler = Scheduler(self.tracks, self.policy, Dice(self.seed))
        self.edges = Edges({table.name: table.upstream for table in self.tables})
        self.cost = {table.name: table.cost or LoadCost(0.1, 0.0) for table in self.tables}
        for table in self.tables:
            self.scheduler.declare(table, freshness=Instant(0.0))
            self.reached[table.name] = Instant(0.0)
            self.edges.moved(table.name, Instant(0.0))
            if not table.upstream:
                self.push(self.random.uniform(0, table.period_seconds or 1.0), "arrive", table.name)

    def push(self, at: float, kind: str, name: str) -> None:
        heappush(self.events, (at, self.random.getrandbits(60), kind, name))

    def run(self, until: float) -> None:
        """Let data arrive until then, and go on until no work is left."""
        periods = {table.name: table.period_seconds or 1.0 for table in self.tables}
        while self.events:
            at, _, kind, name = heappop(self.events)
            self.now = Instant(at)
            if kind == "arrive":
                self.arrive(name, self.now)
                if at + periods[name] <= until:
                    self.push(at + periods[name], "arrive", name)
            elif kind == "end":
                self.end(name)
            self.start()
            change = self.scheduler.next_change(self.now)
            if change is not None:
                assert change > self.now
                self.push(change, "wake", "")

    def arrive(self, name: str, freshness: Instant, since: Instant | None = None) -> None:
        self.scheduler.arrived(name, self.now, freshness=freshness, since=since)
        self.waits.setdefault(name, self.now)

    def end(self, name: str) -> None:
        start = self.running.pop(name)
        assert start.until is not None
        if self.random.random() < self.failures:
            self.scheduler.failed(name, self.now, retry_at=Instant(self.now + 0.5))
            self.waits.setdefault(name, self.now)
            return
        self.scheduler.finished(name, self.now, seconds=self.seconds[name])
        # The data of one table is loaded in order: a refresh never ends behind an earlier one.
        assert start.until > self.reached[name]
        self.reached[name] = start.until
        if any(waiting.table == name for waiting in self.scheduler.order(self.now)):
            self.waits.setdefault(name, self.now)
        for reader, edge in self.edges.moved(name, start.until):
            self.arrive(reader, edge, start.since)

    def start(self) -> None:
        free = [t for t in range(1, self.tracks + 1) if t not in self.taken()]
        for start in self.scheduler.starts(free, self.now):
            assert start.table not in self.running, "two refreshes of one table"
            assert start.track in free, "a track that was not free"
            assert start.track not in self.taken(), "two refreshes on one track"
            assert start.until is not None
            self.longest_wait = max(self.longest_wait, self.now - self.waits.pop(start.table))
            self.running[start.table] = start
            loaded = start.until - self.reached[start.table]
            seconds = self.cost[start.table].seconds(loaded) * self.random.uniform(0.5, 1.5)
            self.seconds[start.table] = seconds
            self.push(self.now + seconds, "end", start.table)

    def taken(self) -> set[int]:
        return {start.track for start in self.running.values()}


@st.composite
def worlds(draw: st.DrawFn, load: float) -> World:
    """A warehouse whose tables together need a share `load` of the time of its tracks."""
    tracks = draw(st.integers(1, 4))
    count = draw(st.integers(1, 10))
    seed = draw(st.integers(0, 2**32))
    dice = random.Random(seed)
    tables: list[TableProfile] = []
    shares = [dice.uniform(0.2, 1.0) for _ in range(count)]
    for i in range(count):
        upstream = tuple(
            {dice.choice(tables).name for _ in range(dice.randint(1, 2))}
            if tables and dice.random() < 0.4
            else ()
        )
        own = None if upstream else Seconds(dice.choice([1.0, 2.0, 5.0, 20.0]))
        period = own or max(_period(tables, name) for name in upstream)
        # No table needs more than 0.3 of a track. Otherwise a layout by halves could not carry it.
        work = min(load * tracks * shares[i] / sum(shares), 0.3) * period
        fixed = dice.uniform(0.1, 0.9)
        tables.append(
            TableProfile(
                f"t{i}",
                upstream,
                own,
                priority=dice.choice([0.001, 1.0, 10.0, 100.0]),
                promise_seconds=Seconds(dice.choice([0.5, 4.0, 60.0]))
                if dice.random() < 0.3
                else None,
                cost=LoadCost(work * fixed, work * (1 - fixed) / period),
            )
        )
    return World(tables, tracks, draw(POLICIES), seed, failures=draw(st.sampled_from([0.0, 0.05])))


def _period(tables: list[TableProfile], name: str) -> float:
    table = next(table for table in tables if table.name == name)
    return table.period_seconds or max(_period(tables, each) for each in table.upstream)


@settings(max_examples=120)
@given(worlds(load=0.6))
def test_below_full_load_every_job_starts_and_all_data_is_loaded(world: World) -> None:
    world.run(until=200.0)
    loaded = {name: world.scheduler.known(name, world.now) for name in world.reached}
    assert world.scheduler.order(world.now) == []
    assert not world.running
    for table in world.tables:
        known = loaded[table.name]
        assert known is not None
        assert known.freshness == world.reached[table.name]
        if table.upstream:
            assert world.reached[table.name] == min(world.reached[u] for u in table.upstream)
        else:
            assert world.reached[table.name] > 200.0 - (table.period_seconds or 0.0)
    # No table starves: a wait is at most a promise, and a few of the longest periods.
    assert world.longest_wait <= 60.0 + 5 * 20.0


@settings(max_examples=40)
@given(worlds(load=2.5))
def test_after_an_overload_all_data_is_loaded_in_the_end(world: World) -> None:
    world.run(until=60.0)
    assert world.scheduler.order(world.now) == []
    for table in world.tables:
        if not table.upstream:
            assert world.reached[table.name] > 60.0 - (table.period_seconds or 0.0)


@settings(max_examples=20)
@given(worlds(load=0.6))
def test_the_same_events_bring_the_same_orders(world: World) -> None:
    again = World(world.tables, world.tracks, world.policy, world.seed, world.failures)
    world.run(until=40.0)
    again.run(until=40.0)
    assert (world.now, world.reached, world.longest_wait) == (
        again.now,
        again.reached,
        again.longest_wait,
    )
