"""How does a table stay fast to read, and does it match its log?"""
