"""How does Springhouse write logs?

With the standard library, to loggers under `springhouse`. Every finished or failed refresh is one
line, at INFO or WARNING. An error that stops nothing is at DEBUG, with the reason why it may pass.
"""

import logging
from types import TracebackType


def passing(logger: logging.Logger, reason: str, *errors: type[Exception]) -> "_Passing":
    """Let errors of these types pass, and log them; `reason` says why that is right.

    >>> with passing(logging.getLogger("springhouse.example"), "nobody needs it", KeyError):
    ...     {}["key"]
    """
    return _Passing(logger, reason, errors)


class _Passing:
    def __init__(
        self, logger: logging.Logger, reason: str, errors: tuple[type[Exception], ...]
    ) -> None:
        self._logger = logger
        self._reason = reason
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, self._errors):
            return False
        self._logger.debug("ignored (%s): %s: %s", self._reason, type(error).__name__, error)
        return True
