"""What does SQL give for the rows of a pack? Exactly what Spark gives, or an error in time.

Text becomes a tree (`tokens`, `parse`), the tree becomes typed terms (`resolve`), and a term
computes Arrow arrays. The rules are those of Spark in ANSI mode with UTC as its time zone. Every
function and every combination of types is listed; what is not listed is refused when the flow is
built. `tests/spark/test_flow_sql.py` holds all of it against a real Spark.
"""
