"""What can be set for a whole project?

Spark's pipeline file has no room for keys of ours at its top, so ours live in `configuration:`
beside Spark's own, under `springhouse.`. `SETTINGS` is the one list of them: the checker, the hints
and the documentation read it. Every other key is Spark's, and passed on unread.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from springhouse.errors import DeclarationError
from springhouse.project.declarations.declaration import Place
from springhouse.project.declarations.durations import duration_seconds
from springhouse.project.declarations.names import did_you_mean
from springhouse.project.declarations.secrets import has_reference

PREFIX = "springhouse."


def _any_text(value: str) -> bool:
    return bool(value.strip())


def _count(value: str) -> bool:
    return value.isdecimal() and int(value) > 0


def _seconds(value: str) -> bool:
    try:
        return 0 <= float(value) < float("inf")
    except ValueError:
        return False


def _duration(value: str) -> bool:
    try:
        duration_seconds(value)
    except DeclarationError:
        return False
    return True


def _basic(value: str) -> bool:
    return value in BASIC


def _track_rule(value: str) -> bool:
    found = re.fullmatch(_TRACK_RULE, value)
    return found is not None and (found["k"] is None or float(found["k"]) > 0)


def _inheritance(value: str) -> bool:
    found = re.fullmatch(r"none|sum|max|chain|max-plus(\((?P<k>\d+(\.\d+)?)\))?", value)
    return found is not None and (found["k"] is None or float(found["k"]) > 1)


def _chopping(value: str) -> bool:
    periods = value.removesuffix(" fixed")
    return value == "none" or (_seconds(periods) and float(periods) >= 1)


FLOW_SETTINGS = (
    "springhouse.flows.policy",
    "springhouse.flows.pack-bytes",
    "springhouse.flows.queue-packs",
)
"""What a table or view may set for its own flow, too."""

SOURCE_SETTINGS = ("springhouse.recreated", "springhouse.reread")
"""What a table may set for its own sources, too."""

FLOW_POLICIES = ("locality", "minimum-cost", "minimum-memory", "mixed", "round-robin")
BASIC = ("whittle", "max-benefit", "lookahead", "edf", "edf-p", "fifo", "round-robin", "random")
_TRACK_RULE = (
    r"global|edf-partitioned( aggressive)?"
    r"|proportional( (basic|all|[1-9]\d*))?( aggressive)?( k=(?P<k>\d+(\.\d+)?))?"
)


@dataclass(frozen=True)
class Setting:
    """A key of ours in `configuration:`, what it means, and which values it takes."""

    key: str
    meaning: str
    values: str
    accepts: Callable[[str], bool]


SETTINGS = (
    Setting("springhouse.tracks", "how many refreshes may run at once", "a whole number", _count),
    Setting("springhouse.spark.master", "the Spark cluster to use", "a URL", _any_text),
    Setting("springhouse.spark.remote", "the Spark Connect server to use", "a URL", _any_text),
    Setting("springhouse.node.name", "this node's name in its cluster", "a name", _any_text),
    Setting(
        "springhouse.cluster.nodes",
        "all nodes of the cluster",
        '"NAME=HOST:PORT, NAME=HOST:PORT, …"',
        _any_text,
    ),
    Setting("springhouse.cluster.name", "which cluster this is", "a name", _any_text),
    Setting(
        "springhouse.cluster.tls",
        "whether nodes prove who they are",
        '"off", or left out',
        lambda value: value == "off",
    ),
    Setting("springhouse.cluster.tls.certificate", "what a node shows", "a PEM file", _any_text),
    Setting("springhouse.cluster.tls.key", "the key of that", "a PEM file", _any_text),
    Setting("springhouse.cluster.tls.authority", "who signed all of them", "a PEM file", _any_text),
    Setting(
        "springhouse.cluster.memory", "where nodes keep their votes", "a local folder", _any_text
    ),
    Setting("springhouse.cluster.heartbeat.seconds", "the pause of a leader", "a number", _seconds),
    Setting(
        "springhouse.cluster.election.seconds",
        "how long a leader may be silent",
        "a number",
        _seconds,
    ),
    Setting(
        "springhouse.cluster.keep-alive.seconds",
        "how long a node works without news of a quorum",
        "a number",
        _seconds,
    ),
    Setting("springhouse.retry.seconds", "the pause before a second attempt", "a number", _seconds),
    Setting("springhouse.retention", "how long vacuum keeps old files", "a duration", _duration),
    Setting("springhouse.compact.files", "small files that are too many", "a whole number", _count),
    Setting(
        "springhouse.flows.policy",
        "which activity of a flow runs next",
        f"one of {', '.join(FLOW_POLICIES)}",
        lambda value: value in FLOW_POLICIES,
    ),
    Setting("springhouse.flows.pack-bytes", "how large a row pack is", "a whole number", _count),
    Setting(
        "springhouse.flows.queue-packs",
        "how many row packs may wait for an activity",
        "a whole number",
        _count,
    ),
    Setting(
        "springhouse.recreated",
        "what a flow does when its source was deleted and made anew",
        '"refuse" or "read"',
        lambda value: value in ("refuse", "read"),
    ),
    Setting(
        "springhouse.reread",
        "whether a flow that reads something else than before may read it from the start",
        '"refuse" or "allow"',
        lambda value: value in ("refuse", "allow"),
    ),
    Setting(
        "springhouse.scheduler.basic",
        "which of the waiting refreshes comes first",
        f"one of {', '.join(BASIC)}",
        _basic,
    ),
    Setting(
        "springhouse.scheduler.tracks",
        "who may use which track",
        '"global", "edf-partitioned [aggressive]", or '
        '"proportional [basic | all | TRACKS] [aggressive] [k=NUMBER]"',
        _track_rule,
    ),
    Setting(
        "springhouse.scheduler.inheritance",
        "how tables get priority from those that read them",
        "one of none, sum, max, max-plus(NUMBER), chain",
        _inheritance,
    ),
    Setting(
        "springhouse.scheduler.chopping",
        "how many periods of data one refresh loads at most",
        '"none" or a number of at least 1, and "fixed" if parts never grow',
        _chopping,
    ),
    Setting(
        "springhouse.scheduler.promises",
        "whether promises decide when refreshes start",
        '"heed" or "ignore"',
        lambda value: value in ("heed", "ignore"),
    ),
    Setting(
        "springhouse.scheduler.last-track",
        "whether a long refresh has to be worth the last free track",
        '"weigh" or "take"',
        lambda value: value in ("weigh", "take"),
    ),
)

ON_COMMAND_LINES = frozenset(
    {
        *("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"),
        *("spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"),
        *("spark.driver.extraClassPath", "spark.driver.extraLibraryPath", "spark.driver.memory"),
        *("spark.master", "spark.app.name", "springhouse.spark.master"),
        *("spark.jars", "spark.jars.packages", "spark.jars.repositories", "spark.jars.ivy"),
        *("spark.submit.pyFiles", "spark.files", "spark.archives"),
    }
)
"""Settings that a Java machine gets as arguments when it starts: everybody on it can read them."""

_BY_KEY = {setting.key: setting for setting in SETTINGS}


def check_setting(key: str, value: str, place: Place) -> DeclarationError | None:
    """What is wrong with one entry of `configuration:`, if anything."""
    if not key.startswith(PREFIX):
        return None
    setting = _BY_KEY.get(key)
    if setting is None:
        hint = did_you_mean(key, _BY_KEY) or f"The keys are {', '.join(sorted(_BY_KEY))}."
        return DeclarationError(f'unknown configuration key "{key}"', where=str(place), hint=hint)
    if has_reference(value):
        return None  # Its value is not known yet: `check_value` looks at it.
    return check_value(key, value, value, place)


def check_value(key: str, written: str, value: str, place: Place) -> DeclarationError | None:
    """What is wrong with the value of a key of ours, if anything; an error shows it as written."""
    setting = _BY_KEY.get(key)
    if setting is not None and not setting.accepts(value):
        return DeclarationError(
            f'"{key}" is "{written}", which is not {setting.values}',
            where=str(place),
            hint=f"It means: {setting.meaning}.",
        )
    return None
