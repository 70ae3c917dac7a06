"""What does every refresh do, of a table as of a view?

It reads inputs as of chosen versions (`inputs`), lands the good rows in one commit (`landing`), and
sets the bad ones aside (`quarantine`).
"""
