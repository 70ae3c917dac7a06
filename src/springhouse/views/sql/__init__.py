"""How is SQL built, and how is it written?

`expressions` has conditions and values, `sql_tree` has the pieces of a query, and `write_sql`
writes the text for people and for Spark.
"""
