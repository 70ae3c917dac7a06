"""What does each kind of activity do with the rows of a pack?

Every class here is a `FlowOperator`. The engine calls `take` with each pack and `end` when an input
has ended, and both return the packs that leave. Start with `per_pack` (filters, columns, Python
functions), which holds no rows. `grouping`, `sort` and `join` hold rows until an input has ended.
"""
