"""Which class answers to a name, and does it take these options?

Paper 003, section 4.7: every component has a unique name, and is found by it. A name is looked up
in the project's own files, then among the built-in plug-ins, then among the installed packages that
have an entry point in the group of this kind. Only the class that a call names is imported.

A call is compared with the signature of the class before the class is called. So a wrong option is
an error with a place and a hint, and an error inside a plug-in stays as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from springhouse.errors import SpringhouseError
from springhouse.lake.sources.adapted import adapted
from springhouse.project.declarations.declaration import SinkCall, SourceCall
from springhouse.project.declarations.names import did_you_mean
from springhouse.project.options.calls import bind_arguments, check_methods, load_entry

_Base = TypeVar("_Base")


class PluginContext(Protocol):
    """The attribute that every context of a plug-in has."""

    @property
    def folder(self) -> Path:
        """The project's folder."""
        ...


@dataclass(frozen=True)
class Plugins(Generic[_Base]):
    """All plug-ins of one kind; `base` is the base class of this kind."""

    kind: str
    base: type[_Base]
    group: str
    built_in: Mapping[str, str]
    error: type[SpringhouseError]

    def known(self, own: Mapping[str, type]) -> frozenset[str]:
        """The names of all that a project can call."""
        installed = (entry.name.lower() for entry in entry_points(group=self.group))
        return frozenset([*(name.lower() for name in own), *self.built_in, *installed])

    def open(
        self, call: SourceCall | SinkCall, own: Mapping[str, type], context: PluginContext
    ) -> _Base:
        """The plug-in that a call names, opened with the options of the call."""
        plugin = self._class(call, own)
        arguments, options = bind_arguments(self.kind, call, plugin, self.error, context.folder)
        if "context" in signature(plugin).parameters:
            options["context"] = context
        try:
            return adapted(self.base, plugin(*arguments, **options))
        except self.error as error:
            where = error.where or str(call.place)
            raise self.error(error.problem, where=where, hint=error.hint) from error
        except ValueError as error:
            # Options are text, and `int(rate)` is how most plug-ins read them.
            problem = f'the {self.kind} "{call.plugin}" can\'t be opened: {error}'
            raise self._wrong(call, problem) from error

    def foreign(self, call: SourceCall | SinkCall, own: Mapping[str, type]) -> type | None:
        """The class that a call names, if it is not built in; None if there is none."""
        plugin = self._find(call, own)
        is_ours = plugin is not None and plugin.__module__.startswith("springhouse.")
        return None if is_ours else plugin

    def _class(self, call: SourceCall | SinkCall, own: Mapping[str, type]) -> type:
        plugin = self._find(call, own)
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

    def _find(self, call: SourceCall | SinkCall, own: Mapping[str, type]) -> type | None:
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
