"""In what SQL? The change of a view, from the changes of its inputs.

A pure compiler: the text of a query goes in, texts of queries come out. `parse` reads the user's
SQL into the small algebra of `algebra`; one file per operator says what the change of that operator
is; `compile` walks the tree and writes the statements; `explain` tells a person about them. Rows of
a change carry a weight, +1 or -1; bags, not sets.
"""
