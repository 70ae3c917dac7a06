"""What does every refresh do, of a table as of a view?

It reads inputs as of chosen versions (`inputs`), writes the good rows to files for one commit
(`landing`), and puts the bad ones into the quarantine (`quarantine`).
"""
