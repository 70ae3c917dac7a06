"""How is SQL built, and how is it written?

`expressions` are conditions and values, `sql_tree` has the pieces of a query, and `sql_text` writes
the text for people and for Spark.
"""
