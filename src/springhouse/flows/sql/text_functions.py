"""Which functions of texts does a flow have, and which types do they accept?"""

from collections.abc import Callable, Mapping

from springhouse.flows.sql import texts
from springhouse.flows.sql.operand_types import MakeTerm, Terms, as_texts, as_type
from springhouse.flows.sql.terms import Term, constant_term, give_type
from springhouse.flows.sql.types import BINARY, INT, INTEGERS, NULL, STRING, is_fraction, is_plain


def _of_one_text(make: Callable[[Term], Term]) -> MakeTerm:
    def checked(parts: Terms) -> Term | None:
        strings = as_texts(parts)
        return None if strings is None or len(strings) != 1 else make(strings[0])

    return checked


def _length(parts: Terms) -> Term | None:
    if len(parts) != 1 or parts[0].type not in (STRING, BINARY):
        return None
    return texts.length(parts[0])


def _concat(parts: Terms) -> Term | None:
    if not parts:
        return None
    if all(part.type == BINARY for part in parts):
        return texts.concat(parts)
    if any(is_fraction(part.type) or part.type == BINARY for part in parts):
        return None
    return texts.concat(as_type(STRING, *parts)) if all(is_plain(p.type) for p in parts) else None


def _trim(side: str) -> MakeTerm:
    def make(parts: Terms) -> Term | None:
        strings = as_texts(parts)
        if strings is None or not 1 <= len(strings) <= 2:
            return None
        if len(strings) == 1:
            return texts.trim(side, strings[0], " ")
        characters = _constant_text(strings[0])
        return None if characters is None else texts.trim(side, strings[1], characters)

    return make


def _constant_text(term: Term) -> str | None:
    if not term.constant or term.fallible:
        return None
    value = term.value()
    return None if value is None else str(value)


def _substring(parts: Terms) -> Term | None:
    if not 2 <= len(parts) <= 3 or parts[0].type not in (STRING, NULL):
        return None
    if any(part.type not in (*INTEGERS[:3], NULL) for part in parts[1:]):
        return None
    counts = as_type(INT, *parts[1:])
    return texts.substring(
        give_type(parts[0], STRING), counts[0], counts[1] if counts[1:] else None
    )


def _replace(parts: Terms) -> Term | None:
    strings = as_texts(parts)
    if strings is None or not 2 <= len(strings) <= 3:
        return None
    return texts.replace_text(
        strings[0], strings[1], strings[2] if strings[2:] else constant_term("", STRING)
    )


def _search(test: str) -> MakeTerm:
    def make(parts: Terms) -> Term | None:
        strings = as_texts(parts)
        return None if strings is None or len(strings) != 2 else texts.search(test, *strings)

    return make


def _like(parts: Terms) -> Term | None:
    strings = as_texts(parts)
    pattern = None if strings is None else _constant_text(strings[1])
    escape = _constant_text(strings[2]) if strings is not None and strings[2:] else "\\"
    if strings is None or pattern is None or escape is None or len(escape) != 1:
        return None
    return texts.like(strings[0], pattern, escape)


TEXT_FUNCTIONS: Mapping[str, MakeTerm] = {
    "upper": _of_one_text(texts.upper),
    "ucase": _of_one_text(texts.upper),
    "lower": _of_one_text(texts.lower),
    "lcase": _of_one_text(texts.lower),
    "length": _length,
    "len": _length,
    "char_length": _length,
    "character_length": _length,
    "||": _concat,
    "concat": _concat,
    "trim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "substring": _substring,
    "substr": _substring,
    "replace": _replace,
    "startswith": _search("startswith"),
    "endswith": _search("endswith"),
    "contains": _search("contains"),
    "like": _like,
}
