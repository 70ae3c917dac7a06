"""Where are the files, which of them are on the disk, and which processes write right now?

This is the lowest room of the lake. It has folders and object stores, the clock that dates commits,
the leases that announce running work, and the checks that a file exists before a reader opens it or
a commit names it.
"""
