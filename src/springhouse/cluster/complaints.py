"""Which trouble is worth a line in the log?

Trouble between nodes comes with every heartbeat. Each kind is told when it comes up, and then once
a minute with how often it came, so that a log can be read.
"""

from collections.abc import Hashable

from springhouse.units import Instant, Seconds

QUIET_SECONDS = Seconds(60.0)
_MOST_KINDS = 1000


class LogThrottle:
    """What was told, and when."""

    def __init__(self) -> None:
        self._told: dict[Hashable, tuple[Instant, int]] = {}

    def worth_telling(self, kind: Hashable, text: str, now: Instant) -> str | None:
        """What to say of trouble of this kind that came up now; None if that was said lately."""
        last, since = self._told.get(kind, (Instant(float("-inf")), 0))
        if now < last + QUIET_SECONDS:
            self._told[kind] = (last, since + 1)
            return None
        if len(self._told) >= _MOST_KINDS:
            # Whoever makes up a new kind with every call must not fill our memory.
            self._told.clear()
        self._told[kind] = (now, 0)
        return f"{text} ({since} times more since last told)" if since else text
