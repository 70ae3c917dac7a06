"""How do CASE, IF and COALESCE choose a value for each row?

A branch is computed only for the rows that take it, so it can't fail for other rows.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.sql.logic import compare
from springhouse.flows.sql.terms import Compute, Term, Value, constant_term, on_rows
from springhouse.flows.sql.types import NULL


def case(branches: Sequence[tuple[Term, Term]], otherwise: Term, kind: pa.DataType) -> Term:
    """The value of the first branch whose condition is true."""
    parts = [otherwise, *(term for branch in branches for term in branch)]

    def compute(pack: pa.RecordBatch) -> Value:
        left: Value = pa.scalar(True)
        ways: list[tuple[Value, Compute]] = []
        for condition, value in branches:
            holds = _rows_where(pack, left, condition)
            ways.append((holds, value.compute))
            left = pc.and_not(left, holds)
        result = _compute_for(pack, left, otherwise, kind)
        for (holds, _), (_, value) in zip(reversed(ways), reversed(branches), strict=True):
            result = pc.if_else(holds, _compute_for(pack, holds, value, kind), result)
        return result

    return Term(
        kind,
        compute,
        any(term.fallible for term in parts),
        all(term.constant for term in parts),
    )


def _rows_where(pack: pa.RecordBatch, left: Value, condition: Term) -> Value:
    """The rows among the remaining ones (`left`) for which the condition is true."""
    if not condition.fallible:
        holds = condition.compute(pack)
    else:
        holds = on_rows(pack, left, condition.compute)
        if holds.type == NULL:
            return pa.scalar(False)
    return pc.and_(left, pc.fill_null(holds, False))


def _compute_for(pack: pa.RecordBatch, rows: Value, term: Term, kind: pa.DataType) -> Value:
    if not term.fallible:
        return term.compute(pack)
    result = on_rows(pack, rows, term.compute)
    return pa.scalar(None, kind) if result.type == NULL else result


def coalesce(parts: Sequence[Term], kind: pa.DataType) -> Term:
    """The first value that is not NULL."""

    def compute(pack: pa.RecordBatch) -> Value:
        result = parts[0].compute(pack)
        for part in parts[1:]:
            result = pc.if_else(
                pc.is_valid(result), result, _compute_for(pack, pc.is_null(result), part, kind)
            )
        return result

    return Term(
        kind,
        compute,
        any(part.fallible for part in parts),
        all(part.constant for part in parts),
    )


def null_if(one: Term, equal: Term) -> Term:
    """NULL if the values are equal, else the first value."""
    return case([(equal, constant_term(None, one.type))], one, one.type)


def extreme(sign: str, parts: Sequence[Term], kind: pa.DataType) -> Term:
    """GREATEST (">") or LEAST ("<") of the values that are not NULL."""

    def compute(pack: pa.RecordBatch) -> Value:
        result = parts[0].compute(pack)
        for part in parts[1:]:
            value = part.compute(pack)
            pair = [Term(kind, lambda pack, v=v: v) for v in (value, result)]  # type: ignore[misc]
            better = pc.fill_null(compare(sign, *pair).compute(pack), False)
            result = pc.if_else(pc.or_(better, pc.is_null(result)), value, result)
        return result

    return Term(
        kind,
        compute,
        any(part.fallible for part in parts),
        all(part.constant for part in parts),
    )
