"""In which way is a view refreshed: by its whole query, or from the changes of its inputs?

Start with `choose_way`, which turns facts into one decision. `refresh_cost` is the formula for the
cost of each way, and `past_refreshes` corrects it with the seconds of earlier refreshes.
`state_worth` says whether hidden state pays for itself. `failed_statement` remembers a statement
that Spark could not run.
"""
