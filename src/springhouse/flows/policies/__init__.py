"""Which task does a thread run next, and for how long?

Start with `task_policy`, the interface. `round_robin`, `minimum_cost`, `minimum_memory` and `mixed`
are the policies of 000, `locality` and `first_come` those of 002. The default is `locality`.
"""
