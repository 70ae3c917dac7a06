"""Which operator invocations bring every output within its bounds, at the lowest cost?

The search of paper 004 (section 6): a workflow of operators between channels, the blocks that lie
on these channels, and what can be made of them. The rest of `planner` decides what is wanted and
from which versions; this room finds the cheapest plan for it, and knows nothing of tables or SQL.
"""
