"""The workload of Figures 9 and 10: periods of 100 and of 10,000, weighted by their inverse."""

from springhouse.simulate.slowdowns import Slowdowns
from springhouse.simulate.workload import Workload, equal_tables
from springhouse.units import Seconds

WORKLOAD = Workload(
    equal_tables(15, prefix="short", priority=100.0)
    + equal_tables(15, prefix="long", period_seconds=Seconds(10_000.0), priority=1.0)
)
SLOWDOWNS = Slowdowns()
