"""Does a call of a source or a sink fit its plug-in?

A call is held against the signature of the plug-in: a class of the project's own files, an
installed package (an entry point), or one of the built-in functions of `built_in`. A wrong, missing
or misspelt option is an error with the place of the call, before Spark starts.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from springhouse.errors import DeclarationError, SpringhouseError
from springhouse.project.declarations.declaration import SinkCall, SourceCall
from springhouse.project.declarations.names import did_you_mean
from springhouse.project.declarations.secrets import resolve
from springhouse.project.options import built_in

_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)

Call = SourceCall | SinkCall


def bind_arguments(
    kind: str, call: Call, plugin: Callable[..., Any], error: type[SpringhouseError], folder: Path
) -> tuple[list[str], dict[str, Any]]:
    """The arguments of a call by position and by name, proven to fit; secrets are resolved."""
    parameters = [p for p in signature(plugin).parameters.values() if p.name != "context"]
    kinds = {parameter.kind for parameter in parameters}
    named = {p.name.lower(): p for p in parameters if p.kind not in _VARIADIC}
    usage = f"It is called as {_usage(call.plugin, parameters)}."

    def wrong(problem: str, hint: str | None = usage) -> SpringhouseError:
        return error(problem, where=str(call.place), hint=hint)

    options: dict[str, Any] = {}
    for name, text in call.options.items():
        parameter = named.get(name.lower())
        if parameter is None and Parameter.VAR_KEYWORD not in kinds:
            hint = did_you_mean(name, list(named)) or usage
            raise wrong(f'the {kind} "{call.plugin}" has no option "{name}"', hint)
        options[parameter.name if parameter else name.lower()] = _resolved(text, folder, wrong)

    ordered = [p.name for p in named.values() if p.kind is not Parameter.KEYWORD_ONLY]
    if len(call.arguments) > len(ordered) and Parameter.VAR_POSITIONAL not in kinds:
        raise wrong(f'{len(call.arguments)} arguments are too many for "{call.plugin}"')
    texts = [_resolved(text, folder, wrong) for text in call.arguments]
    given = dict(zip(ordered, texts, strict=False))
    for name in given.keys() & options.keys():
        raise wrong(f'"{call.plugin}" is given "{name}" twice')
    for parameter in named.values():
        if parameter.default is Parameter.empty and parameter.name not in given | options:
            near = did_you_mean(parameter.name, list(options))
            hint = f'{usage} Is "{near.split(chr(34))[1]}" a misspelling?' if near else usage
            raise wrong(f'the {kind} "{call.plugin}" needs "{parameter.name}"', hint)
    if Parameter.VAR_POSITIONAL in kinds:
        return texts, options
    # By name: a class may take its `context` before everything else.
    return [], given | options


def _resolved(text: str, folder: Path, wrong: Callable[[str, str | None], SpringhouseError]) -> str:
    try:
        return resolve(text, folder)
    except SpringhouseError as error:
        raise wrong(error.problem, error.hint) from None


METHODS: Mapping[str, tuple[str, ...]] = {"source": ("latest", "read"), "sink": ("write",)}
_METHODS_OF = {
    "source": "Subclass springhouse.Source: a source has latest() and read(spark, ranges).",
    "sink": "Subclass springhouse.Sink: a sink has write(changes, versions).",
}


def check_methods(kind: str, call: Call, plugin: type, error: type[SpringhouseError]) -> None:
    """Raise an error for a class that lacks what a source or a sink must have."""
    for method in METHODS[kind]:
        defined = getattr(plugin, method, None)
        if not callable(defined) or getattr(defined, "__isabstractmethod__", False):
            raise error(
                f'the class {plugin.__name__} behind the {kind} "{call.plugin}" has no '
                f"method `{method}`",
                where=str(call.place),
                hint=_METHODS_OF[kind],
            )


def parse_call(kind: str, call: Call, own: Mapping[str, type], folder: Path) -> Any:
    """What a call of a built-in plug-in means; None of others. An error if it does not fit."""
    name = call.plugin.lower()
    readers = built_in.SOURCES if kind == "source" else built_in.SINKS
    plugin: Callable[..., Any] | None = readers.get(name) or next(
        (each for own_name, each in own.items() if own_name.lower() == name), None
    )
    if plugin is None:
        plugin = _installed(kind, call)
    if plugin is None:
        return None  # Told already: no plug-in has this name.
    if isinstance(plugin, type):
        check_methods(kind, call, plugin, DeclarationError)
    arguments, options = bind_arguments(kind, call, plugin, DeclarationError, folder)
    if name not in readers:
        return None
    try:
        return plugin(*arguments, **options)
    except SpringhouseError as error:
        where = str(call.place)
        raise DeclarationError(error.problem, where=where, hint=error.hint) from None


def _installed(kind: str, call: Call) -> type | None:
    for entry in entry_points(group=f"springhouse.{kind}s"):
        if entry.name.lower() == call.plugin.lower():
            return load_entry(kind, call, entry, DeclarationError)
    return None


def load_entry(kind: str, call: Call, entry: EntryPoint, error: type[SpringhouseError]) -> type:
    """The class of an installed package, or an error that says why there is none."""
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as failure:
        raise error(
            f'the {kind} "{call.plugin}" can\'t be imported from "{entry.value}": {failure}',
            where=str(call.place),
            hint=f"An installed package names it in its entry points ({entry.group}).",
        ) from failure
    if not isinstance(loaded, type):
        problem = f'"{entry.value}", which is the {kind} "{call.plugin}", is not a class'
        raise error(problem, where=str(call.place))
    return loaded


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
