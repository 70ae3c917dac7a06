"""What does an SQL file declare?

The door to Spark's SQL dialect: the file is cut into statements (`sql_tokens`), each is read on its
own (`sql_statements`, `sql_clauses`), and queries are searched for what they read
(`sql_references`).
"""

from springhouse.project.declarations.contents import Contents
from springhouse.project.declarations.names import Names
from springhouse.project.sql.sql_statements import read_statement
from springhouse.project.sql.sql_tokens import SqlText, split, split_run_on, tokenize


def read_sql(text: str, file: str, names: Names) -> Contents:
    """What the text of an SQL file declares, and what is wrong with it."""
    sql = SqlText(text, file)
    tokens, unclosed = tokenize(sql)
    statements = split(tokens)
    contents = Contents()
    if unclosed is not None:
        # The statement with the open quote is cut short; what it would have said is anyone's guess.
        contents.errors.append(unclosed)
        contents.unread = True
        statements = statements if tokens and tokens[-1].is_symbol(";") else statements[:-1]
    for statement in statements:
        parts, cuts = split_run_on(sql, statement)
        for offset in cuts:
            contents.errors.append(
                sql.error("a ; is missing before this CREATE", offset, "Statements end with ;.")
            )
        for part in parts:
            contents.add(read_statement(sql, part, names))
    return contents
