"""What does SQL give for the rows of a pack? Exactly what Spark gives, or an error in time.

sqlglot reads a text (`spark_grammar`), its tree becomes a tree of calls (`parser`, `syntax_tree`),
that becomes a typed term (`resolve`), and a term computes Arrow arrays. The rules are those of
Spark in ANSI mode with UTC as its time zone. Every function and every combination of types is
listed; all others are refused when the flow is built. `tests/spark/test_flow_sql.py` holds all of
it against a real Spark.

Start with `terms`, the three rules that all functions keep, then `resolve`, the list of functions.
"""
