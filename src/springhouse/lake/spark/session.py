"""Which Spark computes?

Classic Spark in this process by default (`local[*]`), a cluster with `springhouse.spark.master`,
or any server that speaks Spark Connect with `springhouse.spark.remote`. It starts when first
needed, not before: most of what a warehouse is asked can be answered from the Delta logs alone.

A process that has a session already, classic or Spark Connect, lends it: the warehouse works in a
copy of it, with its settings, functions and temporary views, and the settings of the project on
top. The user's own session is never stopped, never changed, and stays the active one.

The rest of the lake uses only calls that classic Spark and Spark Connect share. What only classic
Spark has is here and optional: a FAIR pool per track.
"""

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from springhouse.errors import LakeError
from springhouse.lake.storage import s3
from springhouse.planner.placement import is_compiled, is_one_job
from springhouse.project.declarations.secrets import has_reference
from springhouse.project.settings import SPARK_MASTER, SPARK_REMOTE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

# PySpark logs every failed query with the JVM's whole stack; a refresh reports it in one line.
logging.getLogger("SQLQueryContextLogger").disabled = True
logging.getLogger("DataFrameQueryContextLogger").disabled = True

_JAVA_VARIABLES = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Where else than in Spark's settings options for Java may stand."""

_REMOTE_CLIENT = "SPARK_CONNECT_MODE_ENABLED"
"""PySpark decides by this variable which of its two clients the user's own code gets."""

_EVERYWHERE = {
    # Delta wants timestamps as microseconds; the old INT96 has no statistics either.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.partitionOverwriteMode": "static",
    # A process that dies in the first batch of a stream leaves a temporary file in its checkpoint.
    # Spark would refuse to go on for ever, because the folder is not empty.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}
_CLASSIC = {
    "spark.scheduler.mode": "FAIR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 2)),
    # Refreshes are small and many: a driver that plans them needs room more than executors do.
    "spark.driver.memory": "2g",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Each table that is broadcast takes a page at least, and a refresh joins dozens of tiny ones.
    "spark.buffer.pageSize": "2m",
    # Who asks for a thousand files by name does not want a Spark job that looks for them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "5000",
    # Files that a source lists are many and tiny; open them in few tasks.
    "spark.sql.files.openCostInBytes": str(256 * 1024),
    # A warehouse runs the same queries again and again: what is compiled for one refresh is kept
    # for the next, for more than the dozen views that Spark's own default has room for.
    "spark.sql.codegen.cache.maxEntries": "2000",
}

_EXCLUDED = "spark.sql.optimizer.excludedRules"
_SMALL = {
    **_EVERYWHERE,
    # Plans are made from the sizes of the files, which are known; nobody has to look again.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.leafNodeDefaultParallelism": "1",
    # Rows that were given are counted, sorted and joined by tasks, not while a plan is made.
    # Nor is it asked first whether there are any.
    _EXCLUDED: (
        "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation,"
        "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromGenerate"
    ),
    "spark.sql.autoBroadcastJoinThreshold": str(32 * 2**20),
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Rows in a plan are hashed again and again by those who compare plans. But of rows that are not
    # in it Spark does not know how few they are, and would shuffle and sort them for every join.
    "spark.sql.execution.arrow.localRelationThreshold": str(2**22),
}
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Without compiled code each row would ask a cache for what two expressions share.
    "spark.sql.subexpressionElimination.enabled": "false",
}
_COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
_IN_ONE_JOB = {
    # What lies in one partition each is sorted and merged where it is. A broadcast is a job of its
    # own, and for every job Spark reads its own classes again, half a megabyte, to prove closures.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}

_NAMES_A_SECRET = re.compile(r"secret|password|token|access\.?key", re.IGNORECASE)
"""As `spark.redaction.regex` has it: Spark does not show such settings either."""


@dataclass(frozen=True)
class Here:
    """What a query reads if this process gives it all of its rows, each relation in one place.

    Its text, and so the code for it, is the same every time; where Spark reads files, ranges of
    keys stand in it.
    """

    relations: int
    rows: int

    @property
    def settings(self) -> dict[str, str]:
        code = _COMPILED if is_compiled(self.rows) else _INTERPRETED
        return code | (_IN_ONE_JOB if is_one_job(self.relations, self.rows) else {})


class _ClassicSession(SparkSession):
    """A session of ours, which never stays the active one of the thread that uses it."""

    def createDataFrame(self, *args: Any, **kwargs: Any) -> "DataFrame":  # noqa: N802  as PySpark's
        """A DataFrame as PySpark makes it, which would also make this session the active one."""
        with _active_session_kept():
            return super().createDataFrame(*args, **kwargs)

    def copy(self) -> "_ClassicSession":
        return _copied(self)


def _copied(session: SparkSession) -> _ClassicSession:
    """A session with the settings, functions and temporary views of another.

    Python has only `newSession`, which has none of them.
    """
    context, original = session.sparkContext, session._jsparkSession  # noqa: SLF001  see above
    return _ClassicSession(context, original.cloneSession())


@contextmanager
def _active_session_kept() -> Iterator[None]:
    """Restore the active session of this thread, in Python and in the JVM."""
    before = SparkSession._activeSession  # noqa: SLF001  the only way
    sessions = _java_sessions()
    java = sessions.getActiveSession()
    try:
        yield
    finally:
        if isinstance(before, _ClassicSession):
            # Another thread was about to restore it.
            before = SparkSession._instantiatedSession  # noqa: SLF001  the only way
        SparkSession._activeSession = before  # noqa: SLF001  the only way
        if java.isDefined():
            sessions.setActiveSession(java.get())
        else:
            sessions.clearActiveSession()


@contextmanager
def activated(session: Any) -> Iterator[None]:
    """Let Spark's parser, and whatever else asks the JVM, find this session as the active one."""
    if not isinstance(session, _ClassicSession):
        yield
        return
    with _active_session_kept():
        _java_sessions().setActiveSession(session._jsparkSession)  # noqa: SLF001  the only way
        yield


def _java_sessions() -> Any:
    context = SparkContext._active_spark_context  # noqa: SLF001  the only way
    assert context is not None
    jvm: Any = context._jvm  # noqa: SLF001  the only way
    return SparkSession._get_j_spark_session_class(jvm)  # noqa: SLF001  the only way


_users: "dict[SparkContext | None, list[Spark]]" = {}
"""Who uses a Spark that we started, or (None) the client of Spark Connect, which is all or nothing.

The last one stops it. What the user started is not here.
"""
_users_lock = threading.Lock()


class Spark:
    """The session of one warehouse, made when somebody first asks for it.

    A Spark that was started for a warehouse is stopped with the last warehouse that uses it.
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
        self._is_lent = False
        self._lock = threading.Lock()

    @property
    def started(self) -> bool:
        return self._session is not None

    @property
    def remote(self) -> str | None:
        """The address of the Spark Connect server, if that is what computes."""
        return SPARK_REMOTE.find(self._configuration) or self._configuration.get("spark.remote")

    @property
    def shares_our_code(self) -> bool:
        """Whether its Python workers can import what this process can: they are on this machine."""
        session = self.session()
        return not _is_remote(session) and str(session.sparkContext.master).startswith("local")

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

    def quick(self, here: Here | None = None) -> SparkSession:
        """A session for queries over few rows: what makes large ones fast only makes these wait.

        It shares everything with the other but some settings, none of which changes a value. Over
        Spark Connect there is only one.
        """
        session = self.session()
        if not isinstance(session, _ClassicSession):
            return session
        own = here.settings if here is not None else _INTERPRETED
        if self._own_settings().get("spark.sql.codegen.wholeStage") == "false":
            own = own | _INTERPRETED  # As for a short life, in which no code pays off.
        # A file of the project may set what it likes in its session, at any time.
        settings = session._jconf.getAllConfs().hashCode()  # noqa: SLF001  a thousand times quicker
        kind = (settings, *sorted(own.items()))
        with self._lock:
            if kind not in self._small:
                small = self._small[kind] = session.copy()
                # What the user set for large queries (hundreds of partitions) is not meant here.
                for key, value in (_SMALL | own).items():
                    small.conf.set(key, value)
                excluded = {session.conf.get(_EXCLUDED, "") or "", _SMALL[_EXCLUDED]} - {""}
                small.conf.set(_EXCLUDED, ",".join(sorted(excluded)))
            return self._small[kind]

    @contextmanager
    def track(self, name: str) -> Iterator[None]:
        """Run what this thread asks of Spark in a FAIR pool of its own, where there are pools."""
        session = self.session()
        if _is_remote(session):
            yield
            return
        context = session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", name)
        yield

    def stop(self) -> None:
        """Let the session go; of a Spark Connect server only our session ends."""
        with self._lock:
            session, self._session = self._session, None
            self._small = {}
        if session is None:
            return
        if _is_remote(session):
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
                    # Left behind, it would give every later session the wrong client.
                    os.environ.pop(_REMOTE_CLIENT, None)
                elif started is SparkContext._active_spark_context:  # noqa: SLF001  the only way
                    session.stop()

    def _take_over(self) -> SparkSession | None:
        """A copy of the session that this process has already, as in a notebook."""
        if self.remote:
            return None
        session = self._copied_connect_session() or self._copied_classic_session()
        if session is None:
            return None
        s3_settings = {} if _is_remote(session) else _of_s3()
        _apply(session, _EVERYWHERE | s3_settings | self._own_settings())
        return session

    def _copied_classic_session(self) -> SparkSession | None:
        context = SparkContext._active_spark_context  # noqa: SLF001  the only way
        if context is None:
            return None
        active: Any = SparkSession.getActiveSession()
        if isinstance(active, LazySession):
            # A file of the project is being loaded, and waits for what we are about to make.
            active = SparkSession(context)
        elif active is None or isinstance(active, _ClassicSession):
            active = SparkSession.builder.getOrCreate()
        with _users_lock:
            # If another warehouse started this Spark, it is needed until both are closed.
            if context in _users:
                _users[context].append(self)
        return _copied(active)

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
            copy.release_session_on_close = True  # PySpark 4.2 forgets it in a clone.
            copy.range(1).count()
        except Exception:  # noqa: BLE001  not every server can clone
            copy = owner(connection=lent.client._builder)  # noqa: SLF001  the only way
            _apply(copy, lent.conf.getAll)
        return cast("SparkSession", copy)

    def _start(self) -> SparkSession:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        find_java()
        _make_absolute("PYTHONPATH")
        settings = _EVERYWHERE | _CLASSIC | s3.spark_settings() | self._own_settings()
        options = settings.get("spark.driver.extraJavaOptions", "")
        settings["spark.driver.extraJavaOptions"] = f"{_quiet_logging()} {_collecting(options)}"
        master = SPARK_MASTER.find(self._configuration) or settings.pop("spark.master", "local[*]")
        conf = SparkConf().setMaster(master).setAppName(self._name).setAll(list(settings.items()))
        # What starts the JVM gets its settings as arguments, which all users of the machine see.
        # Secrets follow over the connection to it, with all other settings.
        at_start = {key: value for key, value in settings.items() if key not in self._secret}
        start = SparkConf().setMaster(master).setAppName(self._name).setAll(list(at_start.items()))
        try:
            # What the JVM prints goes to a file: on the user's terminal it would be noise. It works
            # in the project's folder, so that a relative path in a file of the project means the
            # same to Spark wherever the warehouse was opened from. A session of its own, because a
            # signal to our whole process group asks us to stop, and what runs is to be committed.
            self._log.parent.mkdir(parents=True, exist_ok=True)
            # PySpark has one JVM per process, for good: a second one would only lie idle.
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
            session = _ClassicSession(SparkContext(gateway=gateway, conf=conf))
        except Exception as error:  # Py4J, OSError, …: whatever it is, the user has to know where.
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
        except Exception as error:
            raise LakeError(
                f"the Spark Connect server does not answer: {_first_line(error)}",
                where=f"{SPARK_REMOTE.key} = {self.remote}",
                hint="Is it running, and is the address right (sc://host:15002)?",
            ) from error
        # A static setting belongs to the server: it was chosen when that started.
        _apply(session, _EVERYWHERE | self._own_settings())
        return session

    @property
    def _secret(self) -> frozenset[str]:
        """The settings that refer to secrets, or whose names say that they are."""
        written = getattr(self._configuration, "written", self._configuration)
        return frozenset(
            key
            for key, value in written.items()
            if has_reference(value) or _NAMES_A_SECRET.search(key)
        )

    def _own_settings(self) -> dict[str, str]:
        return {
            key: value
            for key, value in self._configuration.items()
            if key.startswith("spark.") and key != "spark.remote"
        }


class LazySession:
    """Stands for the session in a project's Python files: Spark starts when it is first used."""

    def __init__(self, spark: "Callable[[], SparkSession]") -> None:
        self._springhouse_session = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._springhouse_session(), name)


def find_java() -> None:
    """Make sure that PySpark finds a Java, or say in one sentence what is missing."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return
    if shutil.which("java"):
        return
    for folder in sorted(Path("/usr/lib/jvm").glob("*"), reverse=True):
        java = folder / "bin" / "java"
        if java.exists() and _java_version(java) >= 17:
            os.environ["JAVA_HOME"] = str(folder)
            return
    raise LakeError(
        "there is no Java on this machine, and Spark needs one",
        hint="Install a Java 17 or newer (openjdk-17-jre-headless), or set JAVA_HOME.",
    )


def _make_absolute(variable: str) -> None:
    """Let the paths in a variable mean the same to a process that starts in another folder."""
    if paths := os.environ.get(variable):
        parts = (str(Path(part).absolute()) for part in paths.split(os.pathsep))
        os.environ[variable] = os.pathsep.join(parts)


def _java_version(java: Path) -> int:
    said = subprocess.run(
        [java, "-version"], capture_output=True, text=True, timeout=20, check=False
    )
    words = said.stderr.split('"')
    return int(words[1].split(".")[0]) if len(words) > 1 and words[1][:1].isdigit() else 0


def _quiet_logging() -> str:
    file = resources.files("springhouse.lake") / "log4j2.properties"
    return f"-Dlog4j2.configurationFile=file:{file}"


def _collecting(options: str) -> str:
    """The user's options for Java, with a garbage collector if nobody named one.

    Planning a refresh makes much garbage that dies young. On two cores G1, Java's default, spends
    more on it than the parallel collector does: small refreshes took a fifth longer.
    """
    said = [options, *(os.environ.get(name, "") for name in _JAVA_VARIABLES)]
    if any(re.search(r"-XX:\+Use\w+GC\b", each) for each in said):
        return options  # Java refuses to start with two of them.
    return f"-XX:+UseParallelGC {options}"


def _of_s3() -> dict[str, str]:
    """The settings of S3 for a Spark that runs already: there they go by Hadoop's own names."""
    settings = s3.spark_settings() | s3.spark_credentials()
    return {k.removeprefix("spark.hadoop."): v for k, v in settings.items()}


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _is_remote(session: SparkSession) -> bool:
    return not isinstance(session, SparkSession)


def _connected(address: str) -> SparkSession:
    """A session of our own: `getOrCreate` would give the user's, if there is one."""
    if not address.startswith("sc://"):
        return SparkSession.builder.remote(address).getOrCreate()
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    return cast("SparkSession", RemoteSession(connection=address))


def _release(session: Any) -> None:
    """End our session at its server. To stop it may stop a server that the user started here."""
    with suppress(Exception):  # It ends by itself, later, if the server does not answer now.
        session.client.release_session()
    with suppress(Exception):
        session.client.close()


def _apply(session: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        with suppress(Exception):  # The setting is a wish, not a need.
            session.conf.set(key, value)
