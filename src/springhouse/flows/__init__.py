"""In what order do the rows of a flow move?

A flow is a graph of activities. Its rows move in row packs over bounded queues, from operator to
operator. Threads do the work, and an engine says what each thread does next: `Engine.advance` names
an operator and a message, the thread lets the operator compute one output with no lock held, and
the next call tells the engine what came out. Everything but that one computation is a function of
its arguments. So the same engine runs under a test's hand, on one thread, or on one per processor.

Where to start reading:

- `declare` and `flow_rows`: what a user writes, and how it becomes a graph.
- `flow_graph`: a `FlowGraph` of `FlowNode`s (recordsets, readers, activities, writers) and `Edge`s.
  A `FlowOperator` is what one node does with a row pack; `activities/` has one file for each kind.
- `item`, `pack_queue` and `request`: a running operator with its queues, and a running flow.
- `engine` and `policies/`: which task is next on a thread, and for how long.
- `run`: the threads and the clock, the only impure module of this room.
- `subflow`, `stratum`, `execution`: what 000 derives from the graph (BIS, DSISS, EIS).
- `stages`: which activities share a Spark task; `lake/flows/` runs them there.
- `sql/`: what SQL gives for the rows of a pack. `one_pass`: several queries over one source.

Papers: 000 (ETL scheduling) has the graph, subflows, strata and three policies; 002 (Bobox) has the
states, tasks, locality, nodes and sleeping threads.
"""
