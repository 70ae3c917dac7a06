"""What is the change of each operator?

One module per operator: `change` gives the rows that the operator gains and loses, `snapshot` gives
its rows before or after the change. A rule builds a `RowSelect` and requests the selects of its
children from the `Writer`. `script` is that writer, and collects the relations that the statement
reads. `aggregate` carries groups forward. `statement` has the result, as data.
"""
