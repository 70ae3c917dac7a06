"""What is there to refresh, how often does its data come, and what does a refresh cost?

A workload is tables as the scheduler knows them, with what only the world knows added: every base
table has a period, every table a cost `E(n) = alpha + beta × n`. The paper's own (001, Table 2) is
30 equal tables; what-if questions are workloads that were changed. Utilisation is the share of the
time of all tracks that is asked for when every table is refreshed once in each of its periods,

    U = Σ E(P) / P / tracks,

so it may be above 1 without trouble: what waited is loaded together, and starts only once.
"""

from collections.abc import Iterable, Sequence
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
    """Tables, each after those that it reads."""

    tables: tuple[TableProfile, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for table in self.tables:
            _prove(table, seen)
            seen.add(table.name)
        if not self.tables:
            raise SpringhouseError("there is nothing to simulate: the workload has no tables")

    @cached_property
    def periods(self) -> dict[str, float]:
        """The period of each table; a derived one has the longest of what it reads."""
        found: dict[str, float] = {}
        for table in self.tables:
            own = table.period_seconds
            read = [found[each] for each in table.upstream]
            found[table.name] = max(read) if read else exact(own or inf)
        return found

    @cached_property
    def busy(self) -> float:
        """How many tracks the refreshes would keep busy all the time."""
        return sum(
            cost_of(table).seconds(self.periods[table.name]) / self.periods[table.name]
            for table in self.tables
        )

    def costs_times(self, times: float) -> "Workload":
        """The same, with every refresh so many times as long."""
        return Workload(tuple(_dearer(table, times, times) for table in self.tables))

    def arrivals_times(self, times: float) -> "Workload":
        """The same, with batches of the same size coming so many times as often."""
        tables = (_dearer(table, 1.0, times) for table in self.tables)
        return Workload(
            tuple(
                table
                if table.period_seconds is None
                else replace(table, period_seconds=Seconds(table.period_seconds / times))
                for table in tables
            )
        )

    def at_utilisation(self, utilisation: float, tracks: int) -> "Workload":
        """The same, with costs that keep the tracks busy for this share of the time."""
        return self.costs_times(utilisation * tracks / self.busy)


def equal_tables(
    count: int, *, prefix: str = "table", **declared: object
) -> tuple[TableProfile, ...]:
    """Base tables like those of the paper's Table 2, but for what is `declared` otherwise.

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


def chains(count: int, priorities: Sequence[Sequence[float]]) -> tuple[TableProfile, ...]:
    """`count` chains of tables, each read by the next: chain i has `priorities[i mod …]`."""
    found: list[TableProfile] = []
    for number in range(1, count + 1):
        above: TableProfile | None = None
        for level, priority in enumerate(priorities[(number - 1) % len(priorities)], 1):
            above = TableProfile(
                f"chain_{number}_level_{level}",
                () if above is None else (above.name,),
                PAPER_PERIOD if above is None else None,
                priority,
                cost=PAPER_COST,
            )
            found.append(above)
    return tuple(found)


def exact(seconds: float) -> float:
    """The nearest time that is a whole number of 1/1024 seconds, and at least one of them.

    Sums of such times are exact, so that three periods of data are three periods, and a refresh
    that may load as much does not leave a millionth of a millionth of a second behind.
    """
    return max(round(seconds * 1024.0), 1.0) / 1024.0


def cost_of(table: TableProfile) -> LoadCost:
    """What a refresh of a table costs; every table of a workload has one."""
    assert table.cost is not None, f"{table.name} has no cost"
    return table.cost


def _dearer(table: TableProfile, start: float, data: float) -> TableProfile:
    cost = cost_of(table)
    return replace(table, cost=LoadCost(cost.alpha * start, cost.beta * data))


def _prove(table: TableProfile, seen: Iterable[str]) -> None:
    where = f'table "{table.name}"'
    unknown = [name for name in table.upstream if name not in seen]
    if table.name in seen:
        raise SpringhouseError("there are two tables of this name", where=where)
    if unknown:
        raise SpringhouseError(f'reads "{unknown[0]}", which does not come before it', where=where)
    if not table.upstream and not _positive(table.period_seconds):
        raise SpringhouseError("a base table needs a period above 0", where=where)
    if table.cost is None or not _positive(table.cost.seconds(1.0)) or table.cost.alpha < 0:
        raise SpringhouseError("a refresh has to cost something", where=where)
    if not 0 <= table.priority < inf:
        raise SpringhouseError("a priority is a number of at least 0", where=where)


def _positive(number: float | None) -> bool:
    return number is not None and number > 0 and isfinite(number)
