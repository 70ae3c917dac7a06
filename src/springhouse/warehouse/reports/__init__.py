"""What can a warehouse tell about itself?

Every report is a frozen dataclass, made from the Delta logs and the declaration. The Python API
returns it, the command line prints it, and `--json` prints its `to_dict()`. No report starts
Spark.

    result               the common part of all reports: `to_dict`
    table_status         how fresh every table is, compared with its promise
    planned_refresh      the refreshes that are wanted now, in their order
    table_history        the commits of a table
    table_explanation    how a table is made, and what its rows reflect
"""
