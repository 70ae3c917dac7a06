"""How are tracks divided among tables?

Start with `lanes`: a lane is a queue of tables that may use the same tracks. `track_layout` is the
division as data. `edf_partitioned` and `proportional` make one (paper 001, section 3.2).
"""
