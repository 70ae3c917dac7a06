"""What do the SQL texts of a project say?

One sqlglot dialect reads all of them: Spark's, with the statements and relations of pipelines
(decision 0088).

    from_sql           an SQL file: its statements, and what they declare
    statements         the tree of a statement as declarations
    references         the spans of a query that name its inputs
    streaming_state    whether a streaming query would have to remember earlier rows
    schema_text        the columns of a schema such as `id BIGINT, name STRING`
    dialect            the dialect: text in, tree or error out
    …_parser           its grammar, from statements down to single steps
    syntax             the nodes that it adds to sqlglot's trees
    sql_text           lines, statements, quotes that are never closed
    tokenizer          words and signs
"""
