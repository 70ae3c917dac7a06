"""Which class answers to a name, and does it take these options?

Paper 003, section 4.7: every component has a unique name, and is found by it. A name is looked up
in the project's own files, then among the built-in plug-ins, then among the installed packages that
have an entry point in the group of its kind. What is not asked for is not imported.

A call is held against the signature of the class before the class is called, so that a wrong option
is an error with a place and a hint, and an error inside a plug-in stays what it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from typing import Any, Protocol

from springhouse.errors import SpringhouseError
from springhouse.project.declarations.declaration import SinkCall, SourceCall
from springhouse.project.declarations.names import did_you_mean
from springhouse.project.options.calls import bind, check_methods, load_entry


class Context(Protocol):
    """What every context of a plug-in has."""

    @property
    def folder(self) -> Path:
        """The project's folder."""
        ...


@dataclass(frozen=True)
class Plugins:
    """All plug-ins of one kind."""

    kind: str
    group: str
    built_in: Mapping[str, str]
    error: type[SpringhouseError]

    def known(self, own: Mapping[str, type]) -> frozenset[str]:
        """The names of all that a project can call."""
        installed = (entry.name.lower() for entry in entry_points(group=self.group))
        return frozenset([*(name.lower() for name in own), *self.built_in, *installed])

    def open(self, call: SourceCall | SinkCall, own: Mapping[str, type], context: Context) -> Any:
        """What a call names, made with the options that it gives."""
        plugin = self._class(call, own)
        arguments, options = bind(self.kind, call, plugin, self.error, context.folder)
        if "context" in signature(plugin).parameters:
            options["context"] = context
        try:
            return plugin(*arguments, **options)
        except self.error as error:
            where = error.where or str(call.place)
            raise self.error(error.problem, where=where, hint=error.hint) from error
        except ValueError as error:
            # Options are text, and `int(rate)` is how most plug-ins read them.
            problem = f'the {self.kind} "{call.plugin}" can\'t be opened: {error}'
            raise self._wrong(call, problem) from error

    def foreign(self, call: SourceCall | SinkCall, own: Mapping[str, type]) -> type | None:
        """The class that a call names, if it is not built in; None if there is none."""
        found = self._found(call, own)
        is_ours = found is not None and found.__module__.startswith("springhouse.")
        return None if is_ours else found

    def _class(self, call: SourceCall | SinkCall, own: Mapping[str, type]) -> type:
        plugin = self._found(call, own)
        if plugin is None:
            known = self.known(own)
            raise self._wrong(
                call,
                f'there is no {self.kind} "{call.plugin}"',
                did_you_mean(call.plugin, known)
                or f"The {self.kind}s are {', '.join(sorted(known))}.",
            )
        check_methods(self.kind, call, plugin, self.error)
        return plugin

    def _found(self, call: SourceCall | SinkCall, own: Mapping[str, type]) -> type | None:
        name = call.plugin.lower()
        for own_name, plugin in own.items():
            if own_name.lower() == name:
                return plugin
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            built_in: type = getattr(import_module(module), attribute)
            return built_in
        for entry in entry_points(group=self.group):
            if entry.name.lower() == name:
                return load_entry(self.kind, call, entry, self.error)
        return None

    def _wrong(
        self, call: SourceCall | SinkCall, problem: str, hint: str | None = None
    ) -> SpringhouseError:
        return self.error(problem, where=str(call.place), hint=hint)
