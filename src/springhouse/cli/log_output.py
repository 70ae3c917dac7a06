"""Where does the log of a command go?

To stderr, one line per record. Without `--log-level` no command writes a log, except `springhouse
node`, which always logs the events of its cluster.
"""

import logging
import sys
from enum import StrEnum

_LINE = "%(asctime)s %(levelname)s %(name)s %(message)s"


class LogLevel(StrEnum):
    """The least level that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def write_log(level: LogLevel) -> None:
    """Write what Springhouse logs to stderr, from a level up."""
    _write_to_stderr()
    logging.getLogger("springhouse").setLevel(level.upper())


def write_cluster_log() -> None:
    """Write the cluster's log, unless `--log-level` already chose a level."""
    _write_to_stderr()
    if logging.getLogger("springhouse").level == logging.NOTSET:
        logging.getLogger("springhouse.cluster").setLevel(logging.INFO)


def _write_to_stderr() -> None:
    logging.basicConfig(stream=sys.stderr, format=_LINE, level=logging.WARNING)
