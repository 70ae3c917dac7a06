"""Which values add up exactly, in any order, and what is the type of their sum?

Integers and decimals add up exactly: additions and subtractions can keep their sum up to date for
ever. Floating-point numbers do not, so a refresh recomputes their sum for each group that a change
touches. When in doubt, a value is not exact: this costs time, never digits.

The types follow Spark's rules: a sum of DECIMAL(p, s) is DECIMAL(min(p + 10, 38), s), and a result
that needs more than 38 digits loses digits of its fraction, but not the first six. The lake
compares these types with Spark's own before it builds a table with them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import ParseError

from springhouse.views.algebra.query_tree import Aggregate, Constant, Node, Projection, Scan, walk
from springhouse.views.sql.expressions import Expression

MOST_DIGITS = 38
_LEAST_FRACTION = 6
_WHOLE = {exp.DType.TINYINT: 3, exp.DType.SMALLINT: 5, exp.DType.INT: 10, exp.DType.BIGINT: 20}
"""The number of digits that Spark gives an integer beside a decimal."""
_WHOLE_NAMES = {3: "tinyint", 5: "smallint", 10: "int", 20: "bigint"}


@dataclass(frozen=True)
class ExactType:
    """The type of an exact number: its digits, and how many of them are after the point.

    >>> str(ExactType(12, 2)), str(ExactType(10, whole=True))
    ('decimal(12,2)', 'int')
    """

    digits: int
    fraction: int = 0
    whole: bool = False

    def __str__(self) -> str:
        return (
            _WHOLE_NAMES[self.digits] if self.whole else f"decimal({self.digits},{self.fraction})"
        )

    @property
    def is_long(self) -> bool:
        return self.whole and self.digits == _WHOLE[exp.DType.BIGINT]

    @property
    def sum(self) -> "ExactType":
        """The type of a sum of such numbers."""
        if self.whole:
            return LONG
        return ExactType(min(self.digits + 10, MOST_DIGITS), self.fraction)

    @property
    def average(self) -> "ExactType | None":
        """The type of an average of such numbers; an average of integers is a double."""
        if self.whole:
            return None
        return ExactType(min(self.digits + 4, MOST_DIGITS), min(self.fraction + 4, MOST_DIGITS))


INT = ExactType(10, whole=True)
LONG = ExactType(20, whole=True)


class ExactTypes:
    """The type of every column of a query that holds exact numbers.

    Without `decimals`, no decimal counts as exact: for a Spark with other rules for digits.
    """

    def __init__(
        self, root: Node, inputs: Mapping[str, Mapping[str, str]], *, decimals: bool = True
    ) -> None:
        self._kinds: dict[str, ExactType | None] = {}
        self._decimals = decimals
        for node in walk(root):
            match node:
                case Scan():
                    schema = inputs[node.input]
                    for name, source in zip(node.columns, node.sources, strict=True):
                        self._set(name, number_type(schema[source]))
                case Constant():
                    for place, name in enumerate(node.columns):
                        for row in node.rows:
                            self._set(name, self._infer(row[place]))
                case Projection():
                    for name, value in node.outputs:
                        self._set(name, self._infer(value))
                case Aggregate():
                    for name, value in node.measures:
                        self._set(name, self._gathered(value))
                case _:
                    pass

    def _set(self, name: str, kind: ExactType | None) -> None:
        # The children of a UNION ALL share their names: the type has to hold the values of all.
        known = self._kinds.get(name, kind)
        self._kinds[name] = _wider([known, kind])

    def kind(self, value: Expression) -> ExactType | None:
        """The type of a value whose sums are exact; None for all others."""
        found = self._infer(value)
        return found if found is None or found.whole or self._decimals else None

    def _infer(self, value: Expression) -> ExactType | None:
        value = value.unnest()
        match value:
            case exp.Column():
                return self._kinds.get(value.name)
            case exp.Literal():
                return _literal(value)
            case exp.Neg() | exp.Abs():
                return self._infer(value.this)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.Div():
                return self._arithmetic(value)
            case exp.IntDiv():
                return LONG
            case exp.Cast():
                return _exact_type(value.to)
            case exp.Case() | exp.If() | exp.Coalesce() | exp.Nullif():
                return self._branches(value)
            case exp.Extract():
                return ExactType(8, 6) if value.name.upper().startswith("SEC") else INT
            case exp.Year() | exp.Month() | exp.Length():
                return INT
            case _:
                return None

    def _arithmetic(self, value: exp.Binary) -> ExactType | None:
        left, right = self._infer(value.this), self._infer(value.expression)
        if left is None or right is None:
            return None
        if left.whole and right.whole:
            # Spark divides integers as doubles.
            return None if isinstance(value, exp.Div) else max(left, right, key=lambda n: n.digits)
        a, b = _operand(value.this, left), _operand(value.expression, right)
        whole_digits = max(a.digits - a.fraction, b.digits - b.fraction)
        fraction = max(a.fraction, b.fraction)
        match value:
            case exp.Mul():
                return _adjusted(a.digits + b.digits + 1, a.fraction + b.fraction)
            case exp.Div():
                fraction = max(_LEAST_FRACTION, a.fraction + b.digits + 1)
                return _adjusted(a.digits - a.fraction + b.fraction + fraction, fraction)
            case exp.Mod():
                least = min(a.digits - a.fraction, b.digits - b.fraction)
                return _adjusted(least + fraction, fraction)
            case _:
                return _adjusted(whole_digits + fraction + 1, fraction)

    def _branches(self, value: Expression) -> ExactType | None:
        if isinstance(value, exp.Case):
            found = [each.args["true"] for each in value.args["ifs"]]
            found += [value.args["default"]] if value.args.get("default") is not None else []
        elif isinstance(value, exp.If):
            found = [each for each in (value.args.get("true"), value.args.get("false")) if each]
        elif isinstance(value, exp.Nullif):
            found = [value.this]
        else:
            found = [value.this, *value.expressions]
        kinds = [self._infer(each) for each in found if not isinstance(each.unnest(), exp.Null)]
        return _wider(kinds)

    def _gathered(self, value: Expression) -> ExactType | None:
        inner = value.this if isinstance(value, exp.Filter) else value
        if isinstance(inner, exp.Count | exp.CountIf):
            return LONG
        if not isinstance(inner, exp.Sum | exp.Min | exp.Max | exp.Avg):
            return None
        argument = inner.this
        if isinstance(argument, exp.Distinct):
            argument = argument.expressions[0]
        found = self._infer(argument)
        if found is None or isinstance(inner, exp.Min | exp.Max):
            return found
        return found.average if isinstance(inner, exp.Avg) else found.sum


@lru_cache(maxsize=1_000)
def number_type(name: str) -> ExactType | None:
    """The exact type for a Spark type; None if its values are not exact.

    >>> [str(number_type(t)) for t in ("BIGINT", "decimal(12,2)", "DECIMAL", "double", "string")]
    ['bigint', 'decimal(12,2)', 'decimal(10,0)', 'None', 'None']
    """
    try:
        return _exact_type(exp.DataType.build(name, dialect="spark"))
    except ParseError:  # A type that only Spark knows.
        return None


def _exact_type(kind: exp.DataType) -> ExactType | None:
    if kind.this in _WHOLE:
        return ExactType(_WHOLE[kind.this], whole=True)
    if kind.this is not exp.DType.DECIMAL:
        return None
    digits, fraction = [*(int(each.name) for each in kind.expressions), 0, 0][:2]
    return ExactType(digits or 10, fraction)


def _literal(value: exp.Literal) -> ExactType | None:
    """The type of a number as it is written: 0.05 is a DECIMAL(2, 2)."""
    text = value.name
    before, point, after = text.partition(".")
    if value.is_string or not (before + after).isdecimal():
        return None
    digits = max(len(before.lstrip("0") + after), len(after), 1)
    if not before.strip("0"):
        digits = max(len(after), 1)
    if point or int(before) >= 2**63:
        return ExactType(digits, len(after)) if digits <= MOST_DIGITS else None
    return INT if int(before) < 2**31 else LONG


def _operand(value: Expression, kind: ExactType) -> ExactType:
    """The decimal type that Spark gives an operand whose other operand is a decimal."""
    if not kind.whole:
        return kind
    value = value.unnest()
    literal = value.this if isinstance(value, exp.Neg) else value
    if isinstance(literal, exp.Literal):
        return ExactType(len(str(int(literal.name))))
    return ExactType(kind.digits)


def _adjusted(digits: int, fraction: int) -> ExactType:
    """The type of a result, with a shorter fraction if 38 digits are not enough.

    >>> str(_adjusted(37, 12)), str(_adjusted(49, 12)), str(_adjusted(39, 10))
    ('decimal(37,12)', 'decimal(38,6)', 'decimal(38,9)')
    """
    if digits <= MOST_DIGITS:
        return ExactType(digits, fraction)
    least = min(fraction, _LEAST_FRACTION)
    return ExactType(MOST_DIGITS, max(MOST_DIGITS - (digits - fraction), least))


def _wider(kinds: Iterable[ExactType | None]) -> ExactType | None:
    """The type that holds values of all of these types; None if that is in doubt."""
    found = list(kinds)
    exact = [kind for kind in found if kind is not None]
    if not exact or len(exact) < len(found):
        return None
    if all(kind.whole for kind in exact):
        return max(exact, key=lambda kind: kind.digits)
    fraction = max(kind.fraction for kind in exact)
    digits = max(kind.digits - kind.fraction for kind in exact) + fraction
    if len({(kind.digits, kind.fraction) for kind in exact}) == 1:
        return ExactType(exact[0].digits, exact[0].fraction)
    return ExactType(digits, fraction) if digits <= MOST_DIGITS else None
