"""In what SQL? The change of a view, from the changes of its inputs.

The compiler is pure: the text of a query goes in, statements come out. A statement is a tree of
sqlglot, with the relations that it reads and the columns that it needs of them. The rows of a
change carry a weight, +1 or -1. Rows are bags, not sets.

    the user's SQL  --read-->  a tree of operators  --delta-->  statements  --sql-->  Spark's text

    read/         the user's SQL becomes a tree of operators, or an error says why it can't
    algebra/      the operators, and what is known of them: exact types, equal columns, magic sets
    delta/        one file per operator says what its change is; `script` writes one statement
    sql/          the pieces of a statement, and how it is written as text
    compile.py    puts it all together: which tables a view is stored as, which steps refresh it
    variants.py, effort.py, spread.py, explanation.py    what can be said of a compiled view

Begin with `compile.py`, then read `delta/inner_join.py` as an example of a rule.
"""
