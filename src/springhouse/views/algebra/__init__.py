"""What is a query made of, and what is known of it?

`query_tree` has the operators: scan, filter, join, aggregate and so on, over bags of rows. The
other modules say what holds for such a tree: which numbers add up exactly, which columns are equal,
and which groups nobody can ask for (magic sets).
"""
