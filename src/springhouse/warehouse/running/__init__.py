"""How does a warehouse run its refreshes?

refresh_events    what it reports while it works
once              everything is brought up to date once
live              everything is kept fresh, on and on
runner            what both have in common: tracks, failures, events, the log
track_threads     the threads that run refreshes
execution         one refresh, from its plan to its commits
view_execution    the refresh of one view
courier           the changes of tables are delivered to sinks, beside the refreshes
"""
