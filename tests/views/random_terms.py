"""Which values can a query compute from a row, and from a group of rows?

A term is a column or an expression in Spark SQL. Its properties limit its use, so that no query
depends on luck:

    exact   its value does not depend on the order of additions: rows may be sorted by it
    small   it may be multiplied or squared without overflow or cancellation
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from random_tables import FULL_TYPES, VALUES, literal, make_value

_NUMBERS = frozenset({"int", "bigint", "decimal", "double"})
_KEYS = frozenset({"int", "bigint", "decimal", "string", "date", "boolean"})


@dataclass(frozen=True)
class Term:
    """A column or expression, and its permitted uses."""

    sql: str
    type: str
    exact: bool = True
    small: bool = True

    @property
    def is_key(self) -> bool:
        """Whether rows may be grouped, joined and compared by it."""
        return self.exact and self.type in _KEYS

    @property
    def is_sortable(self) -> bool:
        return self.exact and self.type in _KEYS | {"double"}


def comparable(left: Term, right: Term) -> bool:
    types = {left.type, right.type}
    # Not a bigint with a decimal: DuckDB sums integers to HUGEINT, and no decimal matches that.
    alike = len(types) == 1 or types in ({"int", "bigint"}, {"int", "decimal"})
    return left.is_key and right.is_key and alike


def bare(term: Term) -> Term:
    return replace(term, sql=term.sql.rpartition(".")[2])


# In a template, {0} is the term, {1} another of its type, {n} a literal of its type, {i} a small
# integer, and {p} a condition. An empty type means that the result has the term's type.
_ANY = (("({p})", "boolean"), ("({0} IS NULL)", "boolean"), ("CASE WHEN {p} THEN {0} END", ""))
_CHOICES = (
    ("coalesce({0}, {n})", ""),
    ("coalesce({0}, {1})", ""),
    ("nullif({0}, {n})", ""),
    ("CASE WHEN {p} THEN {0} ELSE {n} END", ""),
    ("if({p}, {0}, {1})", ""),
)
_ARITHMETIC = (
    ("({0} + {n})", ""),
    ("({0} - {1})", ""),
    ("({0} * 2)", ""),
    ("(0 - {0})", ""),
    ("abs({0})", ""),
    ("greatest({0}, {1})", ""),
    ("least({0}, {n})", ""),
)
_TEMPLATES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "int": (
        *(*_CHOICES, *_ARITHMETIC),
        ("({0} % 2)", ""),
        ("({0} * {1})", ""),
        ("CAST({0} AS BIGINT)", "bigint"),
        ("CAST({0} AS DECIMAL(12,2))", "decimal"),
        ("CAST({0} AS DOUBLE)", "double"),
        ("CAST({0} AS STRING)", "string"),
        ("CASE {0} WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END", "string"),
    ),
    "bigint": (*_CHOICES, *_ARITHMETIC, ("({0} % 3)", ""), ("({0} * {i})", "")),
    "decimal": (*_CHOICES, *_ARITHMETIC, ("({0} + {i})", ""), ("({0} * {i})", "")),
    "double": (*_CHOICES[:2], *_CHOICES[3:], *_ARITHMETIC, ("({0} * {i})", "")),
    "string": (
        *_CHOICES,
        ("({0} || 'x')", ""),
        ("concat({0}, {1})", ""),
        ("upper({0})", ""),
        ("substring({0}, 1, 1)", ""),
        ("length({0})", "int"),
    ),
    "date": (
        *_CHOICES,
        # The cast is needed, because DuckDB returns a timestamp.
        ("CAST(date_add({0}, 2) AS DATE)", ""),
        ("datediff({0}, DATE '2024-01-04')", "int"),
        ("day({0})", "int"),
        ("CAST({0} AS STRING)", "string"),
    ),
    "boolean": (
        *_CHOICES,
        ("(NOT {0})", ""),
        ("({0} AND {1})", ""),
        ("({0} OR {p})", ""),
        ("CAST({0} AS INT)", "int"),
        ("CASE WHEN {0} THEN 'yes' ELSE 'no' END", "string"),
    ),
}
_CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "number": (
        *("{0} = {n}", "{0} <> {n}", "{0} <> {m}", "{0} <= {high}", "{0} >= {low}"),
        *("{0} <= {1}", "{0} <> {1}", "{0} BETWEEN {low} AND {high}", "{0} IN ({n}, {m}, {low})"),
        *("{0} NOT IN ({n}, {m})", "{0} IN ({n}, {m}, NULL)", "{0} <=> {1}", "{0} = {1}"),
    ),
    "large": ("{0} >= {n}", "{0} > {low}", "{0} <> {n}", "{0} <= {1}", "NOT ({0} <=> {1})"),
    "double": ("{0} <= {high}", "{0} > {low}", "{0} <= {1}", "{0} BETWEEN {low} AND {high}"),
    "string": (
        *("{0} LIKE 'a%'", "{0} LIKE '%b%'", "{0} LIKE '_'", "{0} NOT LIKE '%a'", "{0} = {n}"),
        *("{0} <> {n}", "{0} <= {high}", "{0} >= {low}", "{0} IN ({n}, {m}, 'a', 'b')"),
        *("{0} = {1}", "NOT ({0} <=> {n})"),
    ),
    "boolean": ("{0}", "NOT {0}", "{0} = {1}", "{0} <=> {n}", "{0} IS NOT TRUE"),
}


class TermWriter:
    """Writes conditions, expressions and aggregates over given terms."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice

    # --- luck

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def some(self, terms: Sequence[Term], low: int, high: int) -> list[Term]:
        """Between `low` and `high` different terms, if enough exist."""
        terms = list(terms)
        most = min(high, len(terms))
        return self.dice.sample(terms, self.dice.randint(min(low, most), most))

    def shuffled(self, terms: Sequence[Term]) -> list[Term]:
        return self.dice.sample(list(terms), len(terms))

    def value(self, type_: str) -> str:
        return literal(self.dice.choice(VALUES[type_]), type_)

    def value_or_null(self, type_: str, null_share: float = 0.2) -> str:
        return literal(make_value(self.dice, type_, null_share), FULL_TYPES[type_])

    # --- expressions

    def condition(self, terms: Sequence[Term], simple: bool = False) -> str:
        """A condition that is true, false or unknown for a row."""
        if not simple and self.chance(0.3):
            one, other = self.condition(terms, simple=True), self.condition(terms, simple=True)
            # Most conditions let most rows pass; otherwise deep queries would return none.
            forms = ("({} OR {})", "({} OR {})", "({} AND {})", "NOT ({} AND {})")
            return self.dice.choice(forms).format(one, other)
        usable = [term for term in terms if term.is_sortable]
        if not usable or self.chance(0.12):
            return f"{self.dice.choice(terms).sql} IS {self.dice.choice(('', 'NOT ', 'NOT '))}NULL"
        term = self.dice.choice(usable)
        if not simple and self.chance(0.25):
            term = self.expression([term])
        group = term.type if term.type in _CONDITIONS else "number" if term.small else "large"
        return self.filled(self.dice.choice(_CONDITIONS[group]), term, usable)

    def filled(self, template: str, term: Term, terms: Sequence[Term]) -> str:
        values = sorted(VALUES[term.type])
        half = len(values) // 2
        peers = [each for each in terms if each.type == term.type and each != term]
        small = [each.sql for each in terms if each.type == "int" and each.small]
        return template.format(
            term.sql,
            self.dice.choice(peers).sql if peers else self.value(term.type),
            n=self.value(term.type),
            m=self.value(term.type),
            i=self.dice.choice([*small, "2", "3"]),
            low=literal(self.dice.choice(values[:half]), term.type),
            high=literal(self.dice.choice(values[half:]), term.type),
            p=self.condition(terms, simple=True) if "{p}" in template else "",
        )

    def expression(self, terms: Sequence[Term], plain: float = 0.0) -> Term:
        """A term computed from those, or, with this chance, a plain one of them."""
        term = self.dice.choice(terms)
        if not term.is_sortable or self.chance(plain):
            return term
        usable = [each for each in terms if each.is_sortable]
        template, type_ = self.dice.choice((*_TEMPLATES[term.type], *_ANY))
        multiplies = "* {" in template
        if multiplies and not all(each.small for each in usable):
            return term
        small = all(each.small for each in usable) and not multiplies
        return Term(self.filled(template, term, usable), type_ or term.type, small=small)

    def outputs(self, terms: Sequence[Term], low: int = 1, high: int = 5) -> list[Term]:
        return [
            self.expression([term, *terms]) if self.chance(0.12) else term
            for term in self.some(terms, low, high)
        ]

    # --- aggregates

    def aggregate(self, terms: Sequence[Term], exact: bool = False, plain: bool = False) -> Term:
        """An aggregate that small state can maintain; `exact` ones may be compared."""
        kinds = [self.counted, self.summed, self.extreme, self.extreme, self.summed]
        if not exact:
            kinds += [self.averaged, self.averaged, self.spread]
        if not plain:
            kinds += [self.all_or_any, self.of_distinct]
        made = self.dice.choice(kinds)(terms)
        if exact and not made.is_sortable:
            return Term("count(*)", "bigint", small=False)
        return self.filtered(made, terms) if not plain and self.chance(0.15) else made

    def filtered(self, made: Term, terms: Sequence[Term]) -> Term:
        return replace(made, sql=f"{made.sql} FILTER (WHERE {self.condition(terms, simple=True)})")

    def number(self, terms: Sequence[Term], types: frozenset[str] = _NUMBERS) -> Term:
        """A number to add up."""
        numbers = [term for term in terms if term.type in types]
        if not numbers:
            return Term(f"if({self.condition(terms, simple=True)}, 1, 2)", "int")
        made = self.expression(numbers, plain=0.7)
        return made if made.type in types else numbers[0]

    def counted(self, terms: Sequence[Term]) -> Term:
        what = self.dice.choice(("*", "*", self.expression(terms, plain=0.8).sql))
        return Term(f"count({what})", "bigint", small=False)

    def summed(self, terms: Sequence[Term]) -> Term:
        number = self.number(terms)
        type_ = "bigint" if number.type == "int" else number.type
        return Term(f"sum({number.sql})", type_, number.exact, small=False)

    def averaged(self, terms: Sequence[Term]) -> Term:
        return Term(f"avg({self.number(terms).sql})", "double", exact=False, small=False)

    def spread(self, terms: Sequence[Term]) -> Term:
        numbers = [term for term in terms if term.type in _NUMBERS and term.exact and term.small]
        if not numbers:
            return self.averaged(terms)
        function = self.dice.choice(("stddev_samp", "var_pop"))
        sql = f"{function}({self.dice.choice(numbers).sql})"
        return Term(sql, "double", exact=False, small=False)

    def extreme(self, terms: Sequence[Term]) -> Term:
        usable = [term for term in terms if term.type != "array"]
        if not usable:
            return self.counted(terms)
        term = self.expression(usable, plain=0.85)
        return replace(term, sql=f"{self.dice.choice(('min', 'max'))}({term.sql})")

    def all_or_any(self, terms: Sequence[Term]) -> Term:
        function = self.dice.choice(("bool_and", "bool_or"))
        return Term(f"{function}({self.condition(terms, simple=True)})", "boolean")

    def of_distinct(self, terms: Sequence[Term]) -> Term:
        keys = [term for term in terms if term.is_key]
        if keys and self.chance(0.6):
            columns = ", ".join(
                term.sql for term in self.some(keys, 1, self.dice.choice((1, 1, 2)))
            )
            return Term(f"count(DISTINCT {columns})", "bigint", small=False)
        number = self.number(terms, _NUMBERS - {"double"})
        type_ = "decimal" if number.type == "decimal" else "bigint"
        return Term(f"sum(DISTINCT {number.sql})", type_, small=False)

    def recompute(self, terms: Sequence[Term], grouped: bool) -> Term:
        """An aggregate that only a look at the whole group can maintain."""
        numbers = [
            term for term in terms if term.exact and term.type in ("int", "bigint", "double")
        ]
        strings = [term for term in terms if term.exact and term.type == "string"]
        # A group has a row, and coalesce a value: a list of nothing is NULL in DuckDB.
        if grouped and strings and self.chance(0.3):
            values = f"collect_list(coalesce({self.dice.choice(strings).sql}, '?'))"
            return Term(f"array_join(sort_array({values}), ',')", "string")
        whole = [term for term in numbers if term.type == "int"]
        if grouped and whole and self.chance(0.5):
            values = f"collect_list(coalesce({self.dice.choice(whole).sql}, 0))"
            return Term(f"sort_array({values})", "array")
        number = self.dice.choice(numbers).sql if numbers else self.number(terms, frozenset()).sql
        return Term(f"median({number})", "double", exact=False, small=False)
