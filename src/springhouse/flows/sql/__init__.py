"""Which values does SQL compute for the rows of a pack? The same as in Spark, or an early error.

sqlglot parses a text (`spark_grammar`). Its tree becomes a tree of calls (`parser`, `syntax_tree`),
the tree of calls becomes a typed term (`resolve`), and the term computes Arrow arrays. The rules
are those of Spark in ANSI mode with the time zone UTC. This package lists every function and every
combination of types that it supports. It refuses all others when the flow is built.
`tests/spark/test_flow_sql.py` compares all of them with a real Spark.

Start with `terms`, the three rules that all functions keep, then `resolve`, the list of functions.
"""
