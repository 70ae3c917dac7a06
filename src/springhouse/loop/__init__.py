"""One turn after another: observe, plan, schedule, start, and note what ended.

This room introduces `planner` (what is wanted, and how) and `refresh` (what starts now, on which
track) to each other. It has no clock, no thread and no storage: a warehouse turns it with real
sources, logs and tracks, and a simulator turns the same loop with pretend ones.
"""
