"""In what SQL? The change of a view, from the changes of its inputs.

The compiler is pure: the text of a query goes in, statements come out. A statement is a sqlglot
tree, with the relations that it reads and the columns that it needs of them. The rows of a change
carry a weight, +1 or -1. Relations are bags of rows, not sets.

    the user's SQL  --read-->  a tree of operators  --delta-->  statements  --sql-->  Spark's text

    read/         turns the user's SQL into a tree of operators, or raises an error with the reason
    algebra/      the operators and their properties: exact types, equal columns, magic sets
    delta/        the change of each operator, one file per operator; `script` writes one statement
    sql/          the pieces of a statement, and the statement as text
    compile.py    puts it all together: which tables a view is stored as, which steps refresh it
    variants.py, effort.py, spread.py, explanation.py    properties of a compiled view

Begin with `compile.py`, then read `delta/inner_join.py` as an example of a rule.
"""
