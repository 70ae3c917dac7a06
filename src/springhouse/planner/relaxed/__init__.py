"""Which inputs of a view move now, if the view may be inconsistent within bounds?

Start with `relaxed_views`: it states the views as a workflow, asks `planner.search` for the
cheapest plan, and turns the plan into refreshes. `stored_blocks` says which blocks lie in the logs
of the tables.
"""
