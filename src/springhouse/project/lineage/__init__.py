"""Who reads whom, and did a definition change?

graph          the project as a directed graph of tables and views, its order and its cycles
channels       which tables get data from outside the warehouse
keys           the key under which each input is known
fingerprint    a hash of everything that decides the rows of a view
"""
