"""Workloads of chains of tables, as in sections 4.5 and 4.7 of paper 001."""

from collections.abc import Sequence

from springhouse.refresh.table.table_profile import TableProfile
from springhouse.simulate.workload import PAPER_COST, PAPER_PERIOD


def chains(count: int, priorities: Sequence[Sequence[float]]) -> tuple[TableProfile, ...]:
    """`count` chains of tables, each read by the next: chain i has `priorities[i mod …]`."""
    tables: list[TableProfile] = []
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
            tables.append(above)
    return tuple(tables)
