"""By which key is each table known?

A table or view of the project has its name as its key, a Delta table that others write its path:
``delta.`path` ``.
"""

from springhouse.project.declarations.declaration import ReadMode, Reference


def input_key(reading: ReadMode, name: str) -> str:
    """The key of what a query reads.

    >>> input_key(ReadMode.TABLE, "orders"), input_key(ReadMode.DELTA, "data/rates")
    ('orders', 'delta.`data/rates`')
    """
    if reading in (ReadMode.DELTA, ReadMode.DELTA_STREAM):
        return f"delta.`{name}`"
    return name


def reference_key(reference: Reference) -> str:
    """The key of what a reference names."""
    return input_key(reference.reading, reference.name)
