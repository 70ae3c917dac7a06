"""When is a promise a deadline?

Start with `urgency`: how urgent its promise makes a waiting refresh. `crowd` starts promises
earlier that come due together. `feasible` finds the promises that can't be kept, and `grants` calls
it with the facts of the scheduler.
"""
