"""Which facts about one table does a scheduling decision need?

A `ScheduledTable` keeps them in one place and up to date: the declaration, what the table inherits,
the waiting data, the running refresh, and everything learned. So a decision looks nothing up.
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
"""A place in a queue: urgency, the key of the basic algorithm, the order of declaration, the table.

The smallest starts first. The fourth value differs between tables, so tables are never compared.
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
        """How long its data may wait: its deadline."""
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
        # The cost of bringing its data on to the tables from which it has its priority.
        self.ahead_alpha = self.ahead_beta = 0.0
        self.period_seconds: float = profile.period_seconds or 1.0
        # The data of one usual refresh: by its own pace, not by that of its slowest ancestor.
        self.interval_seconds = self.period_seconds
        self.promise: float | None = profile.promise_seconds
        # Whether its promise can be kept. A promise that can't be kept is no deadline.
        self.is_granted = True
        # `granted`: by the promises that can be kept, which are deadlines. `wished`: by all
        # promises, which let the table rest.
        self.granted = Leeway()
        self.wished = Leeway()
        self.leaving = False
        # The waiting data, and its rank.
        self.freshness: float | None = None
        # Whether the table is empty. Then its freshness is only a guess.
        self.unmade = True
        self.pending = PendingBatches()
        self.until = Instant(0.0)
        self.freshness_delta = 0.0
        self.expected_seconds = 0.0
        # The planner's estimate, which replaces the learned one.
        self.announced_seconds: float | None = None
        # The seconds of the next refresh, if it loads only a part of the waiting data.
        self.part_seconds = 0.0
        self.released = 0.0
        self.ready_at = 0.0
        self.retry_at = -inf
        self.entry: Entry | None = None
        self.timer: float | None = None
        # Its place in the crowd of promises that are not urgent yet; whether the crowd made it
        # urgent; and the moment by which a reader needs it that can't go on without it.
        self.due: tuple[float, int, ScheduledTable] | None = None
        self.crowded = False
        self.due_by = inf
        # Until then the table has had its share of the tracks, and its promise claims no track.
        self.claims_from = -inf
        # The running refresh.
        self.running: Start | None = None
        self.taken: list[PendingBatch] = []
        self.last_started = -inf
        # Learned from refreshes.
        self.declared_cost = profile.cost
        self.cost = LearnedCost(prior)
        self.load_seconds = prior.seconds(self.period_seconds)
        self.error = Margin()
        self.wait = Margin()
        # The error margin that the tables upstream know.
        self.margin = 0.0
        self.pace = Pace()
        self.expected_arrival: float | None = None
