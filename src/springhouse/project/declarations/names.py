"""When are two names the same?

As in Spark, case does not matter, backquotes are only spelling, and a table of the project's own
catalog and database may be named with or without them. Every name in a `Project` is normalised: it
is in lower case, without the project's own catalog and database, and with any other, after dots.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MOST_CHARACTERS = 100
"""A name becomes part of the name of a folder, which file systems limit to 255 bytes."""

_MOST_BYTES = 150
_ALLOWED = "Use letters, digits, _, - and, inside, spaces."
_PLAIN = re.compile(r"[^\W_](?:[\w -]*[\w-])?")
_PART = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^`.\s](?:[^`.]*[^`.\s])?))\s*(?:\.|$)")


@dataclass(frozen=True)
class Names:
    """The catalog and the database that a bare name belongs to."""

    catalog: str = "spark_catalog"
    database: str = "default"

    def normal(self, parts: Sequence[str]) -> str:
        """The normal form of a name in parts.

        >>> Names(database="shop").normal(["Shop", "Orders"])
        'orders'
        """
        # A dot inside a part is not a dot between two parts: `a.b` is not a.b.
        lower = [f"`{part}`" if "." in part else part for part in map(str.lower, parts)]
        if len(lower) == 3 and lower[0] == self.catalog.lower():
            lower = lower[1:]
        if len(lower) == 2 and lower[0] == self.database.lower():
            lower = lower[1:]
        return ".".join(lower)

    def parse(self, name: str) -> str:
        """The normal form of a name with dots and perhaps backquotes."""
        parts = [quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(name)]
        return self.normal(parts or [name])


def wrong_name(name: str) -> tuple[str, str] | None:
    """The reason why a normalised name can't name a table, view or flow, and a hint.

    A name becomes the name of a folder, a part of URIs, and a part of ids that Kafka and Delta
    store. Every reader must find the table by it, so only plain characters are allowed.

    >>> wrong_name("orders"), wrong_name("straße"), wrong_name("shop.my orders-2")
    (None, None, None)
    >>> wrong_name("50%")
    ('"50%" has the character "%"', 'Use letters, digits, _, - and, inside, spaces.')
    """
    shown = name if len(name) <= MOST_CHARACTERS else f"{name[:20]}…"
    shown = "".join(c if c.isprintable() else "�" for c in shown)
    if len(name) > MOST_CHARACTERS or len(name.encode()) > _MOST_BYTES:
        return f'the name "{shown}" is too long', f"{MOST_CHARACTERS} characters are the most."
    if "`" in name:
        return f"{shown} has a dot or a backquote inside its backquotes", _ALLOWED
    for part in name.split("."):
        if part.startswith("_"):
            return f'"{shown}" begins with _', "Names that begin with _ are kept for Springhouse."
        if not _PLAIN.fullmatch(part):
            return f'"{shown}" {_wrong_part(part)}', _ALLOWED
    return None


def _wrong_part(part: str) -> str:
    """The reason why a part of a name is not allowed."""
    bad = next((c for c in part if not (c.isalnum() or c in "_- ")), part[:1])
    if not bad:
        return "has an empty part"
    if part.strip(" ") != part:
        return "begins or ends with a space"
    if bad == "-":
        return "begins with -"
    return f'has the character "{bad}"' if bad.isprintable() else f"has U+{ord(bad):04X}"


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that the user probably meant, if one is similar enough."""
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
