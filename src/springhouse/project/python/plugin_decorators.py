"""Which class stands behind `STREAM name(…)`, or behind the name of a sink?

A Python file of a project may register its own source or sink:

    @springhouse.source("weather")
    class Weather: ...

    @springhouse.sink("pager")
    class Pager: ...

While a project is loaded, the class becomes part of that project and of no other: a context
variable holds the registered classes, not a global table. Outside a load the decorator only marks
the class, so that the file can be imported and tested like any other.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from springhouse.errors import DeclarationError
from springhouse.project.declarations.contents import Plugin
from springhouse.project.declarations.declaration import Place

BUILT_IN_SOURCES = frozenset({"read_files", "read_delta", "read_kafka", "sample"})
BUILT_IN_SINKS = frozenset({"avro", "kafka", "positioned_file"})

_Class = TypeVar("_Class", bound=type)

_registered: ContextVar[tuple[list[Plugin], Callable[[str, int], Place]] | None] = ContextVar(
    "springhouse_registered_sources", default=None
)


def source(name: str) -> Callable[[_Class], _Class]:
    """A decorator that registers a class as the source plug-in `name`."""
    return _register_as("source", name)


def sink(name: str) -> Callable[[_Class], _Class]:
    """A decorator that registers a class as the sink plug-in `name`."""
    return _register_as("sink", name)


def _register_as(kind: str, name: str) -> Callable[[_Class], _Class]:
    if not str(name).isidentifier():
        raise DeclarationError(
            f"{name!r} can't name a {kind}", hint=f'Write @springhouse.{kind}("my_{kind}").'
        )
    caller = sys._getframe(2)  # noqa: SLF001 (its documented use: to find the caller)
    filename, line = caller.f_code.co_filename, caller.f_lineno

    def register(cls: _Class) -> _Class:
        setattr(cls, f"springhouse_{kind}", name.lower())  # any class can be marked
        current = _registered.get()
        if current is not None:
            plugins, place = current
            plugins.append(Plugin(name.lower(), cls, place(filename, line), kind))
        return cls

    return register


@contextmanager
def collect_plugins(place: Callable[[str, int], Place]) -> Iterator[list[Plugin]]:
    """Collect the plug-ins that are registered inside the block.

    `place` turns a file and a line into a `Place`.
    """
    plugins: list[Plugin] = []
    token = _registered.set((plugins, place))
    try:
        yield plugins
    finally:
        _registered.reset(token)
