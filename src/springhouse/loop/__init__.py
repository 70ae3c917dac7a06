"""How do planner and scheduler run together, turn after turn?

Start with `turns`: a turn observes sources and logs, plans, schedules, and returns the refreshes to
start. This room introduces `planner` (what is wanted, and how) and `refresh` (what starts now, on
which track) to each other. It has no clock, no thread and no storage: a warehouse turns it with
real sources, logs and tracks, and a simulator turns the same loop with pretend ones.

    turns            the door: one turn
    facts            what decisions stand on: declaration, logs, sources, plans
    observing        what waits in the sources of base tables
    schedule         plans in, orders out: what the scheduler hears, and what it starts
    order            the answer: which plans start on which track
    wanted_plans     which plans wait, and which of them go together
    scheduler_facts  what the scheduler has to know of a table
"""
