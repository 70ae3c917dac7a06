"""What does the scheduler know of one table?

Start with `scheduled_table`, which holds everything that a decision needs. `table_profile` is what
was declared, `pending` the data that waits, `pace` how often data comes, and `load_cost` what a
refresh takes.
"""
