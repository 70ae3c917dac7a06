"""At which moment does a view read its inputs, if it promises consistency?

Start with `strict_views`, the door: it says whether a view wants a refresh, and plans it. In
`versions` the `Chooser` picks the versions of the inputs, and `moment` finds the newest moment at
which all inputs have a snapshot.
"""
