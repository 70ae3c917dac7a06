"""When are two names the same?

As in Spark: case does not matter, backquotes are only spelling, and a table of the project's own
catalog and database may be named with or without them. Every name in a `Project` is normal:
lower case, own prefix dropped, other prefixes kept with dots.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MOST_CHARACTERS = 100
"""A name is a part of the names of folders, which file systems limit to 255 bytes."""

_MOST_BYTES = 150
_PLAIN = re.compile(r"[^\W_](?:[\w -]*[\w-])?")
_PART = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^`.\s](?:[^`.]*[^`.\s])?))\s*(?:\.|$)")


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
        # A dot inside a part is not a dot between two parts: `a.b` is not a.b.
        lower = [f"`{part}`" if "." in part else part for part in map(str.lower, parts)]
        if len(lower) == 3 and lower[0] == self.catalog.lower():
            lower = lower[1:]
        if len(lower) == 2 and lower[0] == self.database.lower():
            lower = lower[1:]
        return ".".join(lower)

    def parse(self, name: str) -> str:
        """The one spelling of a name that was written with dots and perhaps backquotes."""
        parts = [quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(name)]
        return self.normal(parts or [name])


def wrong_name(name: str) -> tuple[str, str] | None:
    """What keeps a normal name from being the name of a table, view or flow, and a hint.

    A name becomes the name of a folder, a part of URIs, and a part of ids that Kafka and Delta
    keep. Every reader has to find the table under it: so it is plain.

    >>> wrong_name("orders"), wrong_name("straße"), wrong_name("shop.my orders-2")
    (None, None, None)
    >>> wrong_name("50%")
    ('"50%" has the character "%"', 'Use letters, digits, _, - and, inside, spaces.')
    """
    hint = "Use letters, digits, _, - and, inside, spaces."
    shown = name if len(name) <= MOST_CHARACTERS else f"{name[:20]}…"
    shown = "".join(c if c.isprintable() else "�" for c in shown)
    if len(name) > MOST_CHARACTERS or len(name.encode()) > _MOST_BYTES:
        return f'the name "{shown}" is too long', f"{MOST_CHARACTERS} characters are the most."
    if "`" in name:
        return f"{shown} has a dot or a backquote inside its backquotes", hint
    for part in name.split("."):
        if part.startswith("_"):
            return f'"{shown}" begins with _', "Names that begin with _ are kept for Springhouse."
        if _PLAIN.fullmatch(part):
            continue
        bad = next((c for c in part if not (c.isalnum() or c in "_- ")), part[:1])
        if not bad:
            return f'"{shown}" has an empty part', hint
        if part.strip(" ") != part:
            return f'"{shown}" begins or ends with a space', hint
        character = f'the character "{bad}"' if bad.isprintable() else f"U+{ord(bad):04X}"
        if bad == "-":
            return f'"{shown}" begins with -', hint
        return f'"{shown}" has {character}', hint
    return None


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
