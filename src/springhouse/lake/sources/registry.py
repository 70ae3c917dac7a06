"""Which class answers to `STREAM name(…)`, and does it take these options?

Paper 003, section 4.7: every component has a unique name, and is found by it. A name is looked up
in the project's own files, then among the built-in sources, then among the installed packages that
have an entry point in the group `springhouse.sources`. What is not asked for is not imported.

A call is held against the signature of the class before the class is called, so that a wrong option
is an error with a place and a hint, and an error inside a plug-in stays what it is.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, signature
from typing import Any

from springhouse.errors import SourceError
from springhouse.lake.sources.contract import Source, SourceContext
from springhouse.project.declaration import SourceCall
from springhouse.project.names import did_you_mean

GROUP = "springhouse.sources"

_BUILT_IN = {
    "read_delta": "springhouse.lake.sources.delta:ReadDelta",
    "read_files": "springhouse.lake.sources.files:ReadFiles",
    "sample": "springhouse.lake.sources.sample:Sample",
}
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def known_sources(own: Mapping[str, type]) -> frozenset[str]:
    """The names of all sources that a project can call."""
    installed = (entry.name.lower() for entry in entry_points(group=GROUP))
    return frozenset([*(name.lower() for name in own), *_BUILT_IN, *installed])


def open_source(call: SourceCall, own: Mapping[str, type], context: SourceContext) -> Source:
    """The source that a query calls, made with the options that it gives."""
    plugin = _class(call, own)
    arguments, options = _arguments(call, plugin)
    if "context" in signature(plugin).parameters:
        options["context"] = context
    try:
        source: Source = plugin(*arguments, **options)
    except SourceError as error:
        where = error.where or str(call.place)
        raise SourceError(error.problem, where=where, hint=error.hint) from error
    except ValueError as error:
        # Options are text, and `int(rate)` is how most plug-ins read them.
        raise _wrong(call, f'the source "{call.plugin}" can\'t be opened: {error}') from error
    return source


def _class(call: SourceCall, own: Mapping[str, type]) -> type:
    plugin = _found(call, own)
    if plugin is None:
        known = known_sources(own)
        raise _wrong(
            call,
            f'there is no source "{call.plugin}"',
            did_you_mean(call.plugin, known) or f"The sources are {', '.join(sorted(known))}.",
        )
    for method in ("latest", "read"):
        if not callable(getattr(plugin, method, None)):
            raise _wrong(
                call,
                f'the class {plugin.__name__} behind the source "{call.plugin}" has no method '
                f"`{method}`",
                "A source has latest() and read(spark, ranges).",
            )
    return plugin


def _found(call: SourceCall, own: Mapping[str, type]) -> type | None:
    name = call.plugin.lower()
    for own_name, plugin in own.items():
        if own_name.lower() == name:
            return plugin
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        built_in: type = getattr(import_module(module), attribute)
        return built_in
    for entry in entry_points(group=GROUP):
        if entry.name.lower() == name:
            return _loaded(call, entry)
    return None


def _loaded(call: SourceCall, entry: EntryPoint) -> type:
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise _wrong(
            call,
            f'the source "{call.plugin}" can\'t be imported from "{entry.value}": {error}',
            f"An installed package names it in its entry points ({GROUP}).",
        ) from error
    if not isinstance(loaded, type):
        raise _wrong(call, f'"{entry.value}", which is the source "{call.plugin}", is not a class')
    return loaded


def _arguments(call: SourceCall, plugin: type) -> tuple[list[str], dict[str, Any]]:
    """The arguments for the class, by position and by name, once they are proven to fit it."""
    parameters = [p for p in signature(plugin).parameters.values() if p.name != "context"]
    kinds = {parameter.kind for parameter in parameters}
    named = {p.name.lower(): p for p in parameters if p.kind not in _VARIADIC}
    usage = f"It is called as {_usage(call.plugin, parameters)}."

    options: dict[str, Any] = {}
    for name, text in call.options.items():
        parameter = named.get(name.lower())
        if parameter is None and Parameter.VAR_KEYWORD not in kinds:
            problem = f'the source "{call.plugin}" has no option "{name}"'
            raise _wrong(call, problem, did_you_mean(name, list(named)) or usage)
        options[parameter.name if parameter else name.lower()] = text

    ordered = [p.name for p in named.values() if p.kind is not Parameter.KEYWORD_ONLY]
    if len(call.arguments) > len(ordered) and Parameter.VAR_POSITIONAL not in kinds:
        count = len(call.arguments)
        raise _wrong(call, f'{count} arguments are too many for "{call.plugin}"', usage)
    given = dict(zip(ordered, call.arguments, strict=False))
    for name in given.keys() & options.keys():
        raise _wrong(call, f'"{call.plugin}" is given "{name}" twice', usage)
    for parameter in named.values():
        if parameter.default is Parameter.empty and parameter.name not in given | options:
            raise _wrong(call, f'the source "{call.plugin}" needs "{parameter.name}"', usage)
    if Parameter.VAR_POSITIONAL in kinds:
        return list(call.arguments), options
    # By name: a class may take its `context` before everything else.
    return [], given | options


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


def _wrong(call: SourceCall, problem: str, hint: str | None = None) -> SourceError:
    return SourceError(problem, where=str(call.place), hint=hint)
