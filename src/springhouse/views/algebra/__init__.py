"""What is a query made of, and which properties has it?

`query_tree` has the operators: scan, filter, join, aggregate and so on, over bags of rows. The
other modules find properties of such a tree: which numbers add up exactly, which columns are equal,
and which groups the query can't need (magic sets).
"""
