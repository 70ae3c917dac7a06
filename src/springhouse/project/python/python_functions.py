"""What does a Python query function read, and when is it the same function as before?

Springhouse calls a query function at every refresh, not once like `spark-pipelines`, and it must
know what the function reads before the call. It searches the syntax tree of the function for
`spark.table("orders")`, `spark.readStream.table("orders")` and `spark.sql("…")` with plain strings.
All other reads become one reference of `ReadMode.OTHER`, which says that the inputs can't be
tracked.

A function that only does `return spark.sql("…")` is treated as a query in SQL: it is never called,
and its view can be refreshed incrementally like any other.
"""

import ast
import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import unwrap
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

from springhouse.errors import DeclarationError
from springhouse.project.declarations.declaration import Place, ReadMode, Reference, SqlQuery
from springhouse.project.declarations.names import Names
from springhouse.project.sql.references import find_references
from springhouse.project.sql.sql_text import SqlText, split_statements, tokenize
from springhouse.project.sql.streaming_state import STREAMING

_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_READERS = frozenset({"read", "readStream"})

Function = Callable[[], Any]


# The function at its declaration


@dataclass(frozen=True)
class DeclaredFunction:
    """A function, and the plain values that its free names had at the declaration.

    Files declare tables in loops. `spark-pipelines` calls a function inside its turn of the loop,
    when the loop's variable has the right value. A call after the loop would see only the last
    value. Only the names in the function itself are kept: a helper that it calls sees the values at
    the end of the file.
    """

    function: Function
    global_values: Mapping[str, Any]
    cell_values: tuple[Any, ...]

    @staticmethod
    def now(function: Function) -> "DeclaredFunction":
        """The function with the values that it sees now."""
        if not isinstance(function, FunctionType):
            return DeclaredFunction(function, {}, ())
        seen = function.__globals__
        values = {
            name: copy.deepcopy(seen[name])
            for name in sorted(_names_in(function.__code__))
            if name in seen and _is_plain(seen[name])
        }
        cells = (_content(cell) for cell in function.__closure__ or ())
        contents = tuple(copy.deepcopy(value) if _is_plain(value) else value for value in cells)
        return DeclaredFunction(function, values, contents)

    def bound(self) -> Function:
        """The function, bound to the values at its declaration."""
        function = self.function
        if not isinstance(function, FunctionType):
            return function
        moved = {
            name: value
            for name, value in self.global_values.items()
            if function.__globals__.get(name) != value
        }
        cells = tuple(
            CellType(then) if _is_plain(then) and _content(cell) != then else cell
            for cell, then in zip(function.__closure__ or (), self.cell_values, strict=True)
        )
        if not moved and cells == (function.__closure__ or ()):
            return function
        again = FunctionType(
            function.__code__,
            {**function.__globals__, **moved},
            function.__name__,
            function.__defaults__,
            cells or None,
        )
        again.__kwdefaults__ = function.__kwdefaults__
        again.__qualname__ = function.__qualname__
        again.__module__ = function.__module__
        return again

    def seen(self, name: str) -> Any:
        """The value of a free name of the function, as `bound` would see it."""
        assert isinstance(self.function, FunctionType)
        free = self.function.__code__.co_freevars
        if name in free:
            return self.cell_values[free.index(name)]
        return self.global_values.get(name, self.function.__globals__.get(name))

    def fingerprint(self, content: str) -> str:
        """A hash that changes with the file and with the plain values that the function sees."""
        function = self.function
        defaults = [getattr(function, name, None) for name in ("__defaults__", "__kwdefaults__")]
        parts = [
            content,
            getattr(function, "__qualname__", type(function).__qualname__),
            repr([value for value in defaults if _is_plain(value)]),
            repr([value for value in self.cell_values if _is_plain(value)]),
            repr(self.global_values),
        ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _names_in(code: CodeType) -> set[str]:
    """The global names that a function and its inner functions use."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # The variable has no value yet.
        return cell


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(k) and _is_plain(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


# A function as a query in SQL


def find_sql(
    declared: DeclaredFunction, file: str, names: Names, session: object, fingerprint: str
) -> SqlQuery | None:
    """The query of a function that only returns `spark.sql` of a plain text; None for others.

    The text is a literal, or a name that was a plain string at the declaration. `spark` must be the
    session that the file got, and not another object of that name.
    """
    function = declared.function
    node = _node_of(function) if isinstance(function, FunctionType) else None
    if not isinstance(node, ast.FunctionDef) or any(ast.iter_child_nodes(node.args)):
        return None
    match node.body[1:] if ast.get_docstring(node) is not None else node.body:
        case [
            ast.Return(
                ast.Call(
                    func=ast.Attribute(value=ast.Name(id=receiver), attr="sql"),
                    args=[argument],
                    keywords=[],
                )
            )
        ] if declared.seen(receiver) is session:
            text, line = _text_of(declared, argument)
        case _:
            return None
    return _query(SqlText(text, file, line), names, fingerprint) if text is not None else None


def _text_of(declared: DeclaredFunction, argument: ast.expr) -> tuple[str | None, int]:
    """The text that a function passes to `spark.sql`, and the line on which it begins."""
    if not isinstance(argument, ast.Name):
        return _constant(argument), argument.lineno
    value = declared.seen(argument.id)
    if not isinstance(value, str) or not _is_fixed(declared, argument.id):
        return None, argument.lineno
    assert isinstance(declared.function, FunctionType)
    tree = _tree_of(declared.function)
    for node in tree.body if tree is not None else ():
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() as given)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant() as given)
            ) if name == argument.id and given.value == value:
                return value, given.lineno
            case _:
                pass
    return value, argument.lineno


def _is_fixed(declared: DeclaredFunction, name: str) -> bool:
    """Whether the name had its value at the declaration; a later value may change again."""
    assert isinstance(declared.function, FunctionType)
    return name in declared.global_values or name in declared.function.__code__.co_freevars


def _query(sql: SqlText, names: Names, fingerprint: str) -> SqlQuery | None:
    tokens, unclosed = tokenize(sql)
    statements = split_statements(tokens)
    if unclosed is not None or len(statements) != 1:
        return None
    place = sql.place(statements[0][0].start)
    # Without comments around it and the semicolon after it, so that it can stand inside another.
    text = sql.slice(statements[0])
    try:
        references = find_references(SqlText(text, place.file, place.line), names)
    except DeclarationError:
        return None  # Spark may understand it: it may be a command and no query.
    if any(reference.reading in STREAMING for reference in references):
        return None
    return SqlQuery(text, references, place, fingerprint)


# The inputs of a function


def find_reads(function: Function, place: Place, names: Names) -> tuple[Reference, ...]:
    """The inputs in the code of `function`, without repetition; unknown ones as `OTHER`."""
    nodes = list(_sources(function, set()))
    reads: dict[tuple[str, ReadMode], Reference] = {}
    known = bool(nodes)
    for node in nodes:
        scan = _SourceScan(place.file, names)
        for statement in node.body if isinstance(node.body, list) else [node.body]:
            scan.visit(statement)
        known = known and scan.readers == 0
        for reference in scan.found:
            reads.setdefault((reference.name, reference.reading), reference)
    if not known or not reads:
        name = getattr(function, "__name__", type(function).__name__)
        reads[name, ReadMode.OTHER] = Reference(0, 0, ReadMode.OTHER, name, place)
    return tuple(reads.values())


_Node = ast.FunctionDef | ast.Lambda


def _sources(function: Function, seen: set[CodeType]) -> Iterator[_Node]:
    """The syntax trees of a function and of the functions in its file that it uses."""
    plain = unwrap(function)
    if not isinstance(plain, FunctionType) or plain.__code__ in seen:
        return
    seen.add(plain.__code__)
    node = _node_of(plain)
    if node is None:
        return
    yield node
    for name in sorted(_names_in(plain.__code__)):
        used = plain.__globals__.get(name)
        if not isinstance(used, FunctionType):
            continue
        if used.__code__.co_filename == plain.__code__.co_filename:
            yield from _sources(used, seen)


def _tree_of(function: FunctionType) -> ast.Module | None:
    try:
        return ast.parse(Path(function.__code__.co_filename).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None


def _node_of(function: FunctionType) -> _Node | None:
    code, tree = function.__code__, _tree_of(function)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef):
            # A decorated function begins at its first decorator.
            if min([node.lineno, *(d.lineno for d in node.decorator_list)]) == code.co_firstlineno:
                return node
        elif isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            return node
    return None


class _SourceScan(ast.NodeVisitor):
    """Collects the inputs of one function; `readers` counts the reads of unknown inputs."""

    def __init__(self, file: str, names: Names) -> None:
        self.found: list[Reference] = []
        self.readers = 0
        self._file = file
        self._names = names

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(func=ast.Attribute(value=receiver, attr="table"), args=[first, *_]):
                self._read_table(receiver, first)
            case ast.Call(func=ast.Attribute(attr="sql"), args=[first, *_]):
                self._read_sql(first)
            case _:
                pass
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.readers += node.attr in _READERS
        self.generic_visit(node)

    def _read_table(self, receiver: ast.expr, argument: ast.expr) -> None:
        readers = {n.attr for n in ast.walk(receiver) if isinstance(n, ast.Attribute)} & _READERS
        place = Place(self._file, argument.lineno)
        name = _constant(argument)
        if name is None:
            self.readers += not readers
            return
        self.readers -= len(readers)
        reading = ReadMode.STREAM if "readStream" in readers else ReadMode.TABLE
        self.found.append(Reference(0, 0, reading, self._names.parse(name), place))

    def _read_sql(self, argument: ast.expr) -> None:
        text = _constant(argument)
        if text is None:
            self.readers += 1
            return
        try:
            references = find_references(SqlText(text, self._file, argument.lineno), self._names)
        except DeclarationError:
            # Spark may understand it: it fills in {names}, and it executes commands.
            self.readers += 1
            return
        self.found += [replace(reference, start=0, end=0) for reference in references]


def _constant(node: ast.expr) -> str | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else None
