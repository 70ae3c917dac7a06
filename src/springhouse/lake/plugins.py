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
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, signature
from typing import Any

from springhouse.errors import SpringhouseError
from springhouse.project.declaration import SinkCall, SourceCall
from springhouse.project.names import did_you_mean

_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class Plugins:
    """All plug-ins of one kind; `usage` says what such a class has to have."""

    kind: str
    group: str
    built_in: Mapping[str, str]
    methods: tuple[str, ...]
    usage: str
    error: type[SpringhouseError]

    def known(self, own: Mapping[str, type]) -> frozenset[str]:
        """The names of all that a project can call."""
        installed = (entry.name.lower() for entry in entry_points(group=self.group))
        return frozenset([*(name.lower() for name in own), *self.built_in, *installed])

    def open(self, call: SourceCall | SinkCall, own: Mapping[str, type], context: object) -> Any:
        """What a call names, made with the options that it gives."""
        plugin = self._class(call, own)
        arguments, options = self._arguments(call, plugin)
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
        for method in self.methods:
            if not callable(getattr(plugin, method, None)):
                raise self._wrong(
                    call,
                    f'the class {plugin.__name__} behind the {self.kind} "{call.plugin}" has no '
                    f"method `{method}`",
                    self.usage,
                )
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
                return self._loaded(call, entry)
        return None

    def _loaded(self, call: SourceCall | SinkCall, entry: EntryPoint) -> type:
        try:
            loaded = entry.load()
        except (ImportError, AttributeError) as error:
            raise self._wrong(
                call,
                f'the {self.kind} "{call.plugin}" can\'t be imported from "{entry.value}": {error}',
                f"An installed package names it in its entry points ({self.group}).",
            ) from error
        if not isinstance(loaded, type):
            problem = f'"{entry.value}", which is the {self.kind} "{call.plugin}", is not a class'
            raise self._wrong(call, problem)
        return loaded

    def _arguments(
        self, call: SourceCall | SinkCall, plugin: type
    ) -> tuple[list[str], dict[str, Any]]:
        """The arguments for the class, by position and name, once they are proven to fit it."""
        parameters = [p for p in signature(plugin).parameters.values() if p.name != "context"]
        kinds = {parameter.kind for parameter in parameters}
        named = {p.name.lower(): p for p in parameters if p.kind not in _VARIADIC}
        usage = f"It is called as {_usage(call.plugin, parameters)}."

        options: dict[str, Any] = {}
        for name, text in call.options.items():
            parameter = named.get(name.lower())
            if parameter is None and Parameter.VAR_KEYWORD not in kinds:
                problem = f'the {self.kind} "{call.plugin}" has no option "{name}"'
                raise self._wrong(call, problem, did_you_mean(name, list(named)) or usage)
            options[parameter.name if parameter else name.lower()] = text

        ordered = [p.name for p in named.values() if p.kind is not Parameter.KEYWORD_ONLY]
        if len(call.arguments) > len(ordered) and Parameter.VAR_POSITIONAL not in kinds:
            count = len(call.arguments)
            raise self._wrong(call, f'{count} arguments are too many for "{call.plugin}"', usage)
        given = dict(zip(ordered, call.arguments, strict=False))
        for name in given.keys() & options.keys():
            raise self._wrong(call, f'"{call.plugin}" is given "{name}" twice', usage)
        for parameter in named.values():
            if parameter.default is Parameter.empty and parameter.name not in given | options:
                problem = f'the {self.kind} "{call.plugin}" needs "{parameter.name}"'
                raise self._wrong(call, problem, usage)
        if Parameter.VAR_POSITIONAL in kinds:
            return list(call.arguments), options
        # By name: a class may take its `context` before everything else.
        return [], given | options

    def _wrong(
        self, call: SourceCall | SinkCall, problem: str, hint: str | None = None
    ) -> SpringhouseError:
        return self.error(problem, where=str(call.place), hint=hint)


def _usage(plugin: str, parameters: list[Parameter]) -> str:
    """How the class wants to be called, in SQL: `weather(city, rate => '1')`."""
    shown = []
    for parameter in parameters:
        if parameter.kind in _VARIADIC:
            shown.append("…")
        elif parameter.default is Parameter.empty:
            shown.append(parameter.name)
        else:
            default = "…" if parameter.default is None else f"'{parameter.default}'"
            shown.append(f"{parameter.name} => {default}")
    return f"{plugin}({', '.join(shown)})"
