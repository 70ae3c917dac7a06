"""How does a flow run inside Spark?

Start with `run_flow`: each stage of a flow is a Spark job, and each target table gets its files in
one atomic commit. `task` has the code that runs in a Spark task. `portions` lets tasks read Delta
tables by themselves. `batches` numbers the runs, so that each run reaches a table once. `arrivals`
is the flow that every streaming table uses for its new rows.
"""
