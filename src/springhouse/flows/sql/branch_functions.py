"""Which functions choose one of several values, and which types do they accept?"""

from collections.abc import Mapping

from springhouse.flows.sql import conditional, logic
from springhouse.flows.sql.operand_types import (
    MakeTerm,
    Terms,
    as_conditions,
    comparable_pair,
    in_one_type,
)
from springhouse.flows.sql.terms import Term, constant_term
from springhouse.flows.sql.types import NULL, is_plain


def case_of(parts: Terms) -> Term | None:
    pairs = len(parts) // 2
    conditions = as_conditions([parts[2 * i] for i in range(pairs)])
    values = [parts[2 * i + 1] for i in range(pairs)]
    values.append(parts[-1] if len(parts) % 2 else constant_term(None, NULL))
    together = in_one_type(values)
    if conditions is None or together is None:
        return None
    kind, typed_values = together
    branches = list(zip(conditions, typed_values[:-1], strict=True))
    return conditional.case(branches, typed_values[-1], kind)


def _if(parts: Terms) -> Term | None:
    return case_of(parts) if len(parts) == 3 else None


def _coalesce(parts: Terms) -> Term | None:
    together = in_one_type(parts) if parts else None
    return None if together is None else conditional.coalesce(together[1], together[0])


def _ifnull(parts: Terms) -> Term | None:
    return _coalesce(parts) if len(parts) == 2 else None


def _nvl2(parts: Terms) -> Term | None:
    if len(parts) != 3:
        return None
    return case_of([logic.negate(logic.is_null(parts[0])), parts[1], parts[2]])


def _nullif(parts: Terms) -> Term | None:
    pair = comparable_pair(parts)
    if pair is None or parts[0].type == NULL:
        return None
    return conditional.null_if(parts[0], logic.compare("=", *pair))


def _extreme(sign: str) -> MakeTerm:
    def make(parts: Terms) -> Term | None:
        together = in_one_type(parts) if len(parts) >= 2 else None
        if together is None or not is_plain(together[0]) or together[0] == NULL:
            return None
        return conditional.extreme(sign, together[1], together[0])

    return make


BRANCH_FUNCTIONS: Mapping[str, MakeTerm] = {
    "case": case_of,
    "if": _if,
    "iff": _if,
    "coalesce": _coalesce,
    "nvl": _ifnull,
    "ifnull": _ifnull,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "greatest": _extreme(">"),
    "least": _extreme("<"),
}
