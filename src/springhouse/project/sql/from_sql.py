"""What does an SQL file declare?

The file is cut into statements (`sql_text`), each is parsed on its own (`dialect`) and turned into
declarations (`statements`), so that one bad statement does not hide the others.
"""

from sqlglot import TokenType

from springhouse.project.declarations.contents import Contents
from springhouse.project.declarations.names import Names
from springhouse.project.sql.sql_text import SqlText, split_run_on, split_statements, tokenize
from springhouse.project.sql.statements import read_statement


def read_sql(text: str, file: str, names: Names) -> Contents:
    """What the text of an SQL file declares, and what is wrong with it."""
    sql = SqlText(text, file)
    tokens, unclosed = tokenize(sql)
    statements = split_statements(tokens)
    contents = Contents()
    if unclosed is not None:
        # The statement with the open quote is cut short: nobody knows what it would have said.
        contents.errors.append(unclosed)
        contents.unread = True
        ended = bool(tokens) and tokens[-1].token_type is TokenType.SEMICOLON
        statements = statements if ended else statements[:-1]
    for statement in statements:
        parts, cuts = split_run_on(sql, statement)
        for offset in cuts:
            contents.errors.append(
                sql.error("a ; is missing before this CREATE", offset, "Statements end with ;.")
            )
        for part in parts:
            contents.add(read_statement(sql, part, names))
    return contents
