"""How is a view brought up to date, by the plan that it is given?

`refresh_view` carries out a plan: it prepares what the plan stands on (`prepared`, `stored_state`),
then runs the compiled statements (`incremental`) or the whole query (`recompute`). What a refresh
took is read back from the logs (`experience`, `closer_look`), for the planner to decide with.
"""
