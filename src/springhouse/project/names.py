"""When are two names the same?

As in Spark: case does not matter, backquotes are only spelling, and a table of the project's own
catalog and database may be named with or without them. Every name in a `Project` is normal:
lower case, own prefix dropped, other prefixes kept with dots.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_PART = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^`.\s]+))\s*(?:\.|$)")


@dataclass(frozen=True)
class Names:
    """The catalog and the database that a bare name belongs to."""

    catalog: str = "spark_catalog"
    database: str = "default"

    def normal(self, parts: Sequence[str]) -> str:
        """The one spelling of a name that was written in parts.

        >>> Names(database="shop").normal(["Shop", "Orders"])
        'orders'
        """
        lower = [part.lower() for part in parts]
        if len(lower) == 3 and lower[0] == self.catalog.lower():
            lower = lower[1:]
        if len(lower) == 2 and lower[0] == self.database.lower():
            lower = lower[1:]
        return ".".join(lower)

    def parse(self, name: str) -> str:
        """The one spelling of a name that was written with dots and perhaps backquotes."""
        parts = [quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(name)]
        return self.normal(parts or [name])


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that was probably meant, if one is near enough."""
    close = difflib.get_close_matches(word, sorted(candidates), n=1, cutoff=0.6)
    return close[0] if close else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """A hint that names the nearest candidate."""
    close = nearest(word, candidates)
    return None if close is None else f'Did you mean "{close}"?'


def did_you_mean_the(name: str, kinds: Mapping[str, str]) -> str | None:
    """A hint that names the nearest candidate and its kind.

    >>> did_you_mean_the("order", {"orders": "table"})
    'Did you mean the table "orders"?'
    """
    close = nearest(name, kinds)
    return None if close is None else f'Did you mean the {kinds[close]} "{close}"?'
