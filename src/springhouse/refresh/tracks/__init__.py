"""How do tables share the tracks?

Start with `lanes`: a lane is a queue of tables that may use the same tracks. `track_layout` is the
division as data. `edf_partitioned` and `proportional` make a layout (paper 001, section 3.2).
"""
