"""The world of Figures 9 and 10: periods of 100 and of 10,000, weighted by their inverse.

Slow periods last 10,000 s here. In the other figures they last 1,000 s. That is about as long as
one refresh of a long table, and would look like a little more chance in the length of refreshes.
"""

from springhouse.simulate.slowdowns import Slowdowns
from springhouse.simulate.workload import Workload, equal_tables
from springhouse.units import Seconds

WORKLOAD = Workload(
    equal_tables(15, prefix="short", priority=100.0)
    + equal_tables(15, prefix="long", period_seconds=Seconds(10_000.0), priority=1.0)
)
SLOWDOWNS = Slowdowns(cycle_seconds=20_000.0)
