"""Which steps do the refreshes of tables and of views share?

Both read inputs as of chosen versions (`inputs`), write the good rows to files for one commit
(`landing`), and put the bad rows into the quarantine (`quarantine`).
"""
