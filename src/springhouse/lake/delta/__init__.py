"""What is in a Delta table, and how does a change become part of it, whole or not at all?

This room reads the log and the notes in its commits (`log`, `note`), and the files of a version and
their rows (`tables`, `changes`). It has one way to write: files first (`writing`, `stores`), then
one commit (`commits`).
"""
