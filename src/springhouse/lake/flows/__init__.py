"""How does a flow run inside Spark: stages as jobs, subflows in tasks, one commit per table?"""
