"""Which refreshes are wanted now, and what exactly would each one do?

Start with `planning`: its `Planning.plans` answers the question for every table of a project. The
answer is a list of `refresh_plan.RefreshPlan`, one immutable value for each refresh. Executor,
simulator, `springhouse plan` and `springhouse history` all read that value.

    planning        the door: what is wanted now
    refresh_plan    the answer: table, versions of the inputs, way, seconds, reason, alternatives
    moved_logs      which views may have another plan now
    stored_rows     can a refresh build on the rows that a view stores?
    data_waits      since when data waits for a table, and how long it may wait
    delta_logs      the planner's requests to the lake, as small protocols
    offers          the planner's requests to the compiler, as a small protocol
    provenance      which versions of the base tables a snapshot reflects (paper 004, section 2.1)
    bounds          promises of staleness and inconsistency (section 5)
    strict          views that promise consistency: at which moment are all inputs read?
    relaxed         views that may be inconsistent: which inputs move now?
    search          Algorithm 1 of paper 004, with which `relaxed` finds the cheapest plan
    way             recompute the view, or apply the changes? What does each way cost?
    placement       which work this process does itself, and which work Spark does
    one_scan        views that read the same change and are best refreshed together

A plan describes a refresh. The room `refresh` decides when it starts, and on which track.
"""
