"""How does a plug-in work that does not subclass our base class?

A plug-in may be any class with the methods that must be there (`project/options/calls.py` checks
them by name). `adapted` wraps its instance once, when it is opened. An attribute that the plug-in
has comes from the plug-in, any other is the default of the base class. So no caller has to ask
whether an optional method exists.

The plug-in itself stays as it is: it may send itself to Spark's tasks, on machines that do not have
this package.
"""

from inspect import signature
from typing import Any, TypeVar

_Base = TypeVar("_Base")
_MISSING = object()


class _Forwarded:
    """An attribute of the plug-in if the plug-in has it, else the default of the base class."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, adapter: Any, owner: type) -> Any:
        if adapter is None:
            return self
        value = getattr(vars(adapter)["plugin"], self._name, _MISSING)
        # `super` binds a method of the base class to the adapter.
        return getattr(super(owner, adapter), self._name) if value is _MISSING else value

    def __set__(self, adapter: Any, value: Any) -> None:
        setattr(vars(adapter)["plugin"], self._name, value)


def adapted(base: type[_Base], plugin: Any) -> _Base:
    """The plug-in as an instance of `base`; itself if it is one.

    >>> class Base:
    ...     size = 0
    ...     def read(self): return f"{self.size} rows"
    >>> class Plugin:
    ...     size = 7
    >>> adapted(Base, Plugin()).read()
    '7 rows'
    """
    if isinstance(plugin, base):
        return plugin
    kind = type(plugin)
    adapter_class: type[_Base] = type(
        kind.__name__,
        (base,),
        {name: _Forwarded(name) for name in dir(base) if not name.startswith("_")}
        | {"__signature__": signature(kind), "__module__": kind.__module__},
    )
    adapter = adapter_class.__new__(adapter_class)
    vars(adapter)["plugin"] = plugin
    return adapter
