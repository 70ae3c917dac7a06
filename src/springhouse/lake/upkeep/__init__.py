"""How does a table stay quick to read, and is it what its log says?"""
