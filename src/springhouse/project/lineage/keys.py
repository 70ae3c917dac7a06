"""Which key stands for each input?

The key of a table or view of the project is its name. The key of a Delta table that others write is
its path: ``delta.`path` ``.
"""

from springhouse.project.declarations.declaration import ReadMode, Reference


def input_key(reading: ReadMode, name: str) -> str:
    """The key of an input of a query.

    >>> input_key(ReadMode.TABLE, "orders"), input_key(ReadMode.DELTA, "data/rates")
    ('orders', 'delta.`data/rates`')
    """
    if reading in (ReadMode.DELTA, ReadMode.DELTA_STREAM):
        return f"delta.`{name}`"
    return name


def reference_key(reference: Reference) -> str:
    """The key of the input that a reference names."""
    return input_key(reference.reading, reference.name)
