"""In what order do the rows of a flow move?

A flow is a graph of activities. Its rows move in row packs over bounded queues, from operator to
operator. Threads do the work, and an engine chooses the next step of each thread. `Engine.advance`
returns an operator and a message. The thread lets the operator compute one output with no lock
held, and passes the result to the next call of `advance`. Everything but that one computation is a
function of its arguments. So the same engine runs in a test without threads, on one thread, or on
one thread per processor.

Where to start reading:

- `declare` and `flow_rows`: the user's declaration, and how it becomes a graph.
- `flow_graph`: a `FlowGraph` of `FlowNode`s (recordsets, readers, activities, writers) and `Edge`s.
  A `FlowOperator` does the work of one node; `activities/` has one file for each kind.
- `item`, `pack_queue` and `request`: a running operator with its queues, and a running flow.
- `engine` and `policies/`: which task a thread runs next, and for how long.
- `run`: the threads and the clock, the only impure module of this room.
- `subflow`, `stratum`, `policy_choice`: what 000 derives from the graph (BIS, DSISS, EIS).
- `stages`: which activities share a Spark task; `lake/flows/` runs the tasks.
- `sql/`: the values of SQL expressions for the rows of a pack.
- `one_pass`: several queries over one source in one pass.

Papers: 000 (ETL scheduling) has the graph, subflows, strata and three policies; 002 (Bobox) has the
states, tasks, locality, nodes and sleeping threads.
"""
