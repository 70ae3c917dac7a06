"""Which facts does the scheduler know about one table?

Start with `scheduled_table`, which holds everything that a decision needs. `table_profile` is the
declaration, `pending` the waiting data, `pace` how often data comes, and `load_cost` how long a
refresh takes.
"""
