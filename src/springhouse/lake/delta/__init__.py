"""What is in a Delta table, and how does a change become part of it, whole or not at all?

The log and what its commits say (`log`, `note`), the files of a version and their rows (`tables`,
`changes`), and one way to write: files first (`writing`, `stores`), then one commit (`commits`).
"""
