"""What does a scheduling decision need to know of one table?

A `ScheduledTable` keeps it in one place and up to date: what was declared and inherited, what data
waits, what runs, and what was learned. So a decision looks nothing up.
"""

from math import inf

from springhouse.refresh.job import Start
from springhouse.refresh.promises.urgency import Leeway, Margin, Urgency
from springhouse.refresh.table.load_cost import LearnedCost, LoadCost
from springhouse.refresh.table.pace import Pace
from springhouse.refresh.table.pending import PendingBatch, PendingBatches
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.units import Instant

Entry = tuple[Urgency, float, float, int, "ScheduledTable"]
"""A place in a queue: urgency, the key of the basic algorithm, and the order of declaration.

Smaller is first. The fourth number is different for every table, so tables are never compared.
"""


class ScheduledTable:
    """One table as the scheduler sees it."""

    __slots__ = (
        "ahead_alpha",
        "ahead_beta",
        "announced_seconds",
        "claims_from",
        "cost",
        "crowded",
        "declared_cost",
        "due",
        "due_by",
        "entry",
        "error",
        "expected_arrival",
        "expected_seconds",
        "freshness",
        "freshness_delta",
        "granted",
        "interval_seconds",
        "is_base",
        "is_granted",
        "lane",
        "last_started",
        "leaving",
        "load_seconds",
        "margin",
        "name",
        "order",
        "own_priority",
        "pace",
        "part_seconds",
        "pending",
        "period_seconds",
        "priority",
        "promise",
        "ready_at",
        "released",
        "retry_at",
        "running",
        "taken",
        "timer",
        "unmade",
        "until",
        "wait",
        "wished",
    )

    @property
    def allowance(self) -> float | None:
        """How long its data may wait: a deadline."""
        return self.granted.whole

    @property
    def is_known(self) -> bool:
        """Whether its cost is more than a guess."""
        return self.cost.count > 0 or self.declared_cost is not None

    def __init__(self, profile: TableProfile, order: int, prior: LoadCost) -> None:
        self.name = profile.name
        self.order = order
        self.lane = 0
        # Declared and inherited.
        self.is_base = True
        self.own_priority = profile.priority
        self.priority = profile.priority
        # What it still costs to bring its data to the tables that it has its priority from.
        self.ahead_alpha = self.ahead_beta = 0.0
        self.period_seconds: float = profile.period_seconds or 1.0
        # The data of one usual refresh: by its own pace, not by that of its slowest ancestor.
        self.interval_seconds = self.period_seconds
        self.promise: float | None = profile.promise_seconds
        # Whether its promise can be kept; one that can't be kept is no deadline.
        self.is_granted = True
        # By the promises that can be kept, which are deadlines; and by all promises, for resting.
        self.granted = Leeway()
        self.wished = Leeway()
        self.leaving = False
        # What waits, and how it ranks.
        self.freshness: float | None = None
        # Whether it is empty: its freshness is then only a guess.
        self.unmade = True
        self.pending = PendingBatches()
        self.until = Instant(0.0)
        self.freshness_delta = 0.0
        self.expected_seconds = 0.0
        # The same if the planner announced it, which knows better.
        self.announced_seconds: float | None = None
        # What the next refresh takes, if it loads only a part of what waits.
        self.part_seconds = 0.0
        self.released = 0.0
        self.ready_at = 0.0
        self.retry_at = -inf
        self.entry: Entry | None = None
        self.timer: float | None = None
        # Its place in the crowd of promises that are not urgent yet; whether the crowd made it
        # urgent; and by when a reader needs it that can't go on without it.
        self.due: tuple[float, int, ScheduledTable] | None = None
        self.crowded = False
        self.due_by = inf
        # Until then it has had its share of the tracks, and its promise claims none.
        self.claims_from = -inf
        # What runs.
        self.running: Start | None = None
        self.taken: list[PendingBatch] = []
        self.last_started = -inf
        # What was learned.
        self.declared_cost = profile.cost
        self.cost = LearnedCost(prior)
        self.load_seconds = prior.seconds(self.period_seconds)
        self.error = Margin()
        self.wait = Margin()
        # The error margin that was passed on upstream.
        self.margin = 0.0
        self.pace = Pace()
        self.expected_arrival: float | None = None
