"""What do the SQL texts of a project say?

from_sql           an SQL file: its statements, and what they declare
sql_statements     one statement
sql_clauses        the clauses between a table's name and its query
sql_cdc            the clauses of AUTO CDC
sql_references     the spans of a query that name its inputs
schema_text        the columns of a schema such as `id BIGINT, name STRING`
streaming_state    whether a streaming query would have to remember earlier rows
"""
