"""How does a warehouse run its refreshes?

refresh_events    the events that it reports while it works
once              brings everything up to date once
live              keeps everything fresh, until it is stopped
runner            the common part of both: tracks, failures, events, the log
track_threads     the threads that run refreshes
execution         one refresh, from its plan to its commits
view_execution    the refresh of one view
courier           delivers the changes of tables to sinks, beside the refreshes
"""
