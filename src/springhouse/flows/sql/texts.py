"""What do the functions of texts compute? They count characters, not bytes."""

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.sql.terms import (
    Kernel,
    NotInSpark,
    Term,
    Value,
    on_arrays,
    per_row,
    strict_term,
)
from springhouse.flows.sql.types import BOOLEAN, INT, STRING

_YOUNG_PAIRS = {
    "ƛ": "\ua7dc",
    "ɤ": "\ua7cb",
    "\u1c8a": "\u1c89",
    "\ua7cd": "\ua7cc",
    "\ua7cf": "\ua7ce",
    "\ua7d3": "\ua7d2",
    "\ua7d5": "\ua7d4",
    "\ua7db": "\ua7da",
}
_YOUNG_RANGES = ((0x10D70, 0x10D50, 22), (0x16EBB, 0x16EA0, 25))
_YOUNG_UPPER = {ord(small): ord(large) for small, large in _YOUNG_PAIRS.items()} | {
    small + n: large + n for small, large, count in _YOUNG_RANGES for n in range(count)
}
"""Letters of Unicode 15 to 17. Spark's library knows them, but Python's may not."""

_YOUNG_LOWER = {large: small for small, large in _YOUNG_UPPER.items()}


def _upper(text: str) -> str:
    return text.upper().translate(_YOUNG_UPPER)


def _lower(text: str) -> str:
    return text.lower().translate(_YOUNG_LOWER)


def upper(term: Term) -> Term:
    """upper(x)."""
    return strict_term(STRING, _by_case(pc.ascii_upper, _upper), [term])


def lower(term: Term) -> Term:
    """lower(x)."""
    return strict_term(STRING, _by_case(pc.ascii_lower, _lower), [term])


def _by_case(plain: Callable[[Value], Value], function: Callable[[str], str]) -> Kernel:
    def compute(values: pa.Array) -> pa.Array:
        if pc.all(pc.string_is_ascii(values), skip_nulls=True).as_py() is not False:
            return plain(values)
        # Arrow maps one character to one character, so a sharp s would stay unchanged.
        return every(values)

    every = per_row(STRING, function)
    return on_arrays(compute)


def length(term: Term) -> Term:
    """length(x): characters of a text, bytes of a binary."""
    kernel = pc.utf8_length if term.type == STRING else pc.binary_length
    return strict_term(INT, lambda value: pc.cast(kernel(value), INT), [term])


def concat(parts: Sequence[Term]) -> Term:
    """concat(x, y, …) and `||`."""
    kind = parts[0].type
    between = pa.scalar("" if kind == STRING else b"", kind)
    if len(parts) == 1:
        return parts[0]
    # Spark computes all parts, even if one of them is NULL.
    return strict_term(
        kind, lambda *values: pc.binary_join_element_wise(*values, between), parts, all_parts=True
    )


def trim(side: str, term: Term, characters: str) -> Term:
    """trim, ltrim, rtrim: the text without these characters at one end or both."""
    kernel = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[side]
    if not characters:
        return term
    return strict_term(STRING, lambda value: kernel(value, characters), [term])


def substring(term: Term, start: Term, count: Term | None) -> Term:
    """substring(x, start, count): start 1 is the first character, 0 too, and -1 is the last."""
    if count is None:
        return strict_term(
            STRING,
            per_row(STRING, lambda text, at: _slice_text(text, at, 2**31 - 1)),
            [term, start],
        )
    return strict_term(STRING, per_row(STRING, _slice_text), [term, start, count])


def _slice_text(text: str, at: int, count: int) -> str:
    first = at - 1 if at > 0 else len(text) + at if at < 0 else 0
    return text[max(first, 0) : max(first + count, 0)]


def replace_text(term: Term, wanted: Term, by: Term) -> Term:
    """replace(x, wanted, by): an empty `wanted` replaces nothing."""
    function = per_row(STRING, lambda text, old, new: text.replace(old, new) if old else text)
    return strict_term(STRING, function, [term, wanted, by])


def search(test: str, term: Term, wanted: Term) -> Term:
    """startswith, endswith, contains."""
    functions: dict[str, Callable[[str, str], bool]] = {
        "startswith": str.startswith,
        "endswith": str.endswith,
        "contains": str.__contains__,
    }
    return strict_term(BOOLEAN, per_row(BOOLEAN, functions[test]), [term, wanted])


def like(term: Term, pattern: str, escape: str) -> Term:
    """X LIKE pattern, for a constant pattern."""
    pieces = list(_pattern_pieces(pattern, escape))
    plain = "".join(piece for kind, piece in pieces if kind == "text")
    kinds = [kind for kind, _ in pieces]
    kernels: dict[tuple[str, ...], Kernel] = {
        (): lambda value: pc.equal(value, ""),
        ("text",): lambda value: pc.equal(value, plain),
        ("text", "any"): lambda value: pc.starts_with(value, plain),
        ("any", "text"): lambda value: pc.ends_with(value, plain),
        ("any", "text", "any"): lambda value: pc.match_substring(value, plain),
    }
    kernel = kernels.get(tuple(kinds))
    if kernel is None:
        signs = {"any": ".*", "one": "."}
        regex = "".join(signs.get(kind) or re.escape(piece) for kind, piece in pieces)
        matches = re.compile(regex, re.DOTALL).fullmatch
        kernel = per_row(BOOLEAN, lambda text: matches(text) is not None)
    return strict_term(BOOLEAN, kernel, [term])


def _pattern_pieces(pattern: str, escape: str) -> list[tuple[str, str]]:
    """The parts of a pattern: texts, `any` for %, and `one` for _."""
    pieces: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == escape:
            at += 1
            character = pattern[at : at + 1]
            if character not in ("%", "_", escape) or not character:
                raise NotInSpark(
                    f"in the pattern '{pattern}' the escape '{escape}' is before no %, _ or itself"
                )
            kind = "text"
        else:
            kind = {"%": "any", "_": "one"}.get(character, "text")
        if kind == "text" and pieces and pieces[-1][0] == "text":
            pieces[-1] = ("text", pieces[-1][1] + character)
        elif not (kind == "any" and pieces and pieces[-1][0] == "any"):
            pieces.append((kind, character))
        at += 1
    return pieces
