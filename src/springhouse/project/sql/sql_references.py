"""Which spans of a query name its inputs?

sqlglot parses the query and says which names are tables and which are only common table
expressions, aliases or functions; positions of tokens say where they stand. sqlglot knows neither
STREAM nor a few other words of Spark's, so it gets a copy in which each of those is replaced by
something that it does know and that is exactly as long. Therefore every position in the copy is a
position in the user's text:

    SELECT * FROM STREAM(orders) o JOIN customers c
    SELECT * FROM _flow_         o JOIN customers c

Invariants: references are in order; `text[start:end]` is the whole of `STREAM(orders)`, `db.orders`
or `range(10)`, without the alias; two of them overlap only when a function, which nobody replaces,
is given a table: `f(TABLE(orders))`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from springhouse.errors import DeclarationError
from springhouse.project.declarations.declaration import ReadMode, Reference, SourceCall
from springhouse.project.declarations.names import Names
from springhouse.project.sql.sql_tokens import (
    SqlText,
    Token,
    TokenKind,
    check_parentheses,
    closing,
    split_commas,
    string_value,
    tokenize,
)

_PLACEHOLDER = "_flow_"  # As long as STREAM, so that it always fits.

# The formats whose files can be read by path: FROM parquet.`data/orders`.
_FILE_FORMATS = frozenset({"avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml"})

# Functions of one row's values: what they return changes only when the row does.
_GENERATORS = frozenset(
    {"explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"}
    | {"json_tuple", "stack", "unnest", "variant_explode", "variant_explode_outer"}
)

_ENDS_FROM = (
    *("CLUSTER", "DISTRIBUTE", "EXCEPT", "GROUP", "HAVING", "INTERSECT", "LIMIT", "MINUS"),
    *("OFFSET", "ORDER", "QUALIFY", "SELECT", "SORT", "UNION", "WHERE", "WINDOW"),
)
# Words that may follow a table's name, so that `FROM stream WHERE` reads a table named stream.
_AFTER_A_NAME = (
    *_ENDS_FROM,
    *("ANTI", "AS", "CROSS", "FULL", "INNER", "JOIN", "LATERAL", "LEFT", "NATURAL", "ON"),
    *("PIVOT", "RIGHT", "SEMI", "TABLESAMPLE", "UNPIVOT", "USING", "WATERMARK"),
)
_STARTS_A_QUERY = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


@dataclass(frozen=True)
class ReferencedQuery:
    """A query as sqlglot sees it, and its references by the position where each begins."""

    tree: exp.Expr
    references: dict[int, Reference]

    def reference(self, table: exp.Table) -> Reference | None:
        """The reference that a node of the tree stands for."""
        # A hint is parsed as a text of its own, so positions in it mean nothing here.
        return None if table.find_ancestor(exp.Hint) else self.references.get(_start(table))


def find_references(sql: SqlText, names: Names) -> tuple[Reference, ...]:
    """The spans of a query that name its inputs, in order."""
    references = parse_query(sql, names).references
    return tuple(references[start] for start in sorted(references))


def parse_query(sql: SqlText, names: Names) -> ReferencedQuery:
    """A query's tree and references, or the error that keeps it from being one."""
    tokens, unclosed = tokenize(sql)
    if unclosed is not None:
        raise unclosed
    check_parentheses(sql, tokens)
    first = next((token for token in tokens if not token.is_symbol("(")), None)
    if first is None or not first.is_word(*_STARTS_A_QUERY):
        start = tokens[0].start if tokens else 0
        raise sql.error(f"expected a query here, found {_shown(first)}", start)
    _refuse_options(sql, tokens)

    streams = {tokens[at].start: read_stream(sql, tokens, at, names) for at in _streams(tokens)}
    tree = _parse(sql, _copy_for_sqlglot(sql.text, tokens, [s for s, _ in streams.values()]))
    at_start = {token.start: at for at, token in enumerate(tokens)}
    references = {}
    for table in tree.find_all(exp.Table):
        start = _start(table)
        if table.find_ancestor(exp.Hint) or _is_cte(table):
            continue
        if start not in at_start:
            # Better refused than forgotten: a view would never learn that this input moved.
            raise sql.error(f'it is not clear where this query names "{table.name}"', 0)
        if start in streams:
            found: Reference | None = streams[start][0]
        else:
            found = _read_table(sql, tokens, at_start[start], table, names)
        if found is not None:
            references[start] = _with_alias(sql, tokens, at_start[start], table, found)
    return ReferencedQuery(tree, references)


def check_expression(sql: SqlText, tokens: Sequence[Token]) -> None:
    """Raise an error unless `tokens` are one expression, such as a condition."""
    start, end = tokens[0].start, tokens[-1].end
    # SELECT stands just before the expression; blanks keep the lines that sqlglot counts right.
    blank = "".join(c if c == "\n" else " " for c in sql.text[:start])
    tree = _parse(sql, f"{blank}SELECT {sql.text[start:end]}")
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or tree.args.get("from_"):
        raise sql.error("expected one expression here", start)


def _refuse_options(sql: SqlText, tokens: Sequence[Token]) -> None:
    """Raise an error for options of a table that is read: `FROM orders WITH ('a' = 'b')`."""
    for token, follower in pairwise(tokens):
        if token.is_word("WITH") and follower.is_symbol("("):
            hint = "Leave it out: Springhouse itself decides which rows of a table are read."
            raise sql.error("a table of a project is read without options", token.start, hint)


# Streams


def _streams(tokens: Sequence[Token]) -> Iterator[int]:
    """The indexes of STREAM where it stands before a relation, not where it is a mere name."""
    in_from = [False]  # One for each parenthesis that is open.
    relation_next = False
    for at, token in enumerate(tokens):
        if token.is_symbol("("):
            in_from.append(relation_next)
        elif token.is_symbol(")"):
            in_from.pop()
            relation_next = False
        elif token.is_symbol(","):
            relation_next = in_from[-1]
        elif token.is_word("FROM", "JOIN"):
            in_from[-1] = relation_next = True
        else:
            if token.is_word(*_ENDS_FROM):
                in_from[-1] = False
            if relation_next and token.is_word("STREAM") and _goes_on(tokens, at + 1):
                yield at
            relation_next = False


def _goes_on(tokens: Sequence[Token], at: int) -> bool:
    if at >= len(tokens):
        return False
    follower = tokens[at]
    return follower.is_symbol("(") or (follower.is_name and not follower.is_word(*_AFTER_A_NAME))


def read_stream(
    sql: SqlText, tokens: Sequence[Token], at: int, names: Names
) -> tuple[Reference, int]:
    """The reference that begins with the STREAM at index `at`, and the index just after it."""
    inside = tokens[at + 1].is_symbol("(")
    first = at + 2 if inside else at + 1
    after = _relation_end(sql, tokens, first, "STREAM")
    reference = _read_relation(sql, tokens[first:after], names, streaming=True)
    if inside:
        if after >= len(tokens) or not tokens[after].is_symbol(")"):
            raise sql.error(
                "STREAM takes the name of a table or a source",
                tokens[at].start,
                hint="Write STREAM(orders), or STREAM read_files('data/orders').",
            )
        after += 1
    return replace(reference, start=tokens[at].start, end=tokens[after - 1].end), after


def _relation_end(sql: SqlText, tokens: Sequence[Token], first: int, what: str) -> int:
    """The index just after the dotted name, and its arguments if it has any, at index `first`."""
    at = first
    while at < len(tokens) and tokens[at].is_name:
        at += 1
        if at < len(tokens) and tokens[at].is_symbol("."):
            at += 1
            continue
        if at < len(tokens) and tokens[at].is_symbol("("):
            close = closing(tokens, at)
            assert close is not None, "parentheses were checked before"
            return close + 1
        return at
    near = tokens[min(at, len(tokens) - 1)]
    raise sql.error(f"expected a name after {what}, found {_shown(near)}", near.start)


# What sqlglot gets to see


def _copy_for_sqlglot(text: str, tokens: Sequence[Token], streams: Sequence[Reference]) -> str:
    copy = list(text)

    def put(start: int, end: int, new: str) -> None:
        for offset in range(start, end):
            if copy[offset] != "\n":  # Lines must stay what they are, for errors.
                copy[offset] = " "
        copy[start : start + len(new)] = new

    for stream in streams:
        put(stream.start, stream.end, _PLACEHOLDER)
    for at, token in enumerate(tokens):
        if token.is_word("TABLE") and _starts_query(tokens, at):
            put(token.start, token.end, "FROM ")
        elif token.is_word("TABLE") and _is_table_argument(tokens, at):
            put(token.start, tokens[at + 1].end, "(" + " " * (token.end - token.start))
            if not tokens[at + 2].is_word(*_STARTS_A_QUERY):
                put(token.start, tokens[at + 1].end, "(FROM ")
        elif token.is_word("WATERMARK"):
            end = _watermark_end(tokens, at)
            if end is not None:
                put(token.start, tokens[end].end, "")
    return "".join(copy)


def _starts_query(tokens: Sequence[Token], at: int) -> bool:
    """Whether `TABLE orders` at index `at` is a query of its own."""
    if at + 1 >= len(tokens) or not tokens[at + 1].is_name:
        return False
    before = tokens[at - 1] if at else None
    return before is None or (
        before.is_symbol("(")
        or before.is_word("UNION", "EXCEPT", "INTERSECT", "MINUS", "ALL", "DISTINCT")
    )


def _is_table_argument(tokens: Sequence[Token], at: int) -> bool:
    """Whether `TABLE(orders)` at index `at` is an argument of a function."""
    return (
        at > 0
        and tokens[at - 1].is_symbol("(", ",", "=>")
        and at + 2 < len(tokens)
        and tokens[at + 1].is_symbol("(")
        and tokens[at + 1].start == tokens[at].end
        and tokens[at + 2].is_name
    )


def _watermark_end(tokens: Sequence[Token], at: int) -> int | None:
    """The index of the last token of `WATERMARK ts DELAY OF INTERVAL 1 MINUTE`."""
    for end in range(at + 1, len(tokens) - 3):
        if tokens[end].is_word("DELAY") and tokens[end + 1].is_word("OF"):
            has_keyword = tokens[end + 2].is_word("INTERVAL")
            return min(end + (4 if has_keyword else 3), len(tokens) - 1)
    return None


def _parse(sql: SqlText, copy: str) -> exp.Expr:
    try:
        tree = sqlglot.parse_one(copy, dialect="spark")
    except SqlglotError as error:
        raise _parse_error(sql, error) from None
    if not isinstance(tree, exp.Query | exp.Values):
        raise sql.error("expected a query here", 0)
    return tree


def _parse_error(sql: SqlText, error: SqlglotError) -> DeclarationError:
    details = getattr(error, "errors", None)
    if not details:
        return sql.error("this SQL does not parse", 0)
    what, line, near = (details[0][key] for key in ("description", "line", "highlight"))
    what = what.split(" but got ")[0].split(" / ")[0].rstrip(".")
    if what == "Invalid expression":
        what = "unexpected word or sign"
    elif "missing for <class" in what:
        what = "something is missing"
    place = sql.place(0)
    return DeclarationError(
        f'this SQL does not parse: {what[:1].lower()}{what[1:]} near "{near}"',
        where=f"{place.file}:{place.line + line - 1}",
    )


# What sqlglot found


def _start(table: exp.Table) -> int:
    first = table.parts[0] if table.parts else table.this
    start = first.meta.get("start", -1)
    assert isinstance(start, int)
    return start


def _is_cte(table: exp.Table) -> bool:
    """Whether a table's name is that of a common table expression which it can see."""
    if table.args.get("db") or not isinstance(table.this, exp.Identifier):
        return False
    name = table.name.lower()
    child: exp.Expr = table
    while (node := child.parent) is not None:
        if isinstance(node, exp.With):
            # An expression sees those before it; itself only when they are recursive.
            at = next(i for i, each in enumerate(node.expressions) if each is child)
            visible = node.expressions[: at + 1 if node.args.get("recursive") else at]
        else:
            own = node.args.get("with_")
            visible = own.expressions if own is not None and own is not child else []
        if any(each.alias.lower() == name for each in visible):
            return True
        child = node
    return False


def _read_table(
    sql: SqlText, tokens: Sequence[Token], at: int, table: exp.Table, names: Names
) -> Reference | None:
    after = _relation_end(sql, tokens, at, "FROM")
    relation = tokens[at:after]
    if relation[-1].is_symbol(")") and relation[0].text.lower() in _GENERATORS:
        return None
    if table.args.get("version") is not None:
        raise sql.error(
            f'"{sql.slice(relation)}" is read as of a fixed version',
            relation[0].start,
            hint="Leave it out: Springhouse chooses one version of every input for each refresh.",
        )
    return _read_relation(sql, relation, names, streaming=False)


def _read_relation(
    sql: SqlText, relation: Sequence[Token], names: Names, *, streaming: bool
) -> Reference:
    """What `orders`, delta.`path` or `read_files('path')` names, read as a stream or not."""
    start, end = relation[0].start, relation[-1].end
    place = sql.place(start)
    reading = ReadMode.STREAM if streaming else ReadMode.TABLE
    if relation[0].is_word("IDENTIFIER") and relation[-1].is_symbol(")"):
        return Reference(start, end, reading, read_identifier(sql, relation, names), place)
    if relation[-1].is_symbol(")"):
        call = _read_call(sql, relation)
        if streaming:
            return Reference(start, end, ReadMode.SOURCE, call.plugin, place, source=call)
        if call.plugin == "read_delta" and call.arguments:
            path = call.arguments[0]
            return Reference(start, end, ReadMode.DELTA, path, place, source=call)
        return Reference(start, end, ReadMode.OTHER, call.plugin, place, source=call)
    parts = [token.name for token in relation if not token.is_symbol(".")]
    by_path = len(parts) == 2 and relation[-1].kind is TokenKind.QUOTED
    if by_path and parts[0].lower() == "delta":
        delta = ReadMode.DELTA_STREAM if streaming else ReadMode.DELTA
        return Reference(start, end, delta, parts[1], place)
    if by_path and parts[0].lower() in _FILE_FORMATS:
        if streaming:
            raise sql.error(
                f"{sql.slice(relation)} can't be read as a stream",
                start,
                hint=f"Write STREAM read_files('{parts[1]}', format => '{parts[0].lower()}').",
            )
        return Reference(start, end, ReadMode.OTHER, parts[1], place)
    return Reference(start, end, reading, names.normal(parts), place)


def read_identifier(sql: SqlText, tokens: Sequence[Token], names: Names) -> str:
    """The name in `IDENTIFIER('shop.orders')`, which must be a plain text."""
    name = string_value(tokens[2:-1])
    if name is None:
        raise sql.error(
            "this IDENTIFIER(…) is known only when the query runs",
            tokens[0].start,
            hint="Write the table's name, so that Springhouse knows what to wait for.",
        )
    return names.parse(name)


def _read_call(sql: SqlText, relation: Sequence[Token]) -> SourceCall:
    """`read_files('data', format => 'json')` as data."""
    opening = next(at for at, token in enumerate(relation) if token.is_symbol("("))
    plugin = ".".join(t.name.lower() for t in relation[:opening] if not t.is_symbol("."))
    arguments: list[str] = []
    options: dict[str, str] = {}
    for element in split_commas(relation[opening + 1 : -1]):
        named = len(element) > 2 and element[1].is_symbol("=>")
        value = element[2:] if named else element
        plain = string_value(value)
        text = sql.slice(value) if plain is None else plain
        if named:
            name = element[0].name
            if name.lower() in (other.lower() for other in options):
                raise sql.error(f'the option "{name}" is given twice', element[0].start)
            options[name] = text
        else:
            arguments.append(text)
    return SourceCall(plugin, tuple(arguments), options, sql.place(relation[0].start))


def _with_alias(
    sql: SqlText, tokens: Sequence[Token], at: int, table: exp.Table, found: Reference
) -> Reference:
    """`found`, saying whether the text gives it an alias."""
    before = at - 2 if at > 1 and tokens[at - 1].is_symbol("(") else at - 1
    # After TABLE, in `TABLE orders` and in f(TABLE(orders)), Spark takes a name and no alias.
    if table.alias or (before >= 0 and tokens[before].is_word("TABLE")):
        return found
    follower = next((token for token in tokens[at:] if token.start >= found.end), None)
    if follower is not None and follower.is_word("TABLESAMPLE", "WATERMARK"):
        raise sql.error(
            f'"{sql.text[found.start : found.end]}" has {follower.text.upper()} but no alias',
            found.start,
            hint=f"Give it one, after the {follower.text.upper()} clause: AS {found.name}.",
        )
    return replace(found, alias_needed=True)


def _shown(token: Token | None) -> str:
    return "nothing" if token is None else f'"{token.text}"'
