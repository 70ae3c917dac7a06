"""What do the Python files of a project declare?

from_python          executes a file, and records what Spark's decorators register
plugin_decorators    `@springhouse.source` and `@springhouse.sink`
python_functions     what a query function reads, and when it is the same function as before
"""
