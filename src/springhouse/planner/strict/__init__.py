"""At which moment does a view read its inputs, if it promises consistency?

Start with `versions`: its `Chooser` picks the versions of the inputs for the next refresh. `moment`
finds the newest moment at which all inputs have a snapshot.
"""
