"""How does a warehouse work in a copy of a session, without touching the original?

PySpark makes every session that a thread uses the active session of that thread, in Python and in
the JVM. User code that asks for the active session would then get ours. So our sessions are
`ClassicSession`s, which restore the previous active session after each use.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ClassicSession(SparkSession):
    """A session of ours, which never stays the active session of the thread that uses it."""

    def createDataFrame(self, *args: Any, **kwargs: Any) -> "DataFrame":  # noqa: N802  as PySpark's
        """PySpark's DataFrame; the active session of the thread stays as it is."""
        with active_session_kept():
            return super().createDataFrame(*args, **kwargs)

    def copy(self) -> "ClassicSession":
        return copied(self)


def copied(session: SparkSession) -> ClassicSession:
    """A session with the settings, functions and temporary views of another session.

    Python offers only `newSession`, which copies none of them.
    """
    context, original = session.sparkContext, session._jsparkSession  # noqa: SLF001  see above
    return ClassicSession(context, original.cloneSession())


@contextmanager
def active_session_kept() -> Iterator[None]:
    """Restore the active session of this thread, in Python and in the JVM."""
    before = SparkSession._activeSession  # noqa: SLF001  the only way
    sessions = _java_sessions()
    java = sessions.getActiveSession()
    try:
        yield
    finally:
        if isinstance(before, ClassicSession):
            # Another thread is inside this function and has not restored the active session yet.
            before = SparkSession._instantiatedSession  # noqa: SLF001  the only way
        SparkSession._activeSession = before  # noqa: SLF001  the only way
        if java.isDefined():
            sessions.setActiveSession(java.get())
        else:
            sessions.clearActiveSession()


@contextmanager
def activated(session: Any) -> Iterator[None]:
    """Make this session the active one in the JVM, for Spark's parser and other code there."""
    if not isinstance(session, ClassicSession):
        yield
        return
    with active_session_kept():
        _java_sessions().setActiveSession(session._jsparkSession)  # noqa: SLF001  the only way
        yield


def _java_sessions() -> Any:
    context = SparkContext._active_spark_context  # noqa: SLF001  the only way
    assert context is not None
    jvm: Any = context._jvm  # noqa: SLF001  the only way
    return SparkSession._get_j_spark_session_class(jvm)  # noqa: SLF001  the only way
