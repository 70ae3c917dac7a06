"""How does a plan bring a view up to date?

`refresh_view` carries out a plan. It opens the inputs and the stored state (`prepared`,
`stored_state`). Then it runs the compiled statements (`incremental`) or the whole query
(`recompute`). For later decisions, the planner reads the cost of past refreshes from the logs
(`experience`) and can look at the keys that changed (`closer_look`).
"""
