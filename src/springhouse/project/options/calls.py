"""Does a call of a source or a sink fit its plug-in?

A plug-in is a class in the project's files, a class of an installed package (an entry point), or a
function of `built_in`. Its signature says which options it takes. A wrong, missing or misspelt
option is an error with the place of the call, before Spark starts.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from springhouse.errors import DeclarationError, SpringhouseError
from springhouse.project.declarations.declaration import SinkCall, SourceCall
from springhouse.project.declarations.names import did_you_mean, nearest
from springhouse.project.declarations.secrets import resolve
from springhouse.project.options import built_in

_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)

Call = SourceCall | SinkCall


def bind_arguments(
    kind: str, call: Call, plugin: Callable[..., Any], error: type[SpringhouseError], folder: Path
) -> tuple[list[str], dict[str, Any]]:
    """The arguments of a call by position and by name, checked, with their secrets resolved."""
    return _Binding(kind, call, plugin, error, folder).arguments()


class _Binding:
    """Holds one call against the signature of its plug-in."""

    def __init__(
        self,
        kind: str,
        call: Call,
        plugin: Callable[..., Any],
        error: type[SpringhouseError],
        folder: Path,
    ) -> None:
        self._kind = kind
        self._call = call
        self._error = error
        self._folder = folder
        parameters = [p for p in signature(plugin).parameters.values() if p.name != "context"]
        self._variadic = {p.kind for p in parameters if p.kind in _VARIADIC}
        self._named = {p.name.lower(): p for p in parameters if p.kind not in _VARIADIC}
        self._usage = f"It is called as {_usage(call.plugin, parameters)}."

    def arguments(self) -> tuple[list[str], dict[str, Any]]:
        options = self._options()
        ordered = self._positional_parameters()
        texts = [self._resolved(text) for text in self._call.arguments]
        positional = dict(zip(ordered, texts, strict=False))
        for name in positional.keys() & options.keys():
            raise self._wrong(f'"{self._call.plugin}" is given "{name}" twice')
        self._check_required(positional, options)
        if Parameter.VAR_POSITIONAL in self._variadic:
            return texts, options
        # By name: a class may take its `context` before everything else.
        return [], positional | options

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for name, text in self._call.options.items():
            parameter = self._named.get(name.lower())
            if parameter is None and Parameter.VAR_KEYWORD not in self._variadic:
                hint = did_you_mean(name, list(self._named))
                problem = f'the {self._kind} "{self._call.plugin}" has no option "{name}"'
                raise self._wrong(problem, hint)
            options[parameter.name if parameter else name.lower()] = self._resolved(text)
        return options

    def _positional_parameters(self) -> list[str]:
        """The parameters that take an argument without a name, in order."""
        ordered = [p.name for p in self._named.values() if p.kind is not Parameter.KEYWORD_ONLY]
        count = len(self._call.arguments)
        if count > len(ordered) and Parameter.VAR_POSITIONAL not in self._variadic:
            raise self._wrong(f'{count} arguments are too many for "{self._call.plugin}"')
        return ordered

    def _check_required(self, positional: Mapping[str, str], options: Mapping[str, Any]) -> None:
        for parameter in self._named.values():
            required = parameter.default is Parameter.empty
            if required and parameter.name not in {**positional, **options}:
                near = nearest(parameter.name, options)
                hint = f'{self._usage} Is "{near}" a misspelling?' if near else None
                problem = f'the {self._kind} "{self._call.plugin}" needs "{parameter.name}"'
                raise self._wrong(problem, hint)

    def _resolved(self, text: str) -> str:
        try:
            return resolve(text, self._folder)
        except SpringhouseError as error:
            where = str(self._call.place)
            raise self._error(error.problem, where=where, hint=error.hint) from None

    def _wrong(self, problem: str, hint: str | None = None) -> SpringhouseError:
        return self._error(problem, where=str(self._call.place), hint=hint or self._usage)


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
    """The options of a call of a built-in plug-in; None for other plug-ins.

    A call that does not fit its plug-in is an error.
    """
    name = call.plugin.lower()
    readers = built_in.SOURCES if kind == "source" else built_in.SINKS
    plugin: Callable[..., Any] | None = readers.get(name) or next(
        (cls for own_name, cls in own.items() if own_name.lower() == name), None
    )
    if plugin is None:
        plugin = _installed(kind, call)
    if plugin is None:
        return None  # No plug-in has this name, which is an error of another rule.
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
    """How to call a plug-in in SQL: `weather(city, rate => '1')`."""
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
