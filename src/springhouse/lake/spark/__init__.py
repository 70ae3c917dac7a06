"""Which Spark computes, and how does a query get there?

The session, the declared queries as DataFrames, the rows of this process that a query reads, and
the conditions that Arrow can decide in place of Spark.
"""
