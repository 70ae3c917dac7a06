"""What can a warehouse tell about itself?

Every report is a frozen dataclass that is made from the Delta logs and the declaration. The Python
API returns it, the command line prints it, and `--json` prints its `to_dict()`. Nothing here starts
Spark.

    result               what all reports share: `to_dict`
    table_status         how fresh every table is, against its promise
    planned_refresh      the refreshes that are wanted now, in their order
    table_history        the commits of a table
    table_explanation    how a table is made, and what its rows reflect
"""
