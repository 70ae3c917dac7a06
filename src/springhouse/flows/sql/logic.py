"""Is a condition true, false or unknown? Comparisons, and AND, OR, NOT over them.

SQL has three truth values. NaN equals NaN and is larger than any other number; -0.0 equals 0.0.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.sql.terms import Term, Value, constant_term, on_rows, strict_term
from springhouse.flows.sql.types import BOOLEAN, NULL, is_fraction

_KERNELS: dict[str, Callable[[Value, Value], Value]] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_UNKNOWN = pa.scalar(None, BOOLEAN)


def compare(sign: str, one: Term, other: Term) -> Term:
    """A comparison of two terms of one type."""
    if one.type == NULL:
        return constant_term(None, BOOLEAN)
    if sign == "<>":
        return negate(compare("=", one, other))
    kernel = _KERNELS[sign]
    if not is_fraction(one.type):
        return strict_term(BOOLEAN, kernel, [one, other])
    return strict_term(BOOLEAN, lambda a, b: _compare_fractions(sign, kernel, a, b), [one, other])


def _compare_fractions(
    sign: str, kernel: Callable[[Value, Value], Value], one: Value, other: Value
) -> Value:
    plain = kernel(one, other)
    one_nan, other_nan = pc.is_nan(one), pc.is_nan(other)
    either = pc.or_(one_nan, other_nan)
    if not pc.any(either).as_py() if not isinstance(either, pa.Scalar) else not either.as_py():
        return plain
    special = {
        "=": lambda: pc.and_(one_nan, other_nan),
        "<": lambda: pc.and_not(other_nan, one_nan),
        "<=": lambda: other_nan,
        ">": lambda: pc.and_not(one_nan, other_nan),
        ">=": lambda: one_nan,
    }[sign]()
    return pc.if_else(either, special, plain)


def null_safe_equal(one: Term, other: Term) -> Term:
    """`<=>`: whether both are equal, or both NULL."""
    if one.type == NULL:
        return constant_term(value=True, kind=BOOLEAN)
    equal = compare("=", one, other)

    def compute(pack: pa.RecordBatch) -> Value:
        nulls = pc.and_(pc.is_null(one.compute(pack)), pc.is_null(other.compute(pack)))
        return pc.or_(pc.fill_null(equal.compute(pack), False), nulls)

    # Both sides are always computed, even if one of them is NULL.
    fallible = one.fallible or other.fallible
    return Term(BOOLEAN, compute, fallible, one.constant and other.constant)


def negate(term: Term) -> Term:
    return strict_term(BOOLEAN, pc.invert, [term])


def conjunction(one: Term, other: Term) -> Term:
    """AND: the right side is computed only where the left one is not false."""
    return _joined(one, other, pc.and_kleene, open_where=lambda left: pc.fill_null(left, True))


def disjunction(one: Term, other: Term) -> Term:
    """OR: the right side is computed only where the left one is not true."""
    return _joined(
        one, other, pc.or_kleene, open_where=lambda left: pc.invert(pc.fill_null(left, False))
    )


def _joined(
    one: Term,
    other: Term,
    kernel: Callable[[Value, Value], Value],
    open_where: Callable[[Value], Value],
) -> Term:
    def compute(pack: pa.RecordBatch) -> Value:
        left = one.compute(pack)
        if not other.fallible:
            return kernel(left, other.compute(pack))
        right = on_rows(pack, open_where(left), other.compute)
        return kernel(left, _UNKNOWN if right.type == NULL else right)

    return Term(BOOLEAN, compute, one.fallible or other.fallible, one.constant and other.constant)


def is_null(term: Term) -> Term:
    return Term(BOOLEAN, lambda pack: pc.is_null(term.compute(pack)), term.fallible, term.constant)


def is_truth(term: Term, truth: bool) -> Term:
    """IS TRUE, IS FALSE: never NULL."""
    wanted = pa.scalar(truth)

    def compute(pack: pa.RecordBatch) -> Value:
        return pc.fill_null(pc.equal(term.compute(pack), wanted), False)

    return Term(BOOLEAN, compute, term.fallible, term.constant)


def is_in(term: Term, wanted: Sequence[Term]) -> Term:
    """IN: true if a wanted value is equal, else NULL if a value is NULL, else false."""
    if term.type == NULL:
        return constant_term(None, BOOLEAN)
    if all(candidate.constant and not candidate.fallible for candidate in wanted):
        return strict_term(BOOLEAN, _membership(wanted, term.type), [term], fallible=False)
    result = compare("=", term, wanted[0])
    for candidate in wanted[1:]:
        result = disjunction(result, compare("=", term, candidate))
    return result


def _membership(wanted: Sequence[Term], kind: pa.DataType) -> Callable[[Value], Value]:
    scalars = [candidate.compute(pa.RecordBatch.from_arrays([], names=[])) for candidate in wanted]
    known = [scalar for scalar in scalars if scalar.is_valid]
    unknown = len(known) < len(scalars)
    values = pa.array([], kind) if not known else pa.concat_arrays([pa.repeat(s, 1) for s in known])
    if is_fraction(kind):
        values = pc.add(values, pa.scalar(0.0, kind))

    def find(value: Value) -> Value:
        if is_fraction(kind):
            # Arrow's set finds NaN but treats -0.0 and 0.0 as different, so make -0.0 to 0.0.
            value = pc.add(value, pa.scalar(0.0, kind))
        result = pc.is_in(value, value_set=values)
        if unknown:
            result = pc.if_else(result, result, _UNKNOWN)
        return pc.if_else(pc.is_null(value), _UNKNOWN, result)

    return find
