"""Which warnings about other nodes go into the log?

Trouble between nodes comes with every heartbeat. The first warning of each kind is logged at once,
and then one a minute with the number of repetitions, so that people can read the log.
"""

from collections.abc import Hashable

from springhouse.units import Instant, Seconds

QUIET_SECONDS = Seconds(60.0)
_MOST_KINDS = 1000


class LogThrottle:
    """Remembers which kinds of warnings were logged, and when."""

    def __init__(self) -> None:
        self._logged: dict[Hashable, tuple[Instant, int]] = {}

    def throttle(self, kind: Hashable, text: str, now: Instant) -> str | None:
        """The line to log for a warning of this kind; None if one was logged in the last minute."""
        last, repeated = self._logged.get(kind, (Instant(float("-inf")), 0))
        if now < last + QUIET_SECONDS:
            self._logged[kind] = (last, repeated + 1)
            return None
        if len(self._logged) >= _MOST_KINDS:
            # A peer that causes a new kind with every call must not fill our memory.
            self._logged.clear()
        self._logged[kind] = (now, 0)
        return f"{text} ({repeated} more times in the meantime)" if repeated else text
