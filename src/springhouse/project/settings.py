"""What can a user set, where, and to which values?

Spark's pipeline file has no place for Springhouse's own keys at its top level. So they stand in its
`configuration:`, or in the TBLPROPERTIES of a table or view, under `springhouse.`. `SETTINGS` is
the one list of them: the checks, the code that reads a value, the hints and the reference page
(docs/reference/settings.md) use it. All other keys belong to Spark and are passed on unread.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from springhouse.errors import DeclarationError
from springhouse.project.declarations.declaration import Place
from springhouse.project.declarations.names import did_you_mean
from springhouse.project.declarations.secrets import has_reference
from springhouse.project.value_types import (
    ValueType,
    choice,
    duration,
    number,
    pattern,
    text_of,
    whole_number,
)

PREFIX = "springhouse."

T = TypeVar("T")


class Holder(Enum):
    """The kinds of thing that have settings."""

    PROJECT = "a project"
    TABLE = "a streaming table"
    VIEW = "a materialized view"
    TEMPORARY_VIEW = "a view that is not stored"


_PROJECT = (Holder.PROJECT,)
_TABLE = (Holder.TABLE,)
_VIEW = (Holder.VIEW,)
_STORED = (Holder.TABLE, Holder.VIEW)
_EVERYWHERE = (Holder.PROJECT, Holder.TABLE, Holder.VIEW)


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One key that users can set.

    `default` is written as a user would write it. Where it is None, `unset` says what holds
    instead. `<input>`, `<name>` and `<option>` in a key stand for what the user writes there.
    """

    key: str
    meaning: str
    type: ValueType[T]
    default: str | None = None
    unset: str = ""
    unit: str = ""
    holders: tuple[Holder, ...] = _PROJECT

    @property
    def prefix(self) -> str | None:
        """The part of the key before what the user chooses; None if the key is fixed."""
        before, variable, _ = self.key.partition("<")
        return before if variable else None

    def read(self, configuration: Mapping[str, str]) -> T:
        """The value in a configuration, or the default."""
        value = self.find(configuration)
        if value is not None:
            return value
        assert self.default is not None, f"{self.key} has no default"
        return self.type.parse(self.default)

    def find(self, configuration: Mapping[str, str]) -> T | None:
        """The value in a configuration; None if it is not set there."""
        text = configuration.get(self.key)
        if text is None:
            return None
        if not self.type.accepts(text):
            raise self.error(self.key, text, Place("configuration", 0))
        return self.type.parse(text)

    def error(self, key: str, written: str, place: Place) -> DeclarationError:
        """The error that `written` is not an allowed value."""
        return DeclarationError(
            f'"{key}" is "{written}", which is not {self.type.phrase}',
            where=str(place),
            hint=self.type.hint or self.meaning,
        )


def _parse_column(text: str) -> str:
    name = text.strip().strip("`")
    if not name:
        raise ValueError(text)
    return name


def _parse_chopping(text: str) -> str:
    if text != "none":
        number(1).parse(text.removesuffix(" fixed"))
    return text


# --- The whole project ----------------------------------------------------------------------------

TRACKS = Setting(
    "springhouse.tracks",
    "How many refreshes may run at once.",
    whole_number(1),
    "2",
    unit="refreshes",
)
RETRY_SECONDS = Setting(
    "springhouse.retry.seconds",
    "The pause before a failed refresh is tried again. It doubles with each failure, up to 5 "
    "minutes.",
    number(0),
    "2",
    unit="seconds",
)
RETENTION = Setting(
    "springhouse.retention",
    "How long `springhouse vacuum` keeps the files of old versions.",
    duration(),
    "7 days",
)
COMPACT_FILES = Setting(
    "springhouse.compact.files",
    "How many small files a table may have. With more, they are written together into larger ones.",
    whole_number(1),
    "32",
    unit="files",
)
SPARK_MASTER = Setting(
    "springhouse.spark.master",
    "The Spark cluster that computes.",
    text_of("URL", "spark://host:7077"),
    unset="`spark.master`, or else `local[*]`: Spark runs on this machine",
)
SPARK_REMOTE = Setting(
    "springhouse.spark.remote",
    "The Spark Connect server that computes.",
    text_of("URL", "sc://host:15002"),
    unset="`spark.remote`, or else no server: see `springhouse.spark.master`",
)

# --- The cluster ----------------------------------------------------------------------------------

NODE_NAME = Setting(
    "springhouse.node.name",
    "The name of this node. `springhouse node --name` sets it.",
    text_of("name"),
    unset="`local`, and no cluster",
)
CLUSTER_NODES = Setting(
    "springhouse.cluster.nodes",
    "All nodes of the cluster, with their addresses. The options `--listen` and `--peers` of "
    "`springhouse node` override it.",
    text_of("list of NAME=HOST:PORT", "a=10.0.0.1:7100, b=10.0.0.2:7100"),
    unset="no nodes",
)
CLUSTER_NAME = Setting(
    "springhouse.cluster.name",
    "The name of the cluster. The certificates of its nodes have it as a DNS name.",
    text_of("name"),
    unset="the name of the project",
)
CLUSTER_TLS = Setting(
    "springhouse.cluster.tls",
    "Set to `off`, nodes do without TLS. Then they may listen on loopback addresses only.",
    choice("off"),
    unset="nodes use TLS",
)
CLUSTER_CERTIFICATE = Setting(
    "springhouse.cluster.tls.certificate",
    "The certificate of this node.",
    text_of("PEM file"),
    unset="none; required unless TLS is off",
)
CLUSTER_KEY = Setting(
    "springhouse.cluster.tls.key",
    "The private key of the certificate of this node.",
    text_of("PEM file"),
    unset="none; required unless TLS is off",
)
CLUSTER_AUTHORITY = Setting(
    "springhouse.cluster.tls.authority",
    "The certificate of the authority that signed the certificates of all nodes.",
    text_of("PEM file"),
    unset="none; required unless TLS is off",
)
CLUSTER_MEMORY = Setting(
    "springhouse.cluster.memory",
    "A folder on a local disk, in which this node keeps its term, its vote and its state.",
    text_of("folder"),
    ".springhouse",
)
HEARTBEAT_SECONDS = Setting(
    "springhouse.cluster.heartbeat.seconds",
    "The time between two heartbeats of a leader.",
    number(0, above=True),
    "0.3",
    unit="seconds",
)
ELECTION_SECONDS = Setting(
    "springhouse.cluster.election.seconds",
    "How long a leader may be silent before the others elect a new one.",
    number(0, above=True),
    "3",
    unit="seconds",
)
KEEP_ALIVE_SECONDS = Setting(
    "springhouse.cluster.keep-alive.seconds",
    "How long a node goes on working after it last heard of a quorum.",
    number(0, above=True),
    "3",
    unit="seconds",
)

# --- The scheduler --------------------------------------------------------------------------------

SCHEDULER_BASIC = Setting(
    "springhouse.scheduler.basic",
    "The algorithm that picks the next refresh. `whittle` is the benefit over time.",
    choice(
        *("whittle", "max-benefit", "lookahead", "edf", "edf-p"),
        *("fifo", "round-robin", "random"),
    ),
    "whittle",
)
SCHEDULER_TRACKS = Setting(
    "springhouse.scheduler.tracks",
    "Which tables may use which track.",
    pattern(
        r"global|edf-partitioned( aggressive)?"
        r"|proportional( (basic|all|[1-9]\d*))?( aggressive)?( k=(?P<k>\d+(\.\d+)?))?",
        "`global`, `edf-partitioned [aggressive]` or "
        "`proportional [basic | all | TRACKS] [aggressive] [k=NUMBER]`",
        '"global", "edf-partitioned [aggressive]", or '
        '"proportional [basic | all | TRACKS] [aggressive] [k=NUMBER]"',
    ),
    "global",
)
SCHEDULER_INHERITANCE = Setting(
    "springhouse.scheduler.inheritance",
    "How a table inherits priority from the tables that read it.",
    pattern(
        r"none|sum|max|chain|max-plus(\((?P<k>\d+(\.\d+)?)\))?",
        "`none`, `sum`, `max`, `max-plus(NUMBER)` or `chain`; the number is above 1",
        "one of none, sum, max, max-plus(NUMBER), chain",
        k_above=1.0,
    ),
    "chain",
)
SCHEDULER_CHOPPING = Setting(
    "springhouse.scheduler.chopping",
    "How much data one refresh loads at most, where a cut pays. With `fixed`, it always cuts.",
    ValueType(
        "words",
        "`none` or `NUMBER [fixed]`; the number is 1 or more",
        '"none" or a number of at least 1, and "fixed" if parts never grow',
        _parse_chopping,
    ),
    "3",
    unit="periods of the table",
)
SCHEDULER_PROMISES = Setting(
    "springhouse.scheduler.promises",
    "Whether promises decide when refreshes start.",
    choice("heed", "ignore"),
    "heed",
)
SCHEDULER_LAST_TRACK = Setting(
    "springhouse.scheduler.last-track",
    "Whether a long refresh may take the last free track. With `weigh`, it has to be worth more "
    "than the short refreshes that would then wait; `take` is the paper's way.",
    choice("weigh", "take"),
    "weigh",
)

# --- Flows and sources: of a project, or of one table or view -------------------------------------

FLOW_POLICY = Setting(
    "springhouse.flows.policy",
    "The rule that picks the activity of a flow that runs next.",
    choice("locality", "minimum-cost", "minimum-memory", "mixed", "round-robin"),
    "locality",
    holders=_EVERYWHERE,
)
FLOW_PACK_BYTES = Setting(
    "springhouse.flows.pack-bytes",
    "The size of a row pack.",
    whole_number(1),
    unset="half of the L2 cache, and 4 MB at least",
    unit="bytes",
    holders=_EVERYWHERE,
)
FLOW_QUEUE_PACKS = Setting(
    "springhouse.flows.queue-packs",
    "How many row packs may wait for one activity of a flow.",
    whole_number(1),
    "30",
    unit="row packs",
    holders=_EVERYWHERE,
)
RECREATED = Setting(
    "springhouse.recreated",
    "Whether a flow reads a source that was deleted and created again. With `read`, it reads the "
    "new source from its start.",
    choice("refuse", "read"),
    "refuse",
    holders=(Holder.PROJECT, Holder.TABLE),
)
REREAD = Setting(
    "springhouse.reread",
    "Whether a flow that was changed to read another source may read that source from its start. "
    "`springhouse run --yes` allows it once.",
    choice("refuse", "allow"),
    "refuse",
    holders=(Holder.PROJECT, Holder.TABLE),
)

# --- One table or view ----------------------------------------------------------------------------

STALENESS = Setting(
    "springhouse.staleness",
    "The promise: how old data may get that has arrived and is not in this table yet. The table "
    "may wait until its promise needs a refresh.",
    duration(),
    unset="as fresh as possible",
    holders=_STORED,
)
STALENESS_OF_INPUT = Setting(
    "springhouse.staleness.<input>",
    "The same for the data that comes through one input, or along one pathway (`clicks>score`).",
    duration(),
    unset="as `springhouse.staleness` says",
    holders=_STORED,
)
INCONSISTENCY = Setting(
    "springhouse.inconsistency",
    "How far apart the moments may be that this table shows its inputs at.",
    duration(),
    unset="the largest `springhouse.staleness.<input>`, or else `0`: strictly consistent",
    holders=_STORED,
)
PRIORITY = Setting(
    "springhouse.priority",
    "The weight of this table. A table of priority 10 counts as ten tables of priority 1.",
    number(0, above=True),
    "1",
    holders=_STORED,
)
REFRESH = Setting(
    "springhouse.refresh",
    "How the view is refreshed. With `incremental`, a view that can only be recomputed is an "
    "error; `full` always recomputes it.",
    choice("auto", "incremental", "full", any_case=True),
    "auto",
    holders=_VIEW,
)
TIMESTAMP = Setting(
    "springhouse.timestamp",
    "The column that dates the records of the table.",
    ValueType("column", "such as `placed_at`", "the name of a column", _parse_column),
    unset="records are dated by their arrival",
    holders=_TABLE,
)
LATENESS = Setting(
    "springhouse.lateness",
    "How long after its date a record may arrive.",
    duration(),
    "0",
    holders=_TABLE,
)
PERIOD = Setting(
    "springhouse.period",
    "How often the sources of the table are asked for new data.",
    duration(above_zero=True),
    "1 second",
    holders=_TABLE,
)
SINK = Setting(
    "springhouse.sink.<name>",
    "A sink that gets the changes of this table, by the name of its plug-in.",
    text_of("plug-in", "kafka"),
    unset="no sink",
    holders=_STORED,
)
SINK_OPTION = Setting(
    "springhouse.sink.<name>.<option>",
    "An option of a sink. The options depend on the plug-in: docs/sources-and-sinks.md.",
    text_of("text"),
    unset="as the plug-in says",
    holders=_STORED,
)

FLOW_SETTINGS: tuple[Setting[Any], ...] = (FLOW_POLICY, FLOW_PACK_BYTES, FLOW_QUEUE_PACKS)
"""A table or view may have these for its own flow."""

SOURCE_SETTINGS: tuple[Setting[Any], ...] = (RECREATED, REREAD)
"""A table may have these for its own sources."""

GROUPS: Mapping[str, tuple[Setting[Any], ...]] = {
    "The whole project": (
        *(TRACKS, RETRY_SECONDS, RETENTION, COMPACT_FILES, SPARK_MASTER, SPARK_REMOTE),
    ),
    "The cluster": (
        *(NODE_NAME, CLUSTER_NODES, CLUSTER_NAME, CLUSTER_MEMORY),
        *(CLUSTER_CERTIFICATE, CLUSTER_KEY, CLUSTER_AUTHORITY, CLUSTER_TLS),
        *(HEARTBEAT_SECONDS, ELECTION_SECONDS, KEEP_ALIVE_SECONDS),
    ),
    "The scheduler": (
        *(SCHEDULER_BASIC, SCHEDULER_TRACKS, SCHEDULER_INHERITANCE, SCHEDULER_CHOPPING),
        *(SCHEDULER_PROMISES, SCHEDULER_LAST_TRACK),
    ),
    "Flows and sources": (*FLOW_SETTINGS, *SOURCE_SETTINGS),
    "Promises and refreshes of a table or view": (
        *(STALENESS, STALENESS_OF_INPUT, INCONSISTENCY, PRIORITY, REFRESH),
    ),
    "Records and sinks of a table": (TIMESTAMP, LATENESS, PERIOD, SINK, SINK_OPTION),
}

SETTINGS = tuple(setting for group in GROUPS.values() for setting in group)

ENVIRONMENT: Mapping[str, str] = {
    "AWS_ACCESS_KEY_ID": "The key for S3, unless the machine has a role.",
    "AWS_SECRET_ACCESS_KEY": "The secret that belongs to the key.",
    "AWS_SESSION_TOKEN": "The token of a temporary key.",
    "AWS_REGION": "The region of the bucket.",
    "AWS_DEFAULT_REGION": "The region of the bucket, if AWS_REGION is not set.",
    "AWS_ENDPOINT_URL_S3": "The address of an object store that is not Amazon's.",
    "AWS_ENDPOINT_URL": "The same, if AWS_ENDPOINT_URL_S3 is not set.",
    "JAVA_HOME": "The Java that runs Spark. Without it: the `java` on the PATH, or the newest in "
    "/usr/lib/jvm.",
    "JDK_JAVA_OPTIONS": "Options for Java. If one of them names a garbage collector, Springhouse "
    "sets none. The same holds for the next three.",
    "JAVA_TOOL_OPTIONS": "See JDK_JAVA_OPTIONS.",
    "_JAVA_OPTIONS": "See JDK_JAVA_OPTIONS.",
    "SPARK_SUBMIT_OPTS": "See JDK_JAVA_OPTIONS.",
    "PYSPARK_PYTHON": "The Python of Spark's workers. Without it: the Python of this process.",
    "PYSPARK_DRIVER_PYTHON": "The Python of Spark's driver. Without it: the same.",
    "PYTHONPATH": "Where Spark's workers look for modules.",
}
"""The environment variables that Springhouse reads. `${env:NAME}` in a setting reads any other."""

ON_COMMAND_LINES = frozenset(
    {
        *("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"),
        *("spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"),
        *("spark.driver.extraClassPath", "spark.driver.extraLibraryPath", "spark.driver.memory"),
        *("spark.master", "spark.app.name", SPARK_MASTER.key),
        *("spark.jars", "spark.jars.packages", "spark.jars.repositories", "spark.jars.ivy"),
        *("spark.submit.pyFiles", "spark.files", "spark.archives"),
    }
)
"""Settings that Java gets as arguments when it starts: every user of the machine can read them."""

_BY_KEY = {setting.key: setting for setting in SETTINGS}
_BY_PREFIX = {each.prefix: each for each in SETTINGS if each.prefix is not None}


def find_setting(key: str) -> Setting[Any] | None:
    """The setting that a key names, if any.

    >>> [each.key for key in ("springhouse.tracks", "springhouse.staleness.orders")
    ...  if (each := find_setting(key))]
    ['springhouse.tracks', 'springhouse.staleness.<input>']
    """
    known = _BY_KEY.get(key)
    if known is not None:
        return known
    return next((each for prefix, each in _BY_PREFIX.items() if key.startswith(prefix)), None)


def settings_of(holder: Holder) -> tuple[Setting[Any], ...]:
    """The settings that a project, a table or a view can have."""
    return tuple(setting for setting in SETTINGS if holder in setting.holders)


def check_setting(key: str, value: str, place: Place) -> DeclarationError | None:
    """The error in one entry of `configuration:`, if there is one."""
    if not key.startswith(PREFIX):
        return None
    setting = find_setting(key)
    if setting is None or Holder.PROJECT not in setting.holders:
        return _not_of_a_project(key, setting, place)
    if has_reference(value):
        return None  # Its value is not known yet: `check_value` looks at it.
    return check_value(key, value, value, place)


def _not_of_a_project(key: str, setting: Setting[Any] | None, place: Place) -> DeclarationError:
    if setting is not None:
        owners = " or ".join(holder.value for holder in setting.holders)
        problem = f'"{key}" belongs on {owners}, not in `configuration:`'
        hint = f"Write it into TBLPROPERTIES: '{key}' = '…'."
        return DeclarationError(problem, where=str(place), hint=hint)
    known = [each.key for each in settings_of(Holder.PROJECT)]
    hint = did_you_mean(key, known) or f"The keys are {', '.join(sorted(known))}."
    return DeclarationError(f'unknown configuration key "{key}"', where=str(place), hint=hint)


def check_value(key: str, written: str, value: str, place: Place) -> DeclarationError | None:
    """The error in the value of a key, if there is one; the error shows the value as written."""
    setting = find_setting(key)
    if setting is not None and not setting.type.accepts(value):
        return setting.error(key, written, place)
    return None
