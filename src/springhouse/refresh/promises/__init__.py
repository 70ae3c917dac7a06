"""When is a promise a deadline?

Start with `urgency`: how urgent a waiting refresh is because of its promise. `crowd` hurries
promises that come due together. `feasible` finds the promises that can't be kept, and `grants` asks
it with what the scheduler knows.
"""
