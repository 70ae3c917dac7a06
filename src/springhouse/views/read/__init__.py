"""How does the user's SQL become a tree of operators?

`parse_query` walks the tree that sqlglot makes of the text, one module per clause: `from_clause`,
`group_by`, `order_by`, `subqueries`. A construct that the algebra can't hold raises
`NotCompilable`, with its line: then the view is recomputed instead.
"""
