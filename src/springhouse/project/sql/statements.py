"""What does one SQL statement declare?

The parser of our dialect gives the tree of a statement; this module turns the tree into the values
of `declarations/`. Conditions and queries keep the user's own words: they are slices of the text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import Token, exp

from springhouse.errors import DeclarationError
from springhouse.project.declarations.contents import Contents, PlacedValue
from springhouse.project.declarations.declaration import (
    AppendFlow,
    CdcFlow,
    Expectation,
    OnViolation,
    SqlQuery,
    Table,
    TemporaryView,
    View,
)
from springhouse.project.declarations.names import Names
from springhouse.project.settings import Holder
from springhouse.project.sql import syntax
from springhouse.project.sql.dialect import parse_statement
from springhouse.project.sql.references import identifier, read_relation, references_in
from springhouse.project.sql.sql_text import SqlText
from springhouse.project.table_properties import read_properties


def read_statement(sql: SqlText, tokens: Sequence[Token], names: Names) -> Contents:
    """What one statement declares; its errors are among the contents, never raised."""
    tree, name = parse_statement(sql, tokens)
    reader = _StatementReader(sql, names)
    try:
        # A statement with an error may still have a name, which other statements may read.
        reader.declared = reader.name(name) if name is not None else None
        if isinstance(tree, DeclarationError):
            raise tree
        reader.read(tree)
    except DeclarationError as error:
        reader.contents.errors.append(error)
        if reader.declared is not None:
            reader.contents.broken.add(reader.declared)
    return reader.contents


class _StatementReader:
    """Turns the tree of one statement into contents; `declared` is the name that it declares."""

    def __init__(self, sql: SqlText, names: Names) -> None:
        self.contents = Contents()
        self.declared: str | None = None
        self._sql = sql
        self._names = names

    def read(self, tree: exp.Expr) -> None:
        match tree:
            case syntax.CreateStreamingTable():
                self._read_table(tree)
            case syntax.CreateMaterializedView():
                self._read_view(tree)
            case syntax.CreateTemporaryView():
                self._read_temporary_view(tree)
            case syntax.CreateAppendFlow():
                self._read_append_flow(tree)
            case syntax.CreateCdcFlow():
                self._read_cdc_flow(tree)
            case syntax.SetConfiguration():
                place = self._sql.place(syntax.start_of(tree))
                self.contents.settings[tree.name] = PlacedValue(tree.args["value"], place)
            case syntax.UseOwn():
                self._check_own(tree)
            case _:
                raise AssertionError(f"{tree.key} is no statement of a project")

    def name(self, node: syntax.DeclaredName) -> str:
        """The one spelling of a name."""
        parts: list[str] = node.expressions
        if parts:
            return self._names.normal(parts)
        return identifier(node.args["identifier"], syntax.start_of(node), self._sql, self._names)

    # Tables and views

    def _read_table(self, tree: syntax.CreateStreamingTable) -> None:
        name, place = self.name(tree.this), self._sql.place(syntax.start_of(tree))
        columns: list[syntax.ColumnDefinition] = tree.args["columns"]
        if columns and not _are_typed(columns):
            column = columns[0].name
            problem = f'column "{column}" of the table "{name}" has no type'
            raise DeclarationError(problem, where=str(place), hint=f"Write {column} STRING.")
        query = self._query(tree) if tree.args["query"] is not None else None
        known, errors = read_properties(name, Holder.TABLE, self._properties(tree), self._names)
        self.contents.errors += errors
        self.contents.declarations.append(
            Table(
                name,
                place,
                schema=self._schema(columns),
                comment=tree.args.get("comment"),
                column_comments=_comments(columns),
                partition_by=tuple(tree.args.get("partition_by") or ()),
                promise=known.promise,
                expectations=self._expectations(tree),
                timestamp=known.timestamp,
                lateness_seconds=known.lateness_seconds,
                period_seconds=known.period_seconds,
                sinks=known.sinks,
                flow_settings=known.flow_settings,
                properties=known.others,
            )
        )
        if query is not None:
            self.contents.declarations.append(AppendFlow(name, name, place, query))

    def _read_view(self, tree: syntax.CreateMaterializedView) -> None:
        name = self.name(tree.this)
        columns: list[syntax.ColumnDefinition] = tree.args["columns"]
        query = self._query(tree, name)
        known, errors = read_properties(name, Holder.VIEW, self._properties(tree), self._names)
        self.contents.errors += errors
        self.contents.declarations.append(
            View(
                name,
                self._sql.place(syntax.start_of(tree)),
                query,
                schema=self._schema(columns),
                comment=tree.args.get("comment"),
                column_comments=_comments(columns),
                partition_by=tuple(tree.args.get("partition_by") or ()),
                promise=known.promise,
                expectations=self._expectations(tree),
                refresh=known.refresh,
                sinks=known.sinks,
                flow_settings=known.flow_settings,
                properties=known.others,
            )
        )

    def _read_temporary_view(self, tree: syntax.CreateTemporaryView) -> None:
        name = self.name(tree.this)
        query = self._query(tree, name)
        properties = self._properties(tree)
        _, errors = read_properties(name, Holder.TEMPORARY_VIEW, properties, self._names)
        self.contents.errors += errors
        expectations = self._expectations(tree)
        if expectations:
            problem = f'"{name}" is not stored, so it can\'t have expectations'
            where = str(expectations[0].place)
            raise DeclarationError(problem, where=where, hint="Make it a materialized view.")
        place = self._sql.place(syntax.start_of(tree))
        self.contents.declarations.append(TemporaryView(name, place, query))

    # Flows

    def _read_append_flow(self, tree: syntax.CreateAppendFlow) -> None:
        flow = AppendFlow(
            self.name(tree.this),
            self.name(tree.args["target"]),
            self._sql.place(syntax.start_of(tree)),
            self._query(tree),
            by_name=tree.args["by_name"],
            once=tree.args["once"],
        )
        self.contents.declarations.append(flow)

    def _read_cdc_flow(self, tree: syntax.CreateCdcFlow) -> None:
        name, start = self.name(tree.this), syntax.start_of(tree)
        target = self.name(tree.args["target"])
        source = read_relation(tree.args["source"], self._sql, self._names)
        assert source is not None, "a stream always names something"
        for what, example, key in (
            ("KEYS", "KEYS (id)", "keys"),
            ("SEQUENCE BY", "SEQUENCE BY changed_at", "sequence_by"),
        ):
            if not tree.args.get(key):
                raise self._sql.error(
                    f'the flow "{name}" has no {what}',
                    start,
                    hint=f"Add {example}: AUTO CDC needs to know which row an event is about, and "
                    "which of two events is the later one.",
                )
        delete_when, columns = tree.args.get("delete_when"), tree.args.get("columns")
        self.contents.declarations.append(
            CdcFlow(
                name,
                target,
                self._sql.place(start),
                # There is no query, so the source has no place in the text of one.
                replace(source, start=0, end=0),
                tuple(tree.args["keys"]),
                self._words(tree.args["sequence_by"]),
                delete_when=None if delete_when is None else self._words(delete_when),
                columns=None if columns is None else tuple(columns),
                except_columns=tuple(tree.args.get("except_columns") or ()),
                scd_type=tree.args.get("scd_type") or 1,
                once=tree.args["once"],
            )
        )

    # Parts of statements

    def _words(self, node: exp.Expr) -> str:
        return syntax.text_of(node, self._sql.text)

    def _query(self, tree: exp.Expr, view: str | None = None) -> SqlQuery:
        """The query of a statement; names of columns without types rename those of the query."""
        node: syntax.QueryText = tree.args["query"]
        references = references_in(node.this, self._sql, self._names)
        start, text = syntax.start_of(node), self._words(node)
        columns: list[syntax.ColumnDefinition] = tree.args.get("columns") or []
        before, after = "", ""
        if view is not None and columns and not _are_typed(columns):
            # CREATE VIEW v (a, b) AS query renames the query's columns, as an alias would.
            renamed = ", ".join(f"`{column.name}`" for column in columns)
            before, after = "SELECT * FROM (", f") AS `{view}`({renamed})"
        moved = len(before) - start
        return SqlQuery(
            f"{before}{text}{after}",
            tuple(
                replace(reference, start=reference.start + moved, end=reference.end + moved)
                for _, reference in sorted(references.items())
            ),
            self._sql.place(start),
        )

    def _schema(self, columns: Sequence[syntax.ColumnDefinition]) -> str | None:
        """The DDL of the columns, if they have types."""
        if not columns or not _are_typed(columns):
            return None
        return ", ".join(self._words(column) for column in columns)

    def _expectations(self, tree: exp.Expr) -> tuple[Expectation, ...]:
        constraints: list[syntax.ExpectConstraint] = tree.args["expectations"]
        return tuple(
            Expectation(
                constraint.name,
                self._words(constraint.args["expression"]),
                OnViolation(constraint.args["on_violation"]),
                self._sql.place(syntax.start_of(constraint)),
            )
            for constraint in constraints
        )

    def _properties(self, tree: exp.Expr) -> Mapping[str, PlacedValue]:
        properties: list[syntax.TablePropertyText] = tree.args["properties"]
        return {
            each.name: PlacedValue(each.args["value"], self._sql.place(syntax.start_of(each)))
            for each in properties
        }

    # The catalog and the database

    def _check_own(self, tree: syntax.UseOwn) -> None:
        """Raise an error for `USE other`: a project declares into one catalog and database."""
        kind: str = tree.args["kind"]
        own = self._names.catalog if kind == "catalog" else self._names.database
        name = tree.name.strip("`'\"")
        if name.lower() != own.lower():
            raise self._sql.error(
                f'this project declares into the {kind} "{own}", not "{name}"',
                syntax.start_of(tree),
                hint=f"Set `{kind}: {name}` in spark-pipeline.yml.",
            )


def _are_typed(columns: Sequence[syntax.ColumnDefinition]) -> bool:
    return all(column.args["typed"] for column in columns)


def _comments(columns: Sequence[syntax.ColumnDefinition]) -> Mapping[str, str]:
    return {c.name: c.args["comment"] for c in columns if c.args["comment"] is not None}
