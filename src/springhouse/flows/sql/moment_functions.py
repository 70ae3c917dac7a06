"""Which functions of dates and timestamps does a flow have, and which types do they accept?"""

from collections.abc import Mapping

import pyarrow as pa

from springhouse.flows.flow_graph import FlowError
from springhouse.flows.sql import moments
from springhouse.flows.sql.casts import cast
from springhouse.flows.sql.operand_types import MakeTerm, Terms, as_type
from springhouse.flows.sql.terms import Term, fold_constants, give_type
from springhouse.flows.sql.types import (
    DATE,
    INT,
    INTEGERS,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_moment,
    type_name,
)


def add_days(parts: Terms, *, sign: int) -> Term | None:
    if len(parts) != 2 or parts[0].type not in (DATE, NULL):
        return None
    if parts[1].type not in (*INTEGERS[:3], NULL):
        return None
    return moments.later(give_type(parts[0], DATE), *as_type(INT, parts[1]), sign=sign)


def _day_field(name: str) -> MakeTerm:
    def make(parts: Terms) -> Term | None:
        if len(parts) != 1 or not is_moment(parts[0].type):
            return None
        return moments.part(moments.DAY_FIELDS[name], parts[0])

    return make


def _time_field(name: str) -> MakeTerm:
    def make(parts: Terms) -> Term | None:
        if len(parts) != 1 or parts[0].type not in (TIMESTAMP, TIMESTAMP_NTZ):
            return None
        return moments.part(moments.TIME_FIELDS[name], parts[0])

    return make


def _to_date(parts: Terms) -> Term | None:
    if len(parts) != 1 or not (is_moment(parts[0].type) or parts[0].type == STRING):
        return None
    return cast(parts[0], DATE)


def _date_difference(parts: Terms) -> Term | None:
    if len(parts) != 2 or any(part.type not in (DATE, NULL) for part in parts):
        return None
    return moments.between(*(give_type(part, DATE) for part in parts))


def _typed_literal(kind: pa.DataType) -> MakeTerm:
    """A literal like DATE '2024-02-29'. Its text is parsed when the flow is built."""

    def make(parts: Terms) -> Term | None:
        result = fold_constants(cast(parts[0], kind))
        if result.fallible:
            raise FlowError(f"'{parts[0].value()}' is not a {type_name(kind)} that a flow can read")
        return result

    return make


MOMENT_FUNCTIONS: Mapping[str, MakeTerm] = {
    **{name: _day_field(name) for name in moments.DAY_FIELDS},
    **{name: _time_field(name) for name in moments.TIME_FIELDS},
    "to_date": _to_date,
    "date": _to_date,
    "date_add": lambda parts: add_days(parts, sign=1),
    "dateadd": lambda parts: add_days(parts, sign=1),
    "date_sub": lambda parts: add_days(parts, sign=-1),
    "datediff": _date_difference,
    "date_diff": _date_difference,
    "date literal": _typed_literal(DATE),
    "timestamp literal": _typed_literal(TIMESTAMP),
    "timestamp_ntz literal": _typed_literal(TIMESTAMP_NTZ),
}
