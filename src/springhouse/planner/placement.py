"""Does this process do some work itself, or does Spark?

A Spark query costs a fixed time, whatever it reads, and every relation that this process hands over
to it costs some more. So this process reads, filters, compares and sorts small data by itself, with
Arrow. It holds this data in its memory, so Spark always does the work on large data: its tasks read
and write files, and only report them.

All limits are here, each with its unit and its reason. They were chosen on a machine with two
cores. Code that has the choice calls one of the functions below.
"""

INPUT_BYTES = 64 * 2**20
"""Bytes of stored files. In memory they take a few times as much, for which every driver has room.
Writing the result here takes less time than tasks of Spark need to start, write and report it."""

CHANGE_ROWS = 500_000
"""Rows of a change between two versions. Every view that reads the table may need the change, and
a larger one would fill the memory once per table."""

REMEMBERED_BYTES = 8 * 2**20
"""Bytes of a change. A change is kept in memory for the other views that read it. Many tables
change in the same minute, so each may keep only a little."""

REMEMBERED_ROWS = 200_000
"""Rows of a change that has about `REMEMBERED_BYTES`: the planner knows rows and no bytes."""

RESULT_ROWS = 200_000
"""Rows that Spark computed and wrote. Reading them back is faster than another query over them."""

COMPARED_ROWS = 2_000_000
"""Stored rows that are compared with a new result in this process. Memory holds two copies of them,
and only for a moment, so this may be more than `RESULT_ROWS`."""

SORTED_ROWS = 4_000_000
"""Rows that are sorted by key here, so that each file holds a range of keys. Above this limit the
files stay as Spark wrote them, and a change rewrites more of them."""

SCANNED_ROWS = 8_000_000
"""Rows of a stored table that are searched for some values. The decoded key
columns are kept for the next refresh (`ColumnCache`), so the search is fast."""

FILTERED_ROWS = 1_000_000
"""Rows of a stored table that are filtered by a condition alone. No column of it is kept, so the
limit is lower than `SCANNED_ROWS`."""

WHOLE_ROWS = 20_000
"""Rows of a stored table that are read without any filter: one small file."""

GIVEN_ROWS = 300_000
"""Rows that one relation of a statement hands over to Spark: they are part of the plan, and Spark
is slow to plan with more."""

SENT_TOGETHER_ROWS = 20_000
"""Rows of a relation that is sent to Spark together with the others, as a list in one row. To
unfold one list, Spark passes over all lists, so a larger relation is sent separately."""

COUNTED_ROWS = 100_000
"""Groups of a hidden table whose counts are added up here, to learn how many rows they hold."""

STORE_ROWS = 200_000
"""Rows of a hidden table that Spark reads whole, in the same query that computes the increments.
For a larger table, Spark first computes the increments, and then reads only files with their keys.
"""

QUICK_ROWS = 600_000
"""Rows that a statement reads from files with the session for small queries, which uses two
partitions and no adaptive planning."""

COMPILED_ROWS = 5_000
"""Rows from which Spark's generated code pays off: for fewer, compiling takes longer than
interpreting."""

ONE_JOB_RELATIONS, ONE_JOB_ROWS = 3, 10_000
"""Relations, and rows of all of them, that are joined by sorting in one job. With more of them,
sorting costs more than the extra jobs of broadcasts."""


def fits_here(stored_bytes: int) -> bool:
    """Whether work over files of this size is done in this process."""
    return stored_bytes <= INPUT_BYTES


def change_fits_here(rows: int) -> bool:
    """Whether a change of so many rows is read by this process."""
    return rows <= CHANGE_ROWS


def remembers_change(memory_bytes: int) -> bool:
    """Whether a change that was read here is kept for its other readers."""
    return memory_bytes <= REMEMBERED_BYTES


def may_remember_change(rows: int) -> bool:
    """Whether a change of so many rows is likely to be kept for its other readers."""
    return rows <= REMEMBERED_ROWS


def reads_result_back(rows: int) -> bool:
    """Whether a result that Spark wrote is read back into this process."""
    return rows <= RESULT_ROWS


def compares_here(stored_rows: int) -> bool:
    """Whether this process compares the stored rows with a result that it has."""
    return stored_rows <= COMPARED_ROWS


def sorts_here(rows: int) -> bool:
    """Whether this process sorts rows by key and writes them."""
    return rows <= SORTED_ROWS


def searches_here(stored_rows: int, values: int) -> bool:
    """Whether this process searches a table for the rows with one of some values."""
    return stored_rows <= SCANNED_ROWS and values <= GIVEN_ROWS


def filters_here(stored_rows: int) -> bool:
    """Whether this process filters a table by a condition."""
    return stored_rows <= FILTERED_ROWS


def takes_whole(stored_rows: int) -> bool:
    """Whether this process reads a table of which it needs all rows."""
    return stored_rows <= WHOLE_ROWS


def hands_over(rows: int) -> bool:
    """Whether rows of this process may be given to Spark as a relation."""
    return rows <= GIVEN_ROWS


def is_sent_together(rows: int) -> bool:
    """Whether a relation is sent to Spark together with the others of its statement."""
    return rows <= SENT_TOGETHER_ROWS


def counts_here(rows: int) -> bool:
    """Whether this process adds up the counts of a hidden table."""
    return rows <= COUNTED_ROWS


def reads_store_whole(rows: int) -> bool:
    """Whether Spark reads a hidden table in the query that computes the increments."""
    return rows <= STORE_ROWS


def is_quick(rows: int) -> bool:
    """Whether the session for small queries runs a statement that reads so many rows."""
    return rows <= QUICK_ROWS


def is_compiled(rows: int) -> bool:
    """Whether Spark generates code for a query over rows of this process."""
    return rows >= COMPILED_ROWS


def is_one_job(relations: int, rows: int) -> bool:
    """Whether Spark joins relations of this process by sorting, in one job."""
    return relations <= ONE_JOB_RELATIONS and rows <= ONE_JOB_ROWS
