"""In what order do the rows move?

One idea: a flow is a state machine that is fed by threads. `Engine.begin` says what a thread runs
next, the thread pulls one output from that operator with no lock held, `Engine.after` puts it into
the queues and says what follows. Everything but that one pull is a function of its arguments, so
the same engine runs under a test's hand, on one thread, or on one thread per core (`run`).

The types, from the outside in:

- `Graph` of `Node`s (recordsets, readers, activities, writers) and `Edge`s: what was declared.
- `Operator`: what one node does with a row pack. It always accepts a pack, and gives its outputs
  one by one, so that it can be stalled between any two of them.
- `Queue`: a bounded row of packs on one edge, with one producer and one consumer.
- `Item`: an operator in a running flow, with its queues, its state and what was measured.
- `Request`: a running flow. `Task`: an item that has something to do. `Turn`: a task on a thread.
- `Policy`: of the tasks that wait, which is next on this thread, and for how long?

Papers: 000 (ETL scheduling) is the graph, subflows, strata and three policies; 002 (Bobox) is the
states, tasks, locality, nodes and sleeping threads.
"""
