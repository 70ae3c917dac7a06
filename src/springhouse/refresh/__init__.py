"""When is a table refreshed: which waiting refresh starts next, and on which track?

Start with `scheduler`: a `Scheduler` hears of events (data arrived, a refresh ended) and says which
refreshes start now. It has no clock and no threads, so that a warehouse and a simulator run the
same decisions. The algorithms are those of paper 001, and some of our own.

    scheduler      the door: events in, starts out
    policy         the choices of a user: basic algorithm, tracks, inheritance, chopping
    job, waiting   the answers, as data
    table          the facts about one table: waiting data, pace, cost
    inheritance    periods pass downstream, priorities and promises pass upstream
    promises       when a promise is a deadline, and which promises can't be kept
    ranking        the order of waiting refreshes, and how much data each loads
    tracks         how tables share the tracks
    foresight      a better refresh comes soon: start another one now, or none?
    staleness      how old a table is, and how long its data has waited
    retry          when a failed refresh is tried again
"""
