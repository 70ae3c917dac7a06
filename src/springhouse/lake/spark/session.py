"""Which Spark computes?

By default, classic Spark in this process (`local[*]`). With `springhouse.spark.master`, a Spark
cluster; with `springhouse.spark.remote`, any server that speaks Spark Connect. Spark starts when it
is first needed, because the Delta logs alone can answer most questions to a warehouse.

If the process already has a session, classic or Spark Connect, the warehouse works in a copy of it.
The copy has the session's settings, functions and temporary views, and the settings of the project
on top. The warehouse never stops or changes the user's session, which stays the active one.

The rest of the lake uses only calls that classic Spark and Spark Connect share. The one feature
that only classic Spark has, a FAIR pool per track, is here, and optional.
"""

import logging
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from springhouse.errors import LakeError
from springhouse.lake.spark.java import find_java, java_options, make_paths_absolute
from springhouse.lake.spark.session_copies import ClassicSession, copied
from springhouse.lake.spark.session_settings import (
    CLASSIC_SPARK,
    EVERY_SESSION,
    EXCLUDED_RULES,
    INTERPRETED,
    SMALL_QUERIES,
    LocalInput,
    apply_settings,
    own_settings,
    s3_settings,
    secret_settings,
)
from springhouse.lake.storage import s3
from springhouse.logged_errors import passing
from springhouse.project.settings import SPARK_MASTER, SPARK_REMOTE

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = logging.getLogger("springhouse.spark")


# PySpark logs every failed query with the JVM's whole stack; a refresh reports it in one line.
logging.getLogger("SQLQueryContextLogger").disabled = True
logging.getLogger("DataFrameQueryContextLogger").disabled = True


_REMOTE_CLIENT = "SPARK_CONNECT_MODE_ENABLED"
"""This variable tells PySpark which of its two clients the user's own code gets."""


_users: "dict[SparkContext | None, list[Spark]]" = {}
"""The users of each Spark that we started, and (None) of the client of Spark Connect.

The last user stops it. A Spark that the user started is not in this table. A process uses the
client of Spark Connect for all sessions or for none.
"""
_users_lock = threading.Lock()


class Spark:
    """The session of one warehouse, created on first use.

    A Spark that a warehouse started stops with the last warehouse that uses it.
    """

    def __init__(
        self,
        configuration: Mapping[str, str],
        name: str,
        log: Path | None = None,
        on_start: "Callable[[], None] | None" = None,
        folder: Path | None = None,
    ) -> None:
        self._configuration = configuration
        self._name = name
        self._log = log or Path(tempfile.gettempdir()) / f"springhouse-spark-{os.getpid()}.log"
        self._on_start = on_start
        self._folder = folder
        self._session: SparkSession | None = None
        self._small: dict[tuple[Any, ...], SparkSession] = {}
        self._lock = threading.Lock()

    @property
    def started(self) -> bool:
        return self._session is not None

    @property
    def remote(self) -> str | None:
        """The address of the Spark Connect server, if a server computes."""
        return SPARK_REMOTE.find(self._configuration) or self._configuration.get("spark.remote")

    @property
    def shares_our_code(self) -> bool:
        """Whether Spark's Python workers run on this machine, and so can import our code."""
        session = self.session()
        return not is_remote_session(session) and str(session.sparkContext.master).startswith(
            "local"
        )

    def session(self) -> SparkSession:
        """The session; the first call takes the seconds that Spark needs to start."""
        with self._lock:
            if self._session is None:
                if self._on_start is not None:
                    self._on_start()
                self._session = self._take_over() or (
                    self._connect() if self.remote else self._start()
                )
            return self._session

    def quick(self, here: LocalInput | None = None) -> SparkSession:
        """A session for queries over few rows: settings for large queries would slow them down.

        It differs from the other session only in settings, and none of them changes a result. With
        Spark Connect both are the same session.
        """
        session = self.session()
        if not isinstance(session, ClassicSession):
            return session
        own = here.settings if here is not None else INTERPRETED
        if own_settings(self._configuration).get("spark.sql.codegen.wholeStage") == "false":
            own = own | INTERPRETED  # The user turned compiled code off.
        # A file of the project may change the settings of its session at any time.
        settings = session._jconf.getAllConfs().hashCode()  # noqa: SLF001  a thousand times quicker
        kind = (settings, *sorted(own.items()))
        with self._lock:
            if kind not in self._small:
                small = self._small[kind] = session.copy()
                # The user's settings for large queries (hundreds of partitions) do not fit here.
                for key, value in (SMALL_QUERIES | own).items():
                    small.conf.set(key, value)
                excluded = {
                    session.conf.get(EXCLUDED_RULES, "") or "",
                    SMALL_QUERIES[EXCLUDED_RULES],
                } - {""}
                small.conf.set(EXCLUDED_RULES, ",".join(sorted(excluded)))
            return self._small[kind]

    @contextmanager
    def track(self, name: str) -> Iterator[None]:
        """Run this thread's Spark jobs in a FAIR pool of their own, if Spark has pools."""
        session = self.session()
        if is_remote_session(session):
            yield
            return
        context = session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", name)
        yield

    def stop(self) -> None:
        """Release the session; on a Spark Connect server, only our session ends."""
        with self._lock:
            session, self._session = self._session, None
            self._small = {}
        if session is None:
            return
        if is_remote_session(session):
            _release(session)
        with _users_lock:
            for started, users in list(_users.items()):
                if self not in users:
                    continue
                users.remove(self)
                if users:
                    continue
                del _users[started]
                if started is None:
                    # Otherwise every later session would get the wrong client.
                    os.environ.pop(_REMOTE_CLIENT, None)
                elif started is SparkContext._active_spark_context:  # noqa: SLF001  the only way
                    session.stop()

    def _take_over(self) -> SparkSession | None:
        """A copy of the session that this process already has, as in a notebook."""
        if self.remote:
            return None
        session = self._copied_connect_session() or self._copied_classic_session()
        if session is None:
            return None
        for_s3 = {} if is_remote_session(session) else s3_settings()
        apply_settings(session, EVERY_SESSION | for_s3 | own_settings(self._configuration))
        return session

    def _copied_classic_session(self) -> SparkSession | None:
        context = SparkContext._active_spark_context  # noqa: SLF001  the only way
        if context is None:
            return None
        active: Any = SparkSession.getActiveSession()
        if isinstance(active, LazySession):
            # A file of the project is loading, and waits for the session that we create here.
            active = SparkSession(context)
        elif active is None or isinstance(active, ClassicSession):
            active = SparkSession.builder.getOrCreate()
        with _users_lock:
            # If another warehouse started this Spark, both warehouses need it until they close.
            if context in _users:
                _users[context].append(self)
        return copied(active)

    def _copied_connect_session(self) -> SparkSession | None:
        if SPARK_MASTER.key in self._configuration:
            return None
        module = sys.modules.get("pyspark.sql.connect.session")
        owner: Any = module.SparkSession if module is not None else None
        lent = owner and (owner.getActiveSession() or owner._get_default_session())  # noqa: SLF001  the only way
        if not lent:
            return None
        try:
            copy = lent.cloneSession()
            copy.release_session_on_close = True  # PySpark 4.2 does not copy this setting.
            copy.range(1).count()
        except Exception:  # noqa: BLE001  not every server can clone
            copy = owner(connection=lent.client._builder)  # noqa: SLF001  the only way
            apply_settings(copy, lent.conf.getAll)
        return cast("SparkSession", copy)

    def _start(self) -> SparkSession:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        find_java()
        make_paths_absolute("PYTHONPATH")
        settings = (
            EVERY_SESSION | CLASSIC_SPARK | s3.spark_settings() | own_settings(self._configuration)
        )
        options = settings.get("spark.driver.extraJavaOptions", "")
        settings["spark.driver.extraJavaOptions"] = java_options(options)
        master = SPARK_MASTER.find(self._configuration) or settings.pop("spark.master", "local[*]")
        conf = SparkConf().setMaster(master).setAppName(self._name).setAll(list(settings.items()))
        # The command that starts the JVM gets its settings as arguments, which all users of the
        # machine can see. Secrets follow over the connection to the JVM, with all other settings.
        secret = secret_settings(self._configuration)
        at_start = {key: value for key, value in settings.items() if key not in secret}
        start = SparkConf().setMaster(master).setAppName(self._name).setAll(list(at_start.items()))
        try:
            # The JVM prints to a file: on the user's terminal its output would be noise. The JVM
            # works in the project's folder, so that a relative path in a file of the project means
            # the same wherever the user opens the warehouse. The JVM has a process session of its
            # own: a signal to our process group asks us to stop, and must not end Spark before
            # running refreshes commit.
            self._log.parent.mkdir(parents=True, exist_ok=True)
            # PySpark uses one JVM as long as the process lives: a second one would only lie idle.
            gateway = SparkContext._gateway  # noqa: SLF001  the only way
            if gateway is None:
                with self._log.open("a") as log:
                    gateway = launch_gateway(  # type: ignore[no-untyped-call]  # PySpark has no types here
                        start,
                        {
                            "stderr": log,
                            "stdout": log,
                            "cwd": self._folder,
                            "start_new_session": True,
                        },
                    )
            session = ClassicSession(SparkContext(gateway=gateway, conf=conf))
        except Exception as error:  # Py4J, OSError, …: the user has to know where the log is.
            raise LakeError(
                f"Spark does not start: {_first_line(error)}",
                where=f"{SPARK_MASTER.key} = {master}",
                hint=f"It needs a Java 17 or newer. What Java said is in {self._log}",
            ) from error
        session.sparkContext.setLogLevel("ERROR")
        with _users_lock:
            _users[session.sparkContext] = [self]
        return session

    def _connect(self) -> SparkSession:
        assert self.remote is not None
        with _users_lock:
            if _REMOTE_CLIENT not in os.environ or None in _users:
                _users.setdefault(None, []).append(self)
        os.environ[_REMOTE_CLIENT] = "1"
        try:
            session = _connected(self.remote)
            session.range(1).count()
        except ImportError as error:
            raise LakeError(
                f"the client of Spark Connect is not installed: {_first_line(error)}",
                where=f"{SPARK_REMOTE.key} = {self.remote}",
                hint="pip install 'springhouse[connect]'",
            ) from error
        except Exception as error:
            raise LakeError(
                f"the Spark Connect server does not answer: {_first_line(error)}",
                where=f"{SPARK_REMOTE.key} = {self.remote}",
                hint="Is it running, and is the address right (sc://host:15002)?",
            ) from error
        # The server chose its static settings when it started.
        apply_settings(session, EVERY_SESSION | own_settings(self._configuration))
        return session


class LazySession:
    """Stands for the session in a project's Python files; Spark starts on the first use."""

    def __init__(self, spark: "Callable[[], SparkSession]") -> None:
        self._springhouse_session = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._springhouse_session(), name)


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def is_remote_session(session: SparkSession) -> bool:
    return not isinstance(session, SparkSession)


def _connected(address: str) -> SparkSession:
    """A session of our own: `getOrCreate` would give the user's, if there is one."""
    if not address.startswith("sc://"):
        return SparkSession.builder.remote(address).getOrCreate()
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    return cast("SparkSession", RemoteSession(connection=address))


def _release(session: Any) -> None:
    """End our session at its server. `stop` might stop a server that the user started here."""
    with passing(LOG, "the server ends a session by itself, later", Exception):
        session.client.release_session()
    with passing(LOG, "the process that uses the connection ends", Exception):
        session.client.close()
