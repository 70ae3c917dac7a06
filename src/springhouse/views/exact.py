"""Which values add up exactly, in whatever order?

Integers and decimals do: a sum of them can be kept up to date by adding and subtracting for ever.
Floating-point numbers do not, so a sum of them is computed anew for each group that a change
touches. When in doubt, a value is not exact: that costs time, never digits.
"""

from collections.abc import Mapping

from sqlglot import exp

from springhouse.views.algebra import Aggregate, Constant, Node, Project, Scan, walk
from springhouse.views.expressions import Expression

_EXACT_TYPES = ("tinyint", "smallint", "int", "integer", "bigint", "long", "decimal", "numeric")
_WHOLE_TYPES = tuple(name for name in _EXACT_TYPES if name not in ("decimal", "numeric"))


class Kinds:
    """Of every column of a query: `decimal`, `whole` (an integer), or nothing known."""

    def __init__(self, root: Node, inputs: Mapping[str, Mapping[str, str]]) -> None:
        self._kinds: dict[str, str] = {}
        for node in walk(root):
            match node:
                case Scan():
                    schema = inputs[node.input]
                    for name, source in zip(node.columns, node.sources, strict=True):
                        self._set(name, _kind_of_type(schema[source]))
                case Constant():
                    for place, name in enumerate(node.columns):
                        for row in node.rows:
                            self._set(name, self.kind(row[place]))
                case Project():
                    for name, value in node.outputs:
                        self._set(name, self.kind(value))
                case Aggregate():
                    for name, value in node.measures:
                        self._set(name, self._gathered(value))
                case _:
                    pass

    def _set(self, name: str, kind: str) -> None:
        # The children of a UNION ALL share their names: the column is what all of them are.
        known = self._kinds.get(name, kind)
        both = {known, kind}
        self._kinds[name] = kind if known == kind else "decimal" if "" not in both else ""

    def is_exact(self, value: Expression) -> bool:
        """Whether sums of this value are exact."""
        return self.kind(value) != ""

    def kind(self, value: Expression) -> str:
        """`whole`, `decimal`, or "" for anything else."""
        value = value.unnest()
        match value:
            case exp.Column():
                return self._kinds.get(value.name, "")
            case exp.Literal():
                if value.is_string or "e" in value.name.lower():
                    return ""
                return "decimal" if "." in value.name else "whole"
            case exp.Neg():
                return self.kind(value.this)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
                return self._both(value.this, value.expression)
            case exp.Div():
                # Spark divides integers as doubles, and decimals as decimals.
                both = self._both(value.this, value.expression)
                return "decimal" if both == "decimal" else ""
            case exp.Cast():
                return _kind_of_type(value.to.sql(dialect="spark"))
            case exp.Case() | exp.If() | exp.Coalesce() | exp.Nullif():
                return self._branches(value)
            case exp.Abs():
                return self.kind(value.this)
            case exp.Extract() | exp.Year() | exp.Month() | exp.Length():
                return "whole"
            case _:
                return ""

    def _both(self, left: Expression, right: Expression) -> str:
        kinds = {self.kind(left), self.kind(right)}
        return "" if "" in kinds else "decimal" if "decimal" in kinds else "whole"

    def _branches(self, value: Expression) -> str:
        if isinstance(value, exp.Case):
            found = [each.args["true"] for each in value.args["ifs"]]
            found += [value.args["default"]] if value.args.get("default") is not None else []
        elif isinstance(value, exp.If):
            found = [each for each in (value.args.get("true"), value.args.get("false")) if each]
        elif isinstance(value, exp.Nullif):
            found = [value.this]
        else:
            found = [value.this, *value.expressions]
        kinds = {self.kind(each) for each in found if not isinstance(each.unnest(), exp.Null)}
        return "" if "" in kinds or not kinds else "decimal" if "decimal" in kinds else "whole"

    def _gathered(self, value: Expression) -> str:
        inner = value.this if isinstance(value, exp.Filter) else value
        if isinstance(inner, exp.Count | exp.CountIf):
            return "whole"
        if isinstance(inner, exp.Sum | exp.Min | exp.Max):
            return self.kind(inner.this)
        if isinstance(inner, exp.Avg):
            return "decimal" if self.kind(inner.this) == "decimal" else ""
        return ""


def _kind_of_type(name: str) -> str:
    """What kind of number a type of Spark holds.

    >>> [_kind_of_type(t) for t in ("BIGINT", "decimal(12,2)", "double", "string")]
    ['whole', 'decimal', '', '']
    """
    word = name.lower().partition("(")[0].strip()
    if word in _WHOLE_TYPES:
        return "whole"
    return "decimal" if word in _EXACT_TYPES else ""
