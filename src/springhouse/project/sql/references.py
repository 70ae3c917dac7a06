"""Which spans of a query name its inputs?

Our dialect's parser says which names are tables and which are only common table expressions,
aliases or functions, and where each relation stands in the text. This module says what each
relation is: a table of the project, a stream, a source with options, a Delta table, or something
that only Spark knows.

Invariants: references are in order; `text[start:end]` is the whole of `STREAM(orders)`, `db.orders`
or `range(10)`, without the alias; two of them overlap only when a function, which nobody replaces,
gets a table as an argument: `f(TABLE(orders))`.
"""

from dataclasses import dataclass, replace

from sqlglot import TokenType, exp

from springhouse.project.declarations.declaration import ReadMode, Reference, SourceCall
from springhouse.project.declarations.names import Names
from springhouse.project.sql import dialect, syntax
from springhouse.project.sql.sql_text import SqlText, tokenize
from springhouse.project.sql.tokenizer import unpaired_parenthesis

# The formats whose files can be read by path: FROM parquet.`data/orders`.
_FILE_FORMATS = frozenset({"avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml"})

# Functions of one row's values: what they return changes only when the row does.
_GENERATORS = frozenset(
    {"explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"}
    | {"json_tuple", "stack", "unnest", "variant_explode", "variant_explode_outer"}
)


@dataclass(frozen=True)
class ReferencedQuery:
    """A query as sqlglot sees it, and its references by the position where each begins."""

    tree: exp.Expr
    references: dict[int, Reference]

    def reference(self, table: exp.Table) -> Reference | None:
        """The reference that a node of the tree stands for."""
        # A hint is parsed as a text of its own, so positions in it mean nothing here.
        place = syntax.span(table)
        if place is None or table.find_ancestor(exp.Hint):
            return None
        return self.references.get(place[0])


def find_references(sql: SqlText, names: Names) -> tuple[Reference, ...]:
    """The spans of a query that name its inputs, in order."""
    references = parse_query(sql, names).references
    return tuple(references[start] for start in sorted(references))


def parse_query(sql: SqlText, names: Names) -> ReferencedQuery:
    """A query's tree and references, or the error that keeps it from being one."""
    tokens, unclosed = tokenize(sql)
    if unclosed is not None:
        raise unclosed
    wrong = unpaired_parenthesis(tokens)
    if wrong is not None:
        raise sql.error(*wrong)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise sql.error("expected a query here, found nothing", 0)
    tree = dialect.parse_query(sql, tokens)
    return ReferencedQuery(tree, references_in(tree, sql, names))


def references_in(tree: exp.Expr, sql: SqlText, names: Names) -> dict[int, Reference]:
    """What the relations of a tree name, by the position in `sql` where each begins."""
    references = {}
    for table in tree.find_all(exp.Table):
        if table.find_ancestor(exp.Hint) or _is_cte(table):
            continue
        place = syntax.span(table)
        if place is None:
            # Better refused than forgotten: a view would never learn that this input moved.
            start = syntax.span(tree) or (0, 0)
            raise sql.error(f'it is not clear where this query names "{table.name}"', start[0])
        found = read_relation(table, sql, names)
        if found is not None:
            references[place[0]] = _with_alias(table, found, sql)
    return references


def _is_cte(table: exp.Table) -> bool:
    """Whether a table's name is that of a common table expression which it can see."""
    if table.args.get("db") or not isinstance(table.this, exp.Identifier):
        return False
    if table.meta.get(syntax.STREAM):
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


def read_relation(table: exp.Table, sql: SqlText, names: Names) -> Reference | None:
    """What a relation names; None for a function of one row's values."""
    if isinstance(table.this, exp.Anonymous):
        return _read_function(table, sql, names)
    start = syntax.name_start(table)
    if table.args.get("version") is not None:
        raise sql.error(
            f'"{syntax.text_of(table, sql.text)}" is read as of a fixed version',
            start,
            hint="Leave it out: Springhouse chooses one version of every input for each refresh.",
        )
    parts = [part.name for part in table.parts]
    streaming = bool(table.meta.get(syntax.STREAM))
    by_path = len(parts) == 2 and bool(table.this.args.get("quoted"))
    if by_path and parts[0].lower() == "delta":
        delta = ReadMode.DELTA_STREAM if streaming else ReadMode.DELTA
        return _reference(table, sql, delta, parts[1])
    if by_path and parts[0].lower() in _FILE_FORMATS:
        if streaming:
            written = f"{parts[0]}.`{parts[1]}`"
            raise sql.error(
                f"{written} can't be read as a stream",
                start,
                hint=f"Write STREAM read_files('{parts[1]}', format => '{parts[0].lower()}').",
            )
        return _reference(table, sql, ReadMode.OTHER, parts[1])
    reading = ReadMode.STREAM if streaming else ReadMode.TABLE
    return _reference(table, sql, reading, names.normal(parts))


def _reference(
    table: exp.Table, sql: SqlText, reading: ReadMode, name: str, call: SourceCall | None = None
) -> Reference:
    start, end = syntax.span(table) or (0, 0)
    return Reference(start, end, reading, name, sql.place(syntax.name_start(table)), source=call)


def _read_function(table: exp.Table, sql: SqlText, names: Names) -> Reference | None:
    """`read_files('data')`, `IDENTIFIER('orders')` or `range(10)` as a relation."""
    streaming = bool(table.meta.get(syntax.STREAM))
    name = ".".join(part.name.lower() for part in table.parts)
    arguments: list[syntax.CallArgument] = table.this.expressions
    if name == "identifier":
        text = arguments[0].args["value"] if len(arguments) == 1 else None
        named = identifier(text, syntax.name_start(table), sql, names)
        return _reference(table, sql, ReadMode.STREAM if streaming else ReadMode.TABLE, named)
    if not streaming and name in _GENERATORS:
        return None
    call = _source_call(name, arguments, table, sql)
    if streaming:
        return _reference(table, sql, ReadMode.SOURCE, name, call)
    if name == "read_delta" and call.arguments:
        return _reference(table, sql, ReadMode.DELTA, call.arguments[0], call)
    return _reference(table, sql, ReadMode.OTHER, name, call)


def identifier(name: str | None, start: int, sql: SqlText, names: Names) -> str:
    """The name in `IDENTIFIER('shop.orders')`, which must be a plain text."""
    if name is None:
        raise sql.error(
            "this IDENTIFIER(…) is known only when the query runs",
            start,
            hint="Write the table's name, so that Springhouse knows the inputs of the query.",
        )
    return names.parse(name)


def _source_call(
    name: str, arguments: list[syntax.CallArgument], table: exp.Table, sql: SqlText
) -> SourceCall:
    """`read_files('data', format => 'json')` as data."""
    positional: list[str] = []
    options: dict[str, str] = {}
    for argument in arguments:
        value, option = argument.args["value"], argument.args["name"]
        if value is None:
            first, last = argument.meta["value_span"]
            value = sql.text[first:last]
        if option is None:
            positional.append(value)
            continue
        if option.lower() in (other.lower() for other in options):
            raise sql.error(f'the option "{option}" is given twice', syntax.start_of(argument))
        options[option] = value
    return SourceCall(name, tuple(positional), options, sql.place(syntax.name_start(table)))


def _with_alias(table: exp.Table, found: Reference, sql: SqlText) -> Reference:
    """`found`, saying whether the text gives it an alias."""
    if table.alias or table.meta.get(syntax.NO_ALIAS):
        return found
    alias = table.args.get("alias")
    clause = "TABLESAMPLE" if table.args.get("sample") else None
    if alias is not None and alias.meta.get(syntax.WATERMARK):
        clause = "WATERMARK"
    if clause is not None:
        raise sql.error(
            f'"{sql.text[found.start : found.end]}" has {clause} but no alias',
            found.start,
            hint=f"Give it one, after the {clause} clause: AS {found.name}.",
        )
    return replace(found, alias_needed=True)
