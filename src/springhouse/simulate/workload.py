"""Which tables are there to refresh, how often does their data arrive, and what does it cost?

A workload has tables as the scheduler knows them, with two additions: every base table has a
period, and every table has a cost `E(n) = alpha + beta × n`. The paper's workload (001, Table 2)
has 30 equal tables; what-if questions change a workload. Utilisation is the share of the time of
all tracks that is needed to refresh every table once in each of its periods:

    U = Σ E(P) / P / tracks

It may be above 1 without trouble, because one refresh loads all data that has waited.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite

from springhouse.errors import SpringhouseError
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.units import Seconds

PAPER_COST = LoadCost(alpha=1.0, beta=0.1)
PAPER_PERIOD = Seconds(100.0)


@dataclass(frozen=True)
class Workload:
    """Tables, each after the tables that it reads."""

    tables: tuple[TableProfile, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for table in self.tables:
            _validate(table, seen)
            seen.add(table.name)
        if not self.tables:
            raise SpringhouseError("there is nothing to simulate: the workload has no tables")

    @cached_property
    def periods(self) -> dict[str, float]:
        """The period of each table; a derived table has the longest one of its sources."""
        periods: dict[str, float] = {}
        for table in self.tables:
            own = table.period_seconds
            read = [periods[name] for name in table.upstream]
            periods[table.name] = max(read) if read else exact(own or inf)
        return periods

    @cached_property
    def busy(self) -> float:
        """The number of tracks that the refreshes would keep busy all the time."""
        return sum(
            cost_of(table).seconds(self.periods[table.name]) / self.periods[table.name]
            for table in self.tables
        )

    def costs_times(self, times: float) -> "Workload":
        """This workload, with every refresh so many times as long."""
        return Workload(tuple(_scale_cost(table, times, times) for table in self.tables))

    def arrivals_times(self, times: float) -> "Workload":
        """This workload, with batches of the same size arriving so many times as often."""
        tables = (_scale_cost(table, 1.0, times) for table in self.tables)
        return Workload(
            tuple(
                table
                if table.period_seconds is None
                else replace(table, period_seconds=Seconds(table.period_seconds / times))
                for table in tables
            )
        )

    def at_utilisation(self, utilisation: float, tracks: int) -> "Workload":
        """This workload, with costs that keep the tracks busy for this share of the time."""
        return self.costs_times(utilisation * tracks / self.busy)


def equal_tables(
    count: int, *, prefix: str = "table", **declared: object
) -> tuple[TableProfile, ...]:
    """Base tables like those of the paper's Table 2, with the `declared` differences.

    >>> [table.name for table in equal_tables(2)]
    ['table_1', 'table_2']
    """
    model = replace(
        TableProfile("", period_seconds=PAPER_PERIOD, cost=PAPER_COST),
        **declared,  # type: ignore[arg-type]  # the fields of a Table, by name
    )
    digits = len(str(count))
    return tuple(
        replace(model, name=f"{prefix}_{number:0{digits}}") for number in range(1, count + 1)
    )


def exact(seconds: float) -> float:
    """The nearest whole number of 1/1024 seconds, at least one of them.

    Sums of such times are exact. So three periods of data are three periods, and a refresh that
    may load as much does not leave a rest of some picoseconds.
    """
    return max(round(seconds * 1024.0), 1.0) / 1024.0


def cost_of(table: TableProfile) -> LoadCost:
    """The cost of a refresh of a table; every table of a workload has one."""
    assert table.cost is not None, f"{table.name} has no cost"
    return table.cost


def _scale_cost(table: TableProfile, start: float, data: float) -> TableProfile:
    cost = cost_of(table)
    return replace(table, cost=LoadCost(cost.alpha * start, cost.beta * data))


def _validate(table: TableProfile, seen: Iterable[str]) -> None:
    where = f'table "{table.name}"'
    unknown = [name for name in table.upstream if name not in seen]
    if table.name in seen:
        raise SpringhouseError("two tables have this name", where=where)
    if unknown:
        raise SpringhouseError(f'it reads "{unknown[0]}", which must come before it', where=where)
    if not table.upstream and not _is_positive(table.period_seconds):
        raise SpringhouseError("a base table needs a period above 0", where=where)
    if table.cost is None or not _is_positive(table.cost.seconds(1.0)) or table.cost.alpha < 0:
        raise SpringhouseError("the cost of a refresh must be above 0", where=where)
    if not 0 <= table.priority < inf:
        raise SpringhouseError("the priority must be a number of at least 0", where=where)


def _is_positive(number: float | None) -> bool:
    return number is not None and number > 0 and isfinite(number)
