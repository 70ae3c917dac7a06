"""When is a table refreshed: which waiting refresh starts next, and on which track?

Start with `scheduler`: a `Scheduler` hears of events (data arrived, a refresh ended) and says which
refreshes start now. It has no clock and no threads, so that a warehouse and a simulator run the
same decisions. The algorithms are those of paper 001, and some of our own.

    scheduler      the door: events in, starts out
    policy         the choices of a user: basic algorithm, tracks, inheritance, chopping
    job, waiting   the answers, as data
    table          what the scheduler knows of one table: data that waits, pace, cost
    inheritance    periods pass downstream, priorities and promises pass upstream
    promises       when a promise is a deadline, and which promises can't be kept
    ranking        which waiting refresh is first, and how much of its data it loads
    tracks         how tracks are divided among tables
    foresight      start something else, or nothing, because a better refresh comes soon?
    staleness      how old a table is, and how long its data has waited
    retry          when a failed refresh is tried again
"""
