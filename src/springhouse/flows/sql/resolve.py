"""Which term computes a tree? Columns are found, types are put together, functions are chosen.

Every function is listed here with the types that it takes. A call that is not listed is refused,
with its types, when the flow is built.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.flow_graph import FlowError
from springhouse.flows.sql import conditional, logic, moments, numbers, texts
from springhouse.flows.sql.casts import cast
from springhouse.flows.sql.syntax_tree import CastTo, Literal, Name, Tree
from springhouse.flows.sql.terms import NotInSpark, Term, Value, constant, folded, strict, typed
from springhouse.flows.sql.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    common_type,
    compared_type,
    decimal_of,
    is_fraction,
    is_moment,
    is_number,
    is_plain,
    spelled,
    understood,
)

Terms: TypeAlias = Sequence[Term]


def resolve(tree: Tree, schema: pa.Schema) -> Term:
    """The term of a tree over rows of this schema."""
    if isinstance(tree, Literal):
        return replace(constant(tree.value, tree.type), literal=True)
    if isinstance(tree, Name):
        return _column(tree, schema)
    if isinstance(tree, CastTo):
        return _computed(cast(resolve(tree.operand, schema), tree.type, tries=tree.tries))
    if tree.function == "field":
        inner, name = tree.arguments
        assert isinstance(name, Literal)
        return _field(resolve(inner, schema), str(name.value))
    parts = [resolve(argument, schema) for argument in tree.arguments]
    make = _FUNCTIONS.get(tree.function)
    if make is None:
        raise NotInSpark(
            f"a flow has no function {tree.function}",
            hint=f"{_WAY_OUT} There are {', '.join(sorted(filter(str.isidentifier, _FUNCTIONS)))}.",
        )
    made = make(parts)
    if made is None:
        given = ", ".join(spelled(part.type) for part in parts) or "nothing"
        raise NotInSpark(
            f"a flow can't compute {tree.function} of {given}",
            hint=f"Cast what it is applied to. {_WAY_OUT}",
        )
    return _computed(made)


def _computed(made: Term) -> Term:
    # What a function or a cast leaves as it is does not stand in the text any more.
    return folded(replace(made, literal=False))


_WAY_OUT = "Or use an expression of pyarrow, or a Python function with `apply`."


def place_of(name: str, schema: pa.Schema) -> int:
    """The place of a column: the one that is spelled so, else the only one in other letters."""
    exact = [i for i, known in enumerate(schema.names) if known == name]
    index = exact or [i for i, k in enumerate(schema.names) if k.lower() == name.lower()]
    if len(index) != 1:
        listed = ", ".join(f"{field.name} {spelled(field.type)}" for field in schema)
        problem = "which its rows don't have" if not index else "which its rows have twice"
        raise FlowError(f'it names a column "{name}", {problem}', hint=f"The columns are {listed}.")
    return index[0]


def _column(name: Name, schema: pa.Schema) -> Term:
    place = place_of(name.parts[0], schema)
    given = schema.field(place).type
    kind = understood(given)
    if kind is None:
        raise NotInSpark(
            f'a flow can\'t compute with the column "{name.parts[0]}" of type {given}',
            hint="Cast it with an expression of pyarrow first.",
        )
    if given == kind:
        term = Term(kind, lambda pack: pack.column(place))
    else:
        term = Term(kind, lambda pack: pack.column(place).cast(kind))
    for part in name.parts[1:]:
        term = _field(term, part)
    return term


def _field(term: Term, name: str) -> Term:
    if not pa.types.is_struct(term.type):
        raise FlowError(f'there is no field "{name}" in {spelled(term.type)}')
    fields = list(term.type)
    places = [i for i, f in enumerate(fields) if f.name.lower() == name.lower()]
    kind = understood(fields[places[0]].type) if len(places) == 1 else None
    if kind is None or kind != fields[places[0]].type:
        raise FlowError(
            f'there is no field "{name}" that a flow can read in {spelled(term.type)}',
            hint=f"The fields are {', '.join(f.name for f in fields)}.",
        )

    def compute(value: Value) -> Value:
        if isinstance(value, pa.Scalar):
            return value[places[0]] if value.is_valid else pa.scalar(None, kind)
        return pc.struct_field(value, places[0])

    return strict(kind, compute, [term])


# Types.


def _as(kind: pa.DataType, *parts: Term) -> list[Term]:
    return [folded(cast(part, kind)) for part in parts]


def _together(parts: Terms) -> tuple[pa.DataType, list[Term]] | None:
    """The parts in the type that holds them all."""
    kind: pa.DataType | None = NULL
    for part in parts:
        kind = common_type(kind, part.type) if kind is not None else None
    if kind is None or not (is_plain(kind) or all(part.type in (kind, NULL) for part in parts)):
        return None
    return kind, _as(kind, *parts)


def _minimal(part: Term, beside: Term) -> Term:
    """A whole number in the text, beside a DECIMAL: a DECIMAL of as many digits as it has."""
    if not (part.literal and part.type in INTEGERS and pa.types.is_decimal128(beside.type)):
        return part
    if part.type == TINYINT:  # Spark forgets these
        return part
    value = Decimal(part.value())
    return replace(constant(value, pa.decimal128(len(value.as_tuple().digits), 0)), constant=True)


def _numbers(parts: Terms) -> list[Term] | None:
    """Two numbers for an operator: of one type, or both DECIMAL."""
    if len(parts) != 2:
        return None
    one, other = parts
    if one.type == NULL and is_number(other.type):
        one = typed(one, other.type)
    if other.type == NULL and is_number(one.type):
        other = typed(other, one.type)
    if not (is_number(one.type) and is_number(other.type)):
        return None
    one, other = _minimal(one, other), _minimal(other, one)
    if pa.types.is_decimal128(one.type) or pa.types.is_decimal128(other.type):
        if not (is_fraction(one.type) or is_fraction(other.type)):
            return [*_as(decimal_of(one.type), one), *_as(decimal_of(other.type), other)]
        return _as(DOUBLE, one, other)
    kind = common_type(one.type, other.type)
    assert kind is not None
    return _as(kind, one, other)


def _conditions(parts: Terms) -> list[Term] | None:
    if all(part.type in (BOOLEAN, NULL) for part in parts):
        return [typed(part, BOOLEAN) for part in parts]
    return None


def _texts(parts: Terms) -> list[Term] | None:
    if all(part.type in (STRING, NULL) for part in parts):
        return [typed(part, STRING) for part in parts]
    return None


# Operators.


def _calculation(sign: str) -> Callable[[Terms], Term | None]:
    def make(parts: Terms) -> Term | None:
        if len(parts) == 2 and sign in "+-" and parts[0].type == DATE and parts[1].type != NULL:
            return _days_later(parts, sign=1 if sign == "+" else -1)
        pair = _numbers(parts)
        if pair is None:
            return None
        if pa.types.is_decimal128(pair[0].type):
            return numbers.calculate_decimals(sign, *pair)
        return numbers.calculate(sign, *pair)

    return make


def _days_later(parts: Terms, *, sign: int) -> Term | None:
    if len(parts) != 2 or parts[0].type not in (DATE, NULL):
        return None
    if parts[1].type not in (*INTEGERS[:3], NULL):
        return None
    return moments.later(typed(parts[0], DATE), *_as(INT, parts[1]), sign=sign)


def _division(parts: Terms) -> Term | None:
    pair = _numbers(parts)
    if pair is None:
        return None
    if pa.types.is_decimal128(pair[0].type):
        return numbers.calculate_decimals("/", *pair)
    return numbers.divide(*_as(DOUBLE, *pair))


def _modulo(parts: Terms) -> Term | None:
    pair = _numbers(parts)
    if pair is None:
        return None
    if pa.types.is_decimal128(pair[0].type):
        return numbers.calculate_decimals("%", *pair)
    return numbers.remainder(*pair)


def _whole_division(parts: Terms) -> Term | None:
    pair = _numbers(parts)
    if pair is None or pair[0].type not in INTEGERS:
        return None
    return numbers.quotient(*_as(BIGINT, *pair))


def _bits(sign: str) -> Callable[[Terms], Term | None]:
    def make(parts: Terms) -> Term | None:
        pair = _numbers(parts)
        if pair is None or pair[0].type not in INTEGERS:
            return None
        return numbers.bits(sign, *pair)

    return make


def _one_number(
    make: Callable[[Term], Term], *, whole: bool = False
) -> Callable[[Terms], Term | None]:
    def checked(parts: Terms) -> Term | None:
        if len(parts) != 1 or not is_number(parts[0].type):
            return None
        return make(parts[0]) if not whole or parts[0].type in INTEGERS else None

    return checked


def _turned(make: Callable[[Term], Term]) -> Callable[[Terms], Term | None]:
    """Spark rounds a DECIMAL to 34 digits when it turns its sign; so longer ones are refused."""

    def checked(parts: Terms) -> Term | None:
        if parts and pa.types.is_decimal128(parts[0].type) and parts[0].type.precision > 34:
            return None
        return _one_number(make)(parts)

    return checked


def _bits_turned(term: Term) -> Term:
    return strict(term.type, pc.bit_wise_not, [term])


def _double(make: Callable[[Term], Term]) -> Callable[[Term], Term]:
    return lambda term: make(*_as(DOUBLE, term))


def _rounding(*, even: bool) -> Callable[[Terms], Term | None]:
    def make(parts: Terms) -> Term | None:
        # Of a FLOAT Spark rounds other digits with generated code than without.
        if not 1 <= len(parts) <= 2 or not is_number(parts[0].type) or parts[0].type == FLOAT:
            return None
        if len(parts) == 1:
            return numbers.rounded(parts[0], 0, even=even)
        places = parts[1]
        if not places.constant or places.type not in INTEGERS[:3] or places.fallible:
            return None
        found = places.value()
        if found is None or not -400 <= found <= 400:
            return None
        return numbers.rounded(parts[0], found, even=even)

    return make


def _comparison(sign: str) -> Callable[[Terms], Term | None]:
    def make(parts: Terms) -> Term | None:
        pair = _comparable(parts)
        if pair is None:
            return None
        return logic.same(*pair) if sign == "<=>" else logic.compare(sign, *pair)

    return make


def _comparable(parts: Terms) -> list[Term] | None:
    if len(parts) != 2:
        return None
    one, other = _minimal(parts[0], parts[1]), _minimal(parts[1], parts[0])
    kind = compared_type(one.type, other.type)
    return None if kind is None else _as(kind, one, other)


def _between(parts: Terms) -> Term | None:
    value, low, high = parts
    least, most = _comparable([value, low]), _comparable([value, high])
    if least is None or most is None:
        return None
    return logic.conjunction(logic.compare(">=", *least), logic.compare("<=", *most))


def _in(parts: Terms) -> Term | None:
    found = _together(parts)
    if found is None or not is_plain(found[0]):
        return None
    return logic.is_in(found[1][0], found[1][1:])


def _joined(
    make: Callable[[Term, Term], Term],
) -> Callable[[Terms], Term | None]:
    def checked(parts: Terms) -> Term | None:
        conditions = _conditions(parts)
        return None if conditions is None or len(conditions) != 2 else make(*conditions)

    return checked


def _not(parts: Terms) -> Term | None:
    conditions = _conditions(parts)
    return None if conditions is None or len(conditions) != 1 else logic.negate(conditions[0])


def _is_null(parts: Terms) -> Term | None:
    return logic.is_null(parts[0]) if len(parts) == 1 else None


def _is_not_null(parts: Terms) -> Term | None:
    return logic.negate(logic.is_null(parts[0])) if len(parts) == 1 else None


def _is_truth(truth: bool) -> Callable[[Terms], Term | None]:
    def make(parts: Terms) -> Term | None:
        conditions = _conditions(parts)
        return None if conditions is None else logic.is_truth(conditions[0], truth)

    return make


def _is_unknown(parts: Terms) -> Term | None:
    conditions = _conditions(parts)
    return None if conditions is None else logic.is_null(conditions[0])


def _is_nan(parts: Terms) -> Term | None:
    if len(parts) != 1 or not is_fraction(parts[0].type):
        return None
    return numbers.is_not_a_number(parts[0])


# Branches.


def _case(parts: Terms) -> Term | None:
    pairs = len(parts) // 2
    conditions = _conditions([parts[2 * i] for i in range(pairs)])
    values = [parts[2 * i + 1] for i in range(pairs)]
    values.append(parts[-1] if len(parts) % 2 else constant(None, NULL))
    found = _together(values)
    if conditions is None or found is None:
        return None
    kind, typed_values = found
    branches = list(zip(conditions, typed_values[:-1], strict=True))
    return conditional.case(branches, typed_values[-1], kind)


def _if(parts: Terms) -> Term | None:
    return _case(parts) if len(parts) == 3 else None


def _coalesce(parts: Terms) -> Term | None:
    found = _together(parts) if parts else None
    return None if found is None else conditional.coalesce(found[1], found[0])


def _ifnull(parts: Terms) -> Term | None:
    return _coalesce(parts) if len(parts) == 2 else None


def _nvl2(parts: Terms) -> Term | None:
    if len(parts) != 3:
        return None
    return _case([logic.negate(logic.is_null(parts[0])), parts[1], parts[2]])


def _nullif(parts: Terms) -> Term | None:
    pair = _comparable(parts)
    if pair is None or parts[0].type == NULL:
        return None
    return conditional.null_if(parts[0], logic.compare("=", *pair))


def _extreme(sign: str) -> Callable[[Terms], Term | None]:
    def make(parts: Terms) -> Term | None:
        found = _together(parts) if len(parts) >= 2 else None
        if found is None or not is_plain(found[0]) or found[0] == NULL:
            return None
        return conditional.extreme(sign, found[1], found[0])

    return make


# Texts.


def _one_text(make: Callable[[Term], Term]) -> Callable[[Terms], Term | None]:
    def checked(parts: Terms) -> Term | None:
        given = _texts(parts)
        return None if given is None or len(given) != 1 else make(given[0])

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
    return texts.concat(_as(STRING, *parts)) if all(is_plain(p.type) for p in parts) else None


def _trim(side: str) -> Callable[[Terms], Term | None]:
    def make(parts: Terms) -> Term | None:
        given = _texts(parts)
        if given is None or not 1 <= len(given) <= 2:
            return None
        if len(given) == 1:
            return texts.trimmed(side, given[0], " ")
        characters = _known_text(given[0])
        return None if characters is None else texts.trimmed(side, given[1], characters)

    return make


def _known_text(term: Term) -> str | None:
    if not term.constant or term.fallible:
        return None
    value = term.value()
    return None if value is None else str(value)


def _substring(parts: Terms) -> Term | None:
    if not 2 <= len(parts) <= 3 or parts[0].type not in (STRING, NULL):
        return None
    if any(part.type not in (*INTEGERS[:3], NULL) for part in parts[1:]):
        return None
    counts = _as(INT, *parts[1:])
    return texts.substring(typed(parts[0], STRING), counts[0], counts[1] if counts[1:] else None)


def _replace(parts: Terms) -> Term | None:
    given = _texts(parts)
    if given is None or not 2 <= len(given) <= 3:
        return None
    return texts.replaced(given[0], given[1], given[2] if given[2:] else constant("", STRING))


def _found(test: str) -> Callable[[Terms], Term | None]:
    def make(parts: Terms) -> Term | None:
        given = _texts(parts)
        return None if given is None or len(given) != 2 else texts.found(test, *given)

    return make


def _like(parts: Terms) -> Term | None:
    given = _texts(parts)
    pattern = None if given is None else _known_text(given[1])
    escape = _known_text(given[2]) if given is not None and given[2:] else "\\"
    if given is None or pattern is None or escape is None or len(escape) != 1:
        return None
    return texts.like(given[0], pattern, escape)


# Dates and timestamps.


def _day_field(name: str) -> Callable[[Terms], Term | None]:
    def make(parts: Terms) -> Term | None:
        if len(parts) != 1 or not is_moment(parts[0].type):
            return None
        return moments.part(moments.DAY_FIELDS[name], parts[0])

    return make


def _time_field(name: str) -> Callable[[Terms], Term | None]:
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
    return moments.between(*(typed(part, DATE) for part in parts))


def _spelled_out(kind: pa.DataType) -> Callable[[Terms], Term | None]:
    """A literal like DATE '2024-02-29': it is read when the flow is built."""

    def make(parts: Terms) -> Term | None:
        made = folded(cast(parts[0], kind))
        if made.fallible:
            raise FlowError(f"'{parts[0].value()}' is not a {spelled(kind)} that a flow can read")
        return made

    return make


_FUNCTIONS: dict[str, Callable[[Terms], Term | None]] = {
    "+": _calculation("+"),
    "-": _calculation("-"),
    "*": _calculation("*"),
    "/": _division,
    "%": _modulo,
    "mod": _modulo,
    "div": _whole_division,
    "&": _bits("&"),
    "|": _bits("|"),
    "^": _bits("^"),
    "~": _one_number(_bits_turned, whole=True),
    "negative": _turned(numbers.negative),
    "positive": _one_number(lambda term: term),
    "abs": _turned(numbers.absolute),
    "sqrt": _one_number(_double(numbers.square_root)),
    "sign": _one_number(_double(numbers.sign_of)),
    "signum": _one_number(_double(numbers.sign_of)),
    "floor": _one_number(lambda term: numbers.limit(term, up=False)),
    "ceil": _one_number(lambda term: numbers.limit(term, up=True)),
    "ceiling": _one_number(lambda term: numbers.limit(term, up=True)),
    "round": _rounding(even=False),
    "bround": _rounding(even=True),
    **{sign: _comparison(sign) for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")},
    "between": _between,
    "in": _in,
    "and": _joined(logic.conjunction),
    "or": _joined(logic.disjunction),
    "not": _not,
    "is null": _is_null,
    "is true": _is_truth(True),
    "is false": _is_truth(False),
    "is unknown": _is_unknown,
    "isnull": _is_null,
    "isnotnull": _is_not_null,
    "isnan": _is_nan,
    "case": _case,
    "if": _if,
    "iff": _if,
    "coalesce": _coalesce,
    "nvl": _ifnull,
    "ifnull": _ifnull,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "greatest": _extreme(">"),
    "least": _extreme("<"),
    "upper": _one_text(texts.upper),
    "ucase": _one_text(texts.upper),
    "lower": _one_text(texts.lower),
    "lcase": _one_text(texts.lower),
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
    "startswith": _found("startswith"),
    "endswith": _found("endswith"),
    "contains": _found("contains"),
    "like": _like,
    **{name: _day_field(name) for name in moments.DAY_FIELDS},
    **{name: _time_field(name) for name in moments.TIME_FIELDS},
    "to_date": _to_date,
    "date": _to_date,
    "date_add": lambda parts: _days_later(parts, sign=1),
    "dateadd": lambda parts: _days_later(parts, sign=1),
    "date_sub": lambda parts: _days_later(parts, sign=-1),
    "datediff": _date_difference,
    "date_diff": _date_difference,
    "date literal": _spelled_out(DATE),
    "timestamp literal": _spelled_out(TIMESTAMP),
    "timestamp_ntz literal": _spelled_out(TIMESTAMP_NTZ),
}
