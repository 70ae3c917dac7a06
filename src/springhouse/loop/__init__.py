"""How do planner and scheduler run together, turn after turn?

Start with `turns`: a turn observes sources and logs, plans, schedules, and returns the refreshes to
start. This room introduces `planner` (what is wanted, and how) and `refresh` (what starts now, on
which track) to each other. It has no clock, no thread and no storage: a warehouse turns it with
real sources, logs and tracks, and a simulator turns the same loop with pretend ones.

    turns            the door: one turn
    facts            the facts behind decisions: declaration, logs, sources, plans
    observing        what waits in the sources of base tables
    schedule         plans in, orders out: tells the scheduler of plans, and orders its starts
    order            the result: the plans that start, and their track
    wanted_plans     the plans that wait, and those of them that start together
    scheduler_facts  the facts about a table that the scheduler needs
"""
