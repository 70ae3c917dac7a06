"""How do several queries over one stream become one pass over its rows?

A query needs no pass of its own if it makes one row or none from each row: columns and a condition,
but no groups and no joins. Its computed columns are added to the rows of the shared pass, and its
condition becomes one more column, a flag. So several queries over one source share one pass. A
query over a temporary view uses the columns and the flag of the view:

    source        id, amount, kind
    view paid     +flag 1: amount > 0            column 1: amount * 2, where flag 1
    table large   +flag 2: flag 1 and …          id, column 1         table small   +flag 3: …

An unchanged column adds no new column, and the pass computes a view's expression only once. As in
Spark, an expression is computed only for the rows that reach it, so it can't fail for other rows.
The user's SQL text stays the same, except that the names of columns are replaced.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from springhouse.project.declarations.declaration import Query, Reference, SqlQuery

_INPUT = "__springhouse_input"
_UNDERSTOOD = {"expressions", "from_", "where"}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_OF_MANY_ROWS = (exp.AggFunc, exp.Window, exp.Query)
_TO_MANY_ROWS = (exp.UDTF, exp.Explode, exp.Inline, exp.Stack)
# These functions describe the file that a task reads. Rows in a flow no longer have a file.
_OF_FILES = ("input_file_name", "input_file_block_start", "input_file_block_length")
_GENERATORS = ("inline_outer", "json_tuple", "posexplode_outer", "variant_explode")


class NeedsOwnPass(Exception):
    """The reason why a query needs a pass of its own."""


@dataclass(frozen=True)
class SqlPiece:
    """A piece of SQL, and the spans in it that name columns, as (start, end, name)."""

    text: str
    names: tuple[tuple[int, int, str], ...] = ()

    def over(self, columns: Mapping[str, str]) -> str:
        """The SQL with other names for its columns."""
        pieces, at = [], 0
        for start, end, name in self.names:
            if name.lower() not in columns:
                raise NeedsOwnPass(f'it is not known where "{name}" comes from')
            pieces += [self.text[at:start], f"`{columns[name.lower()]}`"]
            at = end
        return "".join([*pieces, self.text[at:]])


@dataclass(frozen=True)
class Selection:
    """A query row by row: its columns as (name, SQL), None for `*`, and its condition."""

    reads: Reference
    columns: tuple[tuple[str, SqlPiece] | None, ...]
    condition: SqlPiece | None


@dataclass(frozen=True)
class QueryOutput:
    """The rows of one query in the pass: its columns as (name, column of the pass), and its flag.

    Without a flag the query has all rows.
    """

    columns: tuple[tuple[str, str], ...]
    flag: str | None = None

    @property
    def by_name(self) -> Mapping[str, str]:
        return {name.lower(): column for name, column in self.columns}


@dataclass
class OnePass:
    """Collects the columns to compute for all queries, level by level, beside the source's own."""

    source: Sequence[str]
    prefix: str = "__springhouse_column_"
    levels: list[dict[str, str]] = field(default_factory=list)
    _depth: dict[str, int] = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)

    def begin(self) -> QueryOutput:
        """The rows of the source."""
        return QueryOutput(tuple((name, name) for name in self.source))

    def select(self, lane: QueryOutput, selection: Selection) -> QueryOutput:
        """The rows of a query over the rows of a lane; raises `NeedsOwnPass` if it needs more."""
        names, flag = lane.by_name, lane.flag
        if selection.condition is not None:
            holds = f"coalesce(({selection.condition.over(names)}), false)"
            whole = holds if flag is None else f"CASE WHEN `{flag}` THEN {holds} ELSE false END"
            flag = self._column(whole, lane)
        reached = QueryOutput(lane.columns, flag)
        columns: list[tuple[str, str]] = []
        for output_column in selection.columns:
            if output_column is None:
                columns += lane.columns
            else:
                name, words = output_column
                columns.append((name, self.compute(reached, words)))
        _prove_distinct(columns)
        return QueryOutput(tuple(columns), flag)

    def compute(self, lane: QueryOutput, words: SqlPiece) -> str:
        """The name of the column that holds an expression over the rows of a lane."""
        names = lane.by_name
        if words.names and words.names[0][:2] == (0, len(words.text)):
            column = names.get(words.names[0][2].lower())
            if column is not None:
                return column
        text = f"({words.over(names)})"
        return self._column(
            text if lane.flag is None else f"CASE WHEN `{lane.flag}` THEN {text} END", lane
        )

    def _column(self, text: str, lane: QueryOutput) -> str:
        if text not in self._known:
            name = f"{self.prefix}{len(self._known)}"
            needs = [column for _, column in lane.columns]
            needs += [lane.flag] if lane.flag is not None else []
            depth = max((self._depth[need] + 1 for need in needs if need in self._depth), default=0)
            self._depth[name] = depth
            while len(self.levels) <= depth:
                self.levels.append({})
            self.levels[depth][name] = text
            self._known[text] = name
        return self._known[text]


def _prove_distinct(columns: Sequence[tuple[str, str]]) -> None:
    seen: set[str] = set()
    for name, _ in columns:
        if name.lower() in seen:
            raise NeedsOwnPass(f'it has two columns "{name}"')
        seen.add(name.lower())


def row_selection(query: Query) -> Selection:
    """The query as a selection per row; raises `NeedsOwnPass` with the reason if it does more."""
    if not isinstance(query, SqlQuery):
        raise NeedsOwnPass("it is a Python function")
    if len(query.references) != 1:
        raise NeedsOwnPass("it does not read one input alone")
    (reference,) = query.references
    alias = f" AS `{reference.name.rpartition('.')[2]}`" if reference.alias_needed else ""
    text = query.spliced(lambda each: f"`{_INPUT}`{alias}")
    tree = _parse(text)
    if not isinstance(tree, exp.Select):
        raise NeedsOwnPass("it is not one SELECT")
    for clause, value in tree.args.items():
        if value and clause not in _UNDERSTOOD:
            raise NeedsOwnPass(f"it has {clause.strip('_').replace('_', ' ').upper()}")
    prefixes = _prefixes(tree)
    _prove_by_row(tree)
    selected, condition = _clauses(text)
    if len(selected) != len(tree.expressions):
        raise NeedsOwnPass("its columns are not understood")
    columns = tuple(
        _output_columns(expression, text, tokens, prefixes)
        for expression, tokens in zip(tree.expressions, selected, strict=True)
    )
    where = tree.args.get("where")
    filter_piece = None if where is None else _piece(where.this, text, condition, prefixes)
    return Selection(reference, columns, filter_piece)


def condition(text: str) -> SqlPiece:
    """The condition of an expectation over the columns of a table."""
    whole = f"coalesce(({text}), false)"
    tree = _parse(whole)
    _prove_by_row(tree)
    return _piece(tree, whole, sqlglot.tokenize(whole, read="spark"), frozenset())


def _parse(text: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, read="spark")
    except SqlglotError as error:
        raise NeedsOwnPass("it is not understood") from error


def _prefixes(tree: exp.Select) -> frozenset[str]:
    """The names that may stand before a column: `o` in `o.amount FROM STREAM(orders) AS o`."""
    table = tree.args["from_"].this if tree.args.get("from_") else None
    if not isinstance(table, exp.Table):
        raise NeedsOwnPass("it does not read one input alone")
    if any(value for part, value in table.args.items() if part not in ("this", "alias")):
        raise NeedsOwnPass("it does more with its input than to read it")
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise NeedsOwnPass("it gives the columns of its input other names")
    return frozenset({(alias.name if alias is not None else table.name).lower()})


def _prove_by_row(tree: exp.Expr) -> None:
    for node in tree.walk():
        known = type(node).__name__.lower()
        name = node.name.lower() if isinstance(node, exp.Anonymous) else known
        if isinstance(node, _TO_MANY_ROWS) or name in _GENERATORS:
            raise NeedsOwnPass(f"{name} makes several rows of one")
        if node is not tree and isinstance(node, _OF_MANY_ROWS):
            raise NeedsOwnPass(f"{name} looks at more than one row")
        if name in _OF_FILES:
            raise NeedsOwnPass(f"{name} asks for the file of a row")


def _clauses(text: str) -> tuple[list[list[Token]], list[Token]]:
    """The tokens of each selected column, and the tokens of the condition."""
    parts: list[list[Token]] = [[]]
    other_tokens: list[Token] = []
    depth, clause = 0, ""
    for token in sqlglot.tokenize(text, read="spark"):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        outside = depth == 0 and token.token_type not in _CLOSING
        if outside and token.token_type in (TokenType.SELECT, TokenType.FROM, TokenType.WHERE):
            clause = token.token_type.name
        elif clause == "SELECT" and outside and token.token_type is TokenType.COMMA:
            parts.append([])
        elif clause == "SELECT":
            parts[-1].append(token)
        elif clause == "WHERE":
            other_tokens.append(token)
    return parts, other_tokens


def _output_columns(
    tree: exp.Expr, text: str, tokens: list[Token], prefixes: frozenset[str]
) -> tuple[str, SqlPiece] | None:
    if tree.is_star:
        star = tree.this if isinstance(tree, exp.Column) else tree
        table = tree.table.lower() if isinstance(tree, exp.Column) else ""
        if any(star.args.values()) or (table and table not in prefixes):
            raise NeedsOwnPass("it chooses among the columns of *")
        return None
    if isinstance(tree, exp.Alias):
        if not isinstance(tree.args.get("alias"), exp.Identifier):
            raise NeedsOwnPass("it gives one column several names")
        expression_tokens = tokens[:-2] if tokens[-2].token_type is TokenType.ALIAS else tokens[:-1]
        return tree.alias, _piece(tree.this, text, expression_tokens, prefixes)
    if isinstance(tree, exp.Column):
        return tree.name, _piece(tree, text, tokens, prefixes)
    raise NeedsOwnPass("it has a column without a name")


def _piece(tree: exp.Expr, text: str, tokens: list[Token], prefixes: frozenset[str]) -> SqlPiece:
    first, last = tokens[0].start, tokens[-1].end + 1
    spans = [_span(column, prefixes) for column in tree.find_all(exp.Column)]
    names = tuple((start - first, end - first, name) for start, end, name in sorted(spans))
    return SqlPiece(text[first:last], names)


def _span(column: exp.Column, prefixes: frozenset[str]) -> tuple[int, int, str]:
    """The span of a column's name in the text, and the name, without the fields of a struct."""
    parts = list(_identifiers(column))
    if len(parts) > 1 and parts[0].name.lower() in prefixes:
        first, named = parts[0], parts[1]
    else:
        first = named = parts[0]
    if "start" not in first.meta or "end" not in named.meta:
        raise NeedsOwnPass("its columns are not understood")
    return int(first.meta["start"]), int(named.meta["end"]) + 1, named.name


def _identifiers(column: exp.Column) -> Iterator[exp.Identifier]:
    for part in ("catalog", "db", "table", "this"):
        result = column.args.get(part)
        if result is not None:
            if not isinstance(result, exp.Identifier):
                raise NeedsOwnPass("its columns are not understood")
            yield result
