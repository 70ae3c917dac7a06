"""Which Spark computes, and how does a query reach it?

This room holds the session, the declared queries as DataFrames, the local rows that a query reads,
and the conditions that Arrow can decide in place of Spark.
"""
