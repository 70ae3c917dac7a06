"""Which comparisons and tests does a flow have, and which types do they accept?"""

from collections.abc import Callable, Mapping

from springhouse.flows.sql import logic
from springhouse.flows.sql.operand_types import (
    MakeTerm,
    Terms,
    as_conditions,
    comparable_pair,
    in_one_type,
)
from springhouse.flows.sql.terms import Term
from springhouse.flows.sql.types import is_plain


def _comparison(sign: str) -> MakeTerm:
    def make(parts: Terms) -> Term | None:
        pair = comparable_pair(parts)
        if pair is None:
            return None
        return logic.null_safe_equal(*pair) if sign == "<=>" else logic.compare(sign, *pair)

    return make


def _between(parts: Terms) -> Term | None:
    value, low, high = parts
    least, most = comparable_pair([value, low]), comparable_pair([value, high])
    if least is None or most is None:
        return None
    return logic.conjunction(logic.compare(">=", *least), logic.compare("<=", *most))


def _in(parts: Terms) -> Term | None:
    together = in_one_type(parts)
    if together is None or not is_plain(together[0]):
        return None
    return logic.is_in(together[1][0], together[1][1:])


def _connective(
    make: Callable[[Term, Term], Term],
) -> MakeTerm:
    def checked(parts: Terms) -> Term | None:
        conditions = as_conditions(parts)
        return None if conditions is None or len(conditions) != 2 else make(*conditions)

    return checked


def _not(parts: Terms) -> Term | None:
    conditions = as_conditions(parts)
    return None if conditions is None or len(conditions) != 1 else logic.negate(conditions[0])


def _is_null(parts: Terms) -> Term | None:
    return logic.is_null(parts[0]) if len(parts) == 1 else None


def _is_not_null(parts: Terms) -> Term | None:
    return logic.negate(logic.is_null(parts[0])) if len(parts) == 1 else None


def _truth_test(truth: bool) -> MakeTerm:
    def make(parts: Terms) -> Term | None:
        conditions = as_conditions(parts)
        return None if conditions is None else logic.is_truth(conditions[0], truth)

    return make


def _is_unknown(parts: Terms) -> Term | None:
    conditions = as_conditions(parts)
    return None if conditions is None else logic.is_null(conditions[0])


LOGIC_FUNCTIONS: Mapping[str, MakeTerm] = {
    **{sign: _comparison(sign) for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")},
    "between": _between,
    "in": _in,
    "and": _connective(logic.conjunction),
    "or": _connective(logic.disjunction),
    "not": _not,
    "is null": _is_null,
    "is true": _truth_test(True),
    "is false": _truth_test(False),
    "is unknown": _is_unknown,
    "isnull": _is_null,
    "isnotnull": _is_not_null,
}
