"""What is the change of each operator?

One module per operator: `change` gives the rows that come and go, `snapshot` its rows before or
after the change. A rule builds a `RowSelect` and asks the `Writer` for those of its children;
`script` is that writer, and collects what the statement reads. `aggregate` says how groups are
carried forward. `statement` has the result, as data.
"""
