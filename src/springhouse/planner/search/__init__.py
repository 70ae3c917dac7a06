"""Which operator invocations bring every output within its bounds, at the lowest cost?

This is the search of paper 004 (section 6). Start with `planner`: a `Planner` knows a workflow and
its bounds, and plans again and again for the present situation. It passes the question to `search`
(Algorithm 1), which makes block after block until every wish is granted.

    planner           the door: the wishes, and the cheapest plan for them
    workflow          channels, the operators between them, and the pathways of data
    blocks            the data on a channel: bases, strong deltas and weak deltas (section 2.2)
    operators         the data that an operator reads and makes (section 2.3)
    converters        how a block changes its kind (section 2.4)
    widgets           the variants of a view (section 3)
    search            Algorithm 1; `generation`, `channel_blocks`, `granting`, `laziness`, `part`
                      and `invocation` are its parts
    pruning           which blocks the search leaves out (sections 6.2 and 6.3)
    invocation_costs  how the search learns costs
    workflow_plan     the question and the answer, as data

The search knows nothing of tables or SQL.
"""
