"""By which key is each table known?

A table or view of the project has its name as its key, a Delta table that others write its path:
``delta.`path` ``.
"""

from springhouse.project.declaration import Reading, Reference


def input_key(reading: Reading, name: str) -> str:
    """The key of what a query reads.

    >>> input_key(Reading.TABLE, "orders"), input_key(Reading.DELTA, "data/rates")
    ('orders', 'delta.`data/rates`')
    """
    if reading in (Reading.DELTA, Reading.DELTA_STREAM):
        return f"delta.`{name}`"
    return name


def key_of(reference: Reference) -> str:
    """The key of what a reference names."""
    return input_key(reference.reading, reference.name)
